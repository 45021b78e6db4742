"""The two jitters: an open maths question as a multiple-choice question or a true/false item."""

from __future__ import annotations

import ast
import operator
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal, InvalidOperation

from unslant.presentations.interventions.choice import judging_item
from unslant.presentations.interventions.language import form, number
from unslant.questions.question import MathQuestion, Question

N_OPTIONS = 4
"""Options of a question made by answer jitter."""
_STEPS = (1, 2, 3, 4, 5, 6, 8, 10)
_SHARES = ("0.1", "0.2", "0.25", "0.5")
_NUMBER = re.compile(r"(?<![\w.,/:])\d+(?:\.\d+)?(?![\w/:%]|[.,]\d|(?:st|nd|rd|th)\b)")
_IMPLIED = {Decimal(n) for n in (0, 1, 2, 3, 4, 5, 7, 10, 12, 24, 30, 31, 50, 52, 60, 100, 360, 365, 1000)}
"""Numbers that a solution may use without the question giving them: halves, days of the week, a dozen, percent."""
_WRITTEN = re.compile(r"([^\d-]*)-?(\d[\d,]*)(?:\.(\d+))?(.*)", re.DOTALL)
"""What is before a number, its whole part, its decimals, and what is after it."""
_ANNOTATION = re.compile(r"<<([^<>=]+)=([^<>]+)>>")
_OPERATORS: Mapping[type[ast.operator], Callable[[Decimal, Decimal], Decimal]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def no_number(question: MathQuestion) -> str:
    """Why the answer cannot be compared with a reply; empty if it can."""
    return "the answer is not a number" if number(question.answer) is None else ""


def obstacle(question: MathQuestion) -> str:
    """Why neither jitter can be applied; empty if they can.

    Among near misses in another form, as 1 and 2 are for 1/2, the answer would be known by its form.
    """
    if problem := no_number(question):
        return problem
    alike = _like(_value(question), question.answer) == question.answer
    return "" if alike else "the answer is written as no near miss would be"


def obstacles(question: MathQuestion) -> dict[str, str]:
    """Code -> why this question cannot take that jitter.

    A worked solution that ends in another number than the answer is not understood, or one of the two is wrong.
    """
    steps = _ANNOTATION.findall(question.solution)
    if steps and number(question.answer) is not None and number(steps[-1][1]) != number(question.answer):
        return {"QJ": "the worked solution ends in another number than the answer"}
    return {}


def answer_jitter(question: MathQuestion, rng: random.Random) -> Question:
    """AJ: a multiple-choice question with the answer and three near misses, in ascending order.

    The answer is the smallest, ..., the largest of the four with equal chances, as far as there are smaller numbers
    (a negative number is never put next to an answer that is not negative).
    """
    value = _value(question)
    below, above = _near(value)
    smaller = min(rng.randrange(N_OPTIONS), len(below))
    values = sorted([*rng.sample(below, smaller), value, *rng.sample(above, N_OPTIONS - 1 - smaller)])
    options = tuple(question.answer if v == value else _like(v, question.answer) for v in values)
    return _with_options(question, options, frozenset({values.index(value)}))


def question_jitter(question: MathQuestion, rng: random.Random, true: bool | None = None) -> Question:
    """QJ: a true/false item: the answer is put forward, or something that is not the answer.

    True and false are equally likely unless ``true`` says which. A false item changes the number put forward, or, where
    the worked solution shows that the answer changes, a number in the question while its old answer is put forward.
    """
    as_choice = _with_options(question, ("0", "1"), frozenset({0}))
    if rng.random() < 0.5 if true is None else true:
        return judging_item(as_choice, question.answer, True)
    if rng.random() < 0.5:
        changed = _changed_stem(question, rng)
        if changed is not None:
            return judging_item(replace(as_choice, stem=changed), question.answer, False)
    below, above = _near(_value(question))
    return judging_item(as_choice, _like(rng.choice(below + above), question.answer), False)


def _with_options(question: MathQuestion, options: tuple[str, ...], answers: frozenset[int]) -> Question:
    return Question(question.id, question.stem, options, answers, subject=question.subject, source=question.source)


def _value(question: MathQuestion) -> Decimal:
    value = number(question.answer)
    if value is None:
        raise ValueError(f"answer {question.answer!r} of question {question.id!r} is not a number")
    return value


def _near(value: Decimal) -> tuple[list[Decimal], list[Decimal]]:
    """Near misses below and above: a few steps in the last place, or a tenth to a half more or less."""
    unit = Decimal(1).scaleb(min(int(value.as_tuple().exponent), 0))  # one in the last place
    distances = {step * unit for step in _STEPS} | {(abs(value) * Decimal(s)).quantize(unit) for s in _SHARES}
    distances.discard(Decimal(0))
    below = sorted(value - d for d in distances if value < 0 or value >= d)
    return below, sorted(value + d for d in distances)


def _like(value: Decimal, pattern: str) -> str:
    """The number written the way ``pattern`` is: decimals, thousands separators, currency and percent signs."""
    match = _WRITTEN.fullmatch(pattern)
    if match is None:
        return ""
    before, whole, decimals, after = match.groups()
    value = value * 100 if "%" in after else value
    return f"{before}{value:{',' * (',' in whole)}.{len(decimals or '')}f}{after}"


def _changed_stem(question: MathQuestion, rng: random.Random) -> str | None:
    """The stem with one number changed so that the answer changes too; ``None`` where that cannot be shown.

    The worked solution is computed again with the new number. It counts only if it ends in the answer, every step of it
    can be followed, every number in it comes from the question or an earlier step, the number can mean nothing
    else in it, and no result turns negative or fractional that was not before.
    """
    written = _ANNOTATION.findall(question.solution)
    steps = [(left.strip(), result) for left, right in written if (result := _plain(right)) is not None]
    if not steps or len(steps) < len(written) or steps[-1][1] != _value(question):
        return None
    places = list(_NUMBER.finditer(question.stem))
    values = [Decimal(place[0]) for place in places]
    results = [result for _, result in steps]
    in_words = {value for word in re.split(r"[\s-]+", question.stem) if (value := _in_words(word)) is not None}
    if not _accounted_for(steps, {*in_words, *_IMPLIED, *_literals(question.stem)}):
        return None
    elsewhere = {*results, *in_words, *_IMPLIED}
    single = [i for i, v in enumerate(values) if values.count(v) == 1 and v not in elsewhere]
    rng.shuffle(single)
    for i in single:
        new = values[i] + rng.choice([d for d in (-2, -1, 1, 2, 3) if values[i] + d > 1])
        if new in values or new in results:
            continue
        answer = _recomputed(steps, values[i], new)
        if answer is not None and answer != _value(question):
            start, end = places[i].span()
            return question.stem[:start] + f"{new:f}" + question.stem[end:]
    return None


def _accounted_for(steps: list[tuple[str, Decimal]], numbers: set[Decimal]) -> bool:
    """Whether every number of the worked solution is one of these, perhaps as a percentage, or an earlier result."""
    values = numbers | {value / 100 for value in numbers} | {Decimal("0.01")}
    for left, result in steps:
        if not values.issuperset(_literals(left)):
            return False
        values.add(result)
    return True


def _literals(text: str) -> list[Decimal]:
    return [Decimal(literal) for literal in re.findall(r"\d+(?:\.\d+)?|\.\d+", text.replace(",", ""))]


def _recomputed(steps: list[tuple[str, Decimal]], old: Decimal, new: Decimal) -> Decimal | None:
    """The last result of the worked solution with ``old`` replaced by ``new``, if every step can be followed."""
    replaced = {old: new}
    result = None
    for left, before in steps:
        try:
            if _evaluate(left, {}) != before:
                return None
            result = _evaluate(left, replaced)
        except (SyntaxError, ValueError, ArithmeticError, KeyError):
            return None
        whole = before == before.to_integral_value()
        if result < 0 or (whole and result != result.to_integral_value()):
            return None
        if before in replaced and replaced[before] != result:
            return None  # two different things had the same value
        replaced[before] = result
    return result


def _evaluate(expression: str, replaced: Mapping[Decimal, Decimal]) -> Decimal:
    """An expression of numbers, + - * / and brackets, with some numbers replaced."""

    def walk(node: ast.expr) -> Decimal:
        if isinstance(node, ast.BinOp):
            return _OPERATORS[type(node.op)](walk(node.left), walk(node.right))
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            value = Decimal(str(node.value))
            return replaced.get(value, value)
        raise ValueError(f"cannot follow {expression!r}")

    return walk(ast.parse(expression.replace(",", ""), mode="eval").body)


def _in_words(word: str) -> Decimal | None:
    """The value of "five", "Twelve," and so on."""
    (first, *_) = form(word)
    return Decimal(first) if first.isdecimal() and not any(c.isdecimal() for c in word) else None


def _plain(text: str) -> Decimal | None:
    try:
        value = Decimal(text.strip().replace(",", ""))
    except InvalidOperation:
        return None
    return value if value.is_finite() else None

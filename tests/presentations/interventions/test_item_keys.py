"""The key of every true/false and answer-removal item over every question file at hand, derived once more.

What is right, what is part of what, which letters name options, and what a changed sum comes to is found here by other
means than in the code that composes, and on purpose more simply.
"""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from tests.presentations.interventions.checks import folded
from tests.presentations.interventions.question_files import sets_of
from unslant.presentations import ALPHABETS, FOREIGN, NONE, Presentation, present
from unslant.presentations.interventions import Composed, apply, pool_of
from unslant.questions import MathQuestion, Question, load_math

SEEDS = 3
Shown = tuple[Question, Presentation]


@pytest.fixture(scope="module")
def sets(shared_data: Path) -> list[tuple[Question | MathQuestion, ...]]:
    return sets_of(shared_data)


def choices(sets) -> list[Question]:
    return [question for questions in sets for question in questions if isinstance(question, Question)]


def listed(text: str) -> frozenset[str]:
    """The things that a text lists; none where it says one of them twice, as a sequence does."""
    plain = re.sub(r"^(both|either) ", "", text.strip().rstrip(".").casefold())
    parts = re.split(r",? and |,? or |, |; | & ", plain)
    things = [re.sub(r"^(the|a|an) ", "", part.strip()) for part in parts if part.strip()]
    return frozenset(things) if len(set(things)) == len(things) else frozenset()


def disputable(right: str, wrong: str) -> bool:
    """Whether one lists all that the other does, and more."""
    if re.search(r"between|[\[({<=\\~⊃]", right + wrong) or re.search(
        r"\b(not|no|only|nor)\b", f"{right} {wrong}", re.I
    ):
        return False
    few, many = sorted((listed(right), listed(wrong)), key=len)
    return set() != few < many


@pytest.mark.slow
def test_true_false_items(sets):
    items = Counter()
    for questions in sets:
        pool = pool_of(questions)
        for question in questions:
            if not isinstance(question, Question):
                continue
            result = apply(question, ("BT",), pool)
            if not isinstance(result, Composed):
                continue
            right = [question.options[i].strip() for i in question.answers]
            for option, (item, shown) in zip(question.options, result.items, strict=True):
                assert item.stem == f"{question.stem}\nProposed answer: {option}"
                assert item.options == ("True", "False")
                true = option.strip() in right
                assert shown.right_labels == (("T",) if true else ("F",))
                items[true] += 1
                if not true:
                    assert not any(disputable(text, option) for text in right), (question.id, right, option)
    assert min(items.values()) > 10_000


@pytest.mark.slow
@pytest.mark.parametrize("interventions", [("DH", "AR"), ("DQ", "DH", "AR"), ("AJ", "DQ", "DH", "AR")], ids="+".join)
def test_answer_removal_items(sets, interventions):
    kept = Counter()
    for questions in sets:
        if isinstance(questions[0], MathQuestion) != ("AJ" in interventions):
            continue
        pool = pool_of(questions)
        by_stem: dict[str, list[Question | MathQuestion]] = {}
        for question in questions:
            by_stem.setdefault(question.stem.strip(), []).append(question)
        for question in questions:
            for seed in range(SEEDS if len(questions) < 2_000 else 1):
                result = apply(question, interventions, pool, seed=seed)
                if isinstance(result, Composed):
                    (item,) = result.items
                    kept[check_removal(question, item, by_stem)] += 1
    assert min(kept.values()) > 200


def right_texts(question: Question | MathQuestion) -> list[str]:
    return [question.answer] if isinstance(question, MathQuestion) else [question.options[i] for i in question.answers]


def check_removal(question, item: Shown, by_stem) -> bool:
    shown = item[1]
    right = {text.strip() for text in right_texts(question)}
    left = [line.label for line in shown.shown if line.content != FOREIGN and line.text.strip() in right]
    assert shown.right_labels == tuple(left) or (not left and shown.right_labels == (shown.none_label,))
    assert (NONE in shown.answers) == (not left)
    stems = {shown.stem, shown.distractor} - {"", question.stem}
    seconds = [second for stem in stems for second in by_stem[stem.strip()]]
    assert len(stems) == bool(shown.distractor)
    for line in shown.shown:
        for text in right_texts(question) if line.content == FOREIGN else []:
            assert not same_or_part(line.text, text), (question.id, line.text, text)
        for text in [text for second in seconds for text in right_texts(second)]:
            assert not same_or_part(line.text, text), (question.id, line.text, text)
    if not left:
        others = [line.text for line in shown.shown if line.content != FOREIGN]
        assert not any(disputable(text, other) for text in right for other in others), (question.id, right, others)
    return bool(left)


def same_or_part(a: str, b: str) -> bool:
    """The same text or number, or all words of one in the other."""
    if folded(a) == folded(b):
        return True
    plain = [re.sub(r"(?<=\d),(?=\d)", "", text.casefold().replace("−", "-")) for text in (a, b)]
    first, second = (
        set(re.findall(r"-?\d+(?:\.\d+)?(?:/\d+)?%?(?!\w)|\w+", text)) - {"a", "an", "the"} for text in plain
    )
    return bool(first and second) and (first <= second or second <= first)


NAMES = r"[(\[]?[A-H][)\].]?"
LEAD = r"(?:(?:both|either|neither|only|all of|none of)\s+)?(?:(?:the\s+)?(?:options?|answers?|choices?)\s+)?"
JOIN = r"(?:\s*(?:,|&|/|\+)\s*(?:and\s+|or\s+)?|\s+(?:and|or|nor|but not)\s+|\s+)"
LABEL_REFERENCE = re.compile(
    rf"(?i:{LEAD}){NAMES}(?:(?i:{JOIN}){NAMES})+(?:\s+(?i:only|both|together|above|(?:are|is)\s+\w+))?\s*[.;]?\s*"
)
CONTENT = {
    "mmlu/test/human_aging/14": "the vitamins A and C",
    "mmlu/test/professional_accounting/32": "segments A, B and C of a company",
    "medmcqa/dev/b8a31186-4e61-46f8-bf04-c3e22f907418": "A, B, C, D in what order",
    "ar_lsat/dev/ar_lsat_201112_2-G_3_16": "the foods F and G",
}
"""Question -> what its letters name, read by hand: none of them is the label of an option."""


@pytest.mark.thorough
@pytest.mark.slow
def test_no_label_reference_is_left_free(sets):
    free = {
        question.id
        for question in choices(sets)
        for i, option in enumerate(question.options)
        if i not in question.pinned and LABEL_REFERENCE.fullmatch(option.strip())
    }
    assert free == CONTENT.keys()


@pytest.mark.thorough
def test_label_references_follow_the_labels(sets):
    """Under digits and under letters upside down, every pinned "both A and C" names the lines of those contents."""
    names = Counter()
    for question in choices(sets):
        letters = "ABCDEFGHIJ"[: len(question.options)]
        for i in question.pinned:
            if not LABEL_REFERENCE.fullmatch(question.options[i].strip()):
                continue
            named = {ord(letter) - ord("A") for letter in re.findall(r"\b[A-J]\b", question.options[i])}
            for labels in (ALPHABETS["1"][: len(letters)], letters[::-1]):
                shown = present(question, labels=labels)
                said = re.findall(r"(?<!\w)(?:[A-J]|\d+)(?!\w)", shown.shown[i].text)
                assert {shown.content_of(label) for label in said} == named, shown.shown[i]
                names[labels[0]] += 1
    assert names["1"] == names["D"] + names["E"] + names["J"] > 60


@pytest.mark.thorough
def test_question_jitter(shared_data):
    changed = Counter()
    for name in ("gsm8k_test.jsonl", "gsm8k_train.jsonl"):
        questions = load_math(shared_data / name)
        pool = pool_of(questions)
        for question in questions:
            ends = [Fraction(end.replace(",", "")) for end in re.findall(r"<<[^<>]*=([\d.,]+)>>", question.solution)][
                -1:
            ]
            for seed in range(8):
                result = apply(question, ("QJ",), pool, seed=seed)
                if not isinstance(result, Composed):
                    assert ends != [Fraction(question.answer.replace(",", ""))]
                    continue
                (item, shown) = result.items[0]
                stem, put = item.stem.rsplit("\nProposed answer: ", 1)
                changed[check_jitter(question, stem, put, shown.right_labels == ("T",))] += 1
    assert changed["another number in the question"] > 300
    assert changed["another answer"] > 1_000
    assert changed["as it is"] > 2_000


def check_jitter(question: MathQuestion, stem: str, put: str, true: bool) -> str:
    if stem == question.stem:
        assert (Fraction(put.replace(",", "")) == Fraction(question.answer.replace(",", ""))) == true
        return "as it is" if true else "another answer"
    assert not true
    assert put == question.answer
    was, now = (re.findall(r"\d+(?:\.\d+)?", text) for text in (question.stem, stem))
    ((old, new),) = [pair for pair in zip(was, now, strict=True) if pair[0] != pair[1]]
    values = {Fraction(old): Fraction(new)}
    for left, right in re.findall(r"<<([^<>=]+)=([^<>]+)>>", question.solution):
        before = Fraction(right.replace(",", ""))
        assert calculated(left, {}) == before
        values[before] = calculated(left, values)
    answer = Fraction(question.answer.replace(",", ""))
    assert before == answer, f"{question.id}: the solution ends in {before}, not in {answer}"
    assert values[before] != answer
    return "another number in the question"


def calculated(sum_: str, values: dict[Fraction, Fraction]) -> Fraction:
    """The value of a sum in which some numbers are replaced."""

    def number(match: re.Match[str]) -> str:
        value = Fraction(match[0])
        return repr(values.get(value, value))

    plain = re.sub(r"(?:\d+(?:\.\d+)?|\.\d+)", number, sum_.replace(",", ""))
    return eval(plain, {"Fraction": Fraction})

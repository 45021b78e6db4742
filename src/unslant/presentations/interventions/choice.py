"""The interventions on a multiple-choice question: which of them it can take, and what they make of it.

Replaced options and second questions come from other questions of the same set, the :class:`Pool`.
"""

from __future__ import annotations

import bisect
import hashlib
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from unslant.arrays import grouped
from unslant.presentations import ALPHABETS, FOREIGN, NONE, Presentation, ShownOption, present, references
from unslant.presentations.interventions import language, wording
from unslant.presentations.interventions.language import equivalent, form, identical, number, overlapping, partly_right
from unslant.presentations.orders import place
from unslant.questions.question import MathQuestion, Question

LONGEST_SECOND_STEM = 300
"""Characters of a stem that may be shown as a second question; longer ones carry a passage with them."""
TRIES = 400
"""Questions tried before a search gives up."""


class Pool:
    """Questions arranged on a ring by a hash of their ids: a random point on it picks the question after it."""

    # Neither the order of the file nor the presence of any question but the one picked changes what is picked.

    def __init__(self, questions: Iterable[Question], maths: Mapping[str, MathQuestion] | None = None) -> None:
        """
        Args:
            questions: each id counts once.
            maths: id -> the open question, where a question here is one with near misses as its options.

        Raises:
            ValueError: if there is no question.
        """
        first_of_each = {question.id: question for question in reversed([*questions])}
        self._questions = sorted(first_of_each.values(), key=lambda question: _place(question.id))
        if not self._questions:
            raise ValueError("a pool needs at least one question")
        self._maths = dict(maths or {})
        self._places = [_place(question.id) for question in self._questions]

    def original(self, question: Question) -> Question | MathQuestion:
        """The question as published."""
        return self._maths.get(question.id, question)

    @cached_property
    def _has_subjects(self) -> bool:
        return len({question.subject for question in self._questions}) > 1

    def drawn(self, rng: random.Random, tries: int = TRIES) -> Iterator[Question]:
        """Questions at random, possibly the same one again."""
        for _ in range(tries):
            yield self._questions[bisect.bisect(self._places, rng.random()) % len(self._questions)]

    @cached_property
    def _by_stem(self) -> dict[str, list[Question]]:
        return grouped((question.stem.strip(), question) for question in self._questions)

    def _others(self, questions: Sequence[Question], rng: random.Random) -> Iterator[Question]:
        """Random questions other than these; in the first half of the search, of other subjects only."""
        ids, stems, subjects = ({getattr(q, name) for q in questions} for name in ("id", "stem", "subject"))
        for tries, other in enumerate(self.drawn(rng)):
            elsewhere = tries >= TRIES // 2 or not self._has_subjects or other.subject not in subjects
            if elsewhere and other.id not in ids and other.stem not in stems:
                yield other

    def foreign_option(
        self,
        question: Question,
        rng: random.Random,
        avoid: Callable[[str], bool] = lambda text: False,
        second_question: str = "",
    ) -> str | None:
        """An option of another question that has nothing to do with ``question``; ``None`` if none was found.

        It makes sense on its own ("both of these" does not), differs from every option of the question, and shares no
        content word with the question. The same holds for every question with the stem
        ``second_question``, if one is shown as a second question, since the borrowed option might answer that.
        """
        seconds = self._by_stem.get(second_question.strip(), []) if second_question else []
        options = [*question.options, *(option for second in seconds for option in second.options)]
        texts = (question.context, question.stem, second_question, *options)
        around = frozenset().union(*map(language.content_words, texts))
        for other in self._others((question, *seconds), rng):
            i = rng.randrange(len(other.options))
            text = other.options[i]
            if (
                i not in other.pinned
                and language.stands_alone(text)
                and not around & language.content_words(text)
                and not any(overlapping(text, option) for option in options)
                and not avoid(text)
            ):
                return text
        return None

    def second_stem(self, question: Question, rng: random.Random) -> str | None:
        """The stem of another question that the options of ``question`` do not answer; ``None`` if none was found.

        It is short, makes sense without context or options, is about something, does not ask for an exception (which
        any option might be), and has no option in common with ``question``, whose options neither hold its right
        answers nor are part of them.
        """
        words = language.content_words(question.stem)
        for other in self._others((question,), rng):
            if (
                not other.context
                and len(other.stem) <= LONGEST_SECOND_STEM
                and "\n" not in other.stem.strip()
                and not language.asks_for_exception(other.stem)
                and not language.speaks_of_options(other.stem)
                and not language.generic(other.stem)
                and not any(self._answers(question, second) for second in self._by_stem[other.stem.strip()])
                and 2 * len(words & language.content_words(other.stem)) <= len(words)
            ):
                return other.stem.strip()
        return None

    @staticmethod
    def _answers(question: Question, second: Question) -> bool:
        """Whether an option of ``question`` is one of ``second`` as well, or holds or is part of a right one."""
        right = [second.options[i] for i in second.answers]
        return any(
            any(equivalent(option, other) for other in second.options)
            or any(overlapping(option, other) for other in right)
            for option in question.options
        )


def _place(question_id: str) -> float:
    digest = hashlib.sha256(f"pool\x1f{question_id}".encode()).digest()
    return int.from_bytes(digest[:7], "big") / 2**56


ORDER_TRIES = 100
OTHER_ALPHABETS = ("1", "I", "a")
"""Label sets in place of A, B, C, ...: digits and Roman numerals (P4, 4.2), small letters where neither can be read."""


class NotPossible(Exception):
    """Interventions that a question cannot take, or that found nothing to work with, and why."""

    def __init__(self, reason: str, interventions: tuple[str, ...] = ()) -> None:
        super().__init__(reason)
        self.reason, self.interventions = reason, interventions


@dataclass(frozen=True)
class Scene:
    """What an intervention needs besides the question: the pool, and a generator for each kind of choice."""

    pool: Pool
    rng: Callable[[str], random.Random]


Change = Callable[[Presentation, Question, Scene], Presentation]
"""What an intervention does to the presentation of a question."""


def right_contents(question: Question) -> frozenset[int]:
    """Indices of the right options and of every option that is the same text as one of them."""
    return frozenset(
        i
        for i, option in enumerate(question.options)
        if any(identical(option, question.options[right]) for right in question.answers)
    )


@lru_cache(maxsize=65536)
def obstacles(question: Question) -> dict[str, str]:
    """Code -> why this question cannot take that intervention; the others can be tried."""
    reasons: dict[str, str] = {}
    stem, options = question.stem, question.options
    if any(language.says_none(option) for option in options):
        reasons["DH"] = reasons["AR"] = "an option itself says that none is right"
    if language.generic(stem):
        reasons["DQ"] = reasons["AR"] = "the stem would fit any options"
    if question.pinned:
        reasons["AR"] = "options refer to other options"
    elif language.asks_for_exception(stem):
        reasons["AR"] = "the stem asks for an exception, which an unrelated option would be"
    elif language.compares(stem):
        reasons["AR"] = "the stem compares its options, so that the next best would be right"
    elif not _removable(question):
        reasons.setdefault("AR", "options differ in case or punctuation alone")
    if len({options[i].strip() for i in question.movable}) < 2:
        reasons["OS"] = "fewer than two different options may change place"
    if question.pinned and references(question):
        reasons["LR"] = "options refer to others by their labels"
    if language.speaks_of_options(stem):
        reasons["BT"] = "the stem speaks of its options"
    elif language.generic(stem):
        reasons["BT"] = "the stem says nothing without its options"
    elif question.pinned or any(language.says_none(option) for option in options):
        reasons["BT"] = "options refer to other options"
    elif not all(option.strip() for option in options):
        reasons["BT"] = "an option is empty"
    right = right_contents(question)
    wrong = set(range(len(options))) - right
    # the search for parts is slow: only where it can still change anything
    if {"AR", "BT"} - reasons.keys() and any(partly_right(options[r], options[w]) for r in right for w in wrong):
        for code in ("AR", "BT"):
            reasons.setdefault(code, "a wrong option is part of the right one, or holds it")
    return reasons


def _removable(question: Question) -> list[int]:
    """Indices of the options that can be replaced: those without a sibling that says the same in other letters."""
    return [
        i
        for i, option in enumerate(question.options)
        if not any(equivalent(option, other) and not identical(option, other) for other in question.options)
    ]


def shown(question: Question, kind: str) -> Presentation:
    """The question as given, under the instruction for multiple-choice questions."""
    several = len({question.options[i].strip() for i in question.answers}) > 1
    instruction = wording.SEVERAL_RIGHT if several else wording.MULTIPLE_CHOICE
    return replace(present(question, kind=kind), answers=right_contents(question), instruction=instruction)


def distractor_question(presentation: Presentation, question: Question, scene: Scene) -> Presentation:
    """DQ: a second stem comes before or after the question's own; only one of them fits the options."""
    rng = scene.rng("DQ")
    second = scene.pool.second_stem(question, rng)
    if second is None:
        raise NotPossible("no question was found that the options do not answer as well")
    several = presentation.instruction == wording.SEVERAL_RIGHT
    stems = (presentation.stem, second) if rng.random() < 0.5 else (second, presentation.stem)
    return replace(
        presentation,
        stem=stems[0],
        distractor=stems[1],
        instruction=wording.TWO_QUESTIONS_SEVERAL_RIGHT if several else wording.TWO_QUESTIONS,
    )


def offer_none(presentation: Presentation) -> Presentation:
    """DH: the label N (or None, where an option carries N) for "no option is right" is offered in words."""
    is_option = wording.NONE_LABEL.casefold() in (option.label.casefold() for option in presentation.shown)
    label = wording.NONE_LABEL_WHEN_TAKEN if is_option else wording.NONE_LABEL
    return replace(presentation, none_label=label, hint=wording.NONE_HINT.format(label=label))


def answer_removal(presentation: Presentation, question: Question, scene: Scene) -> Presentation:
    """AR: one option, right or wrong, is replaced by an unrelated one; if no right one is left, "none" is right.

    Options of the same text go together, each replaced by another text.
    """
    rng = scene.rng("AR")
    second = presentation.distractor if presentation.stem == question.stem else presentation.stem
    removed = question.options[rng.choice(_removable(question))]
    texts: list[str] = []
    lines = []
    for line in presentation.shown:
        if identical(line.text, removed):
            text = scene.pool.foreign_option(
                question, rng, avoid=lambda t: any(equivalent(t, other) for other in texts), second_question=second
            )
            if text is None:
                raise NotPossible("no unrelated option was found")
            texts.append(text)
            line = ShownOption(line.label, text, FOREIGN)
        lines.append(line)
    left = presentation.answers & {line.content for line in lines}
    return replace(presentation, shown=tuple(lines), answers=left or frozenset({NONE}))


def option_shuffling(presentation: Presentation, question: Question, scene: Scene) -> Presentation:
    """OS: another order of the options, all others equally likely; pinned ones keep their place."""
    rng = scene.rng("OS")
    for _ in range(ORDER_TRIES):
        order = place(question, rng.sample(question.movable, len(question.movable)))
        if any(not identical(question.options[i], option) for i, option in zip(order, question.options, strict=True)):
            by_content = [presentation.shown[i] for i in order]
            labels = [line.label for line in presentation.shown]
            lines = (replace(line, label=label) for label, line in zip(labels, by_content, strict=True))
            return replace(presentation, shown=tuple(lines))
    raise NotPossible("no other order was found")


def label_replacement(presentation: Presentation, question: Question, scene: Scene) -> Presentation:
    """LR: digits or Roman numerals in place of the letters, whichever cannot be mistaken for an option's text."""
    texts = [line.text for line in presentation.shown]
    readable = [key for key in OTHER_ALPHABETS[:2] if not _mistakable(ALPHABETS[key][: len(texts)], texts)]
    alphabet = scene.rng("LR").choice(readable or OTHER_ALPHABETS[2:])
    return relabel(presentation, ALPHABETS[alphabet])


def relabel(presentation: Presentation, alphabet: tuple[str, ...]) -> Presentation:
    """The same lines under the labels of another alphabet, downwards."""
    lines = (replace(line, label=label) for label, line in zip(alphabet, presentation.shown, strict=False))
    return replace(presentation, shown=tuple(lines))


def _mistakable(labels: tuple[str, ...], texts: list[str]) -> bool:
    """Whether an option's text is a label, or begins with one ("I and II", "2 only")."""
    if labels[0] == "1" and any(number(text) is not None for text in texts):
        return True
    folded = {label.casefold() for label in labels}
    return any(form(text)[0] in folded for text in texts)


def binary_transformation(question: Question, kind: str) -> list[tuple[Question, Presentation]]:
    """BT: one true/false item for each option, in the given order; the question is right if all items are."""
    right = right_contents(question)
    items = [judging_item(question, option, i in right) for i, option in enumerate(question.options)]
    return [(item, replace(judged(item, kind), item=str(i))) for i, item in enumerate(items)]


def judging_item(question: Question, answer: str, true: bool) -> Question:
    """``answer`` put forward for the question, to be judged True (option 0) or False (option 1)."""
    return replace(
        question,
        stem=wording.PROPOSED.format(stem=question.stem, answer=answer),
        options=wording.JUDGEMENTS,
        answers=frozenset({0 if true else 1}),
        pinned=(),
    )


def judged(item: Question, kind: str) -> Presentation:
    """A true/false item under its instruction and labels."""
    presentation = present(item, labels=wording.JUDGEMENT_LABELS, kind=kind)
    return replace(presentation, instruction=wording.TRUE_FALSE)


def judged_under_other_labels(presentation: Presentation, question: Question, scene: Scene) -> Presentation:
    """LR on a true/false item: digits or Roman numerals in place of T and F."""
    presentation = label_replacement(presentation, question, scene)
    return replace(presentation, instruction=wording.TRUE_FALSE_RELABELLED)


APPLY: Mapping[str, Change] = {
    "DQ": distractor_question,
    "DH": lambda presentation, *_: offer_none(presentation),
    "AR": answer_removal,
    "OS": option_shuffling,
    "LR": label_replacement,
}
"""What each intervention does to a presentation whose lines are in the question's order; applied in this order."""
APPLY_TO_JUDGED: Mapping[str, Change] = {
    # False is above True; the labels, which are words, go with them.
    "OS": lambda presentation, *_: replace(presentation, shown=presentation.shown[::-1]),
    "LR": judged_under_other_labels,
}
"""The same for true/false items."""

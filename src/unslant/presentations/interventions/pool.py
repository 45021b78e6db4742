"""Where replaced options and second questions come from: other questions of the same set."""

from __future__ import annotations

import bisect
import hashlib
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from unslant.presentations.interventions import language
from unslant.presentations.interventions.equivalence import equivalent, overlapping
from unslant.questions.question import MathQuestion, Question

LONGEST_SECOND_STEM = 300
"""Characters of a stem that may be shown as a second question; longer ones carry a passage with them."""
TRIES = 400
"""Questions looked at before a search is given up."""


class Pool:
    """Questions arranged on a ring by a hash of their ids.

    A random point on the ring picks the question after it. Neither the order of the file nor the presence of any
    question but the one picked has a say in what is picked.
    """

    def __init__(self, questions: Iterable[Question], maths: Mapping[str, MathQuestion] | None = None) -> None:
        """
        Args:
            questions: each id counts once.
            maths: id -> the open question, where a question here is one with near misses as its options.

        Raises:
            ValueError: if there is no question.
        """
        self._questions = sorted(_distinct(questions), key=lambda question: _place(question.id))
        if not self._questions:
            raise ValueError("a pool needs at least one question")
        self._maths = dict(maths or {})
        self._places = [_place(question.id) for question in self._questions]

    def __len__(self) -> int:
        return len(self._questions)

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
        found: dict[str, list[Question]] = {}
        for question in self._questions:
            found.setdefault(question.stem.strip(), []).append(question)
        return found

    def _others(self, shown: Sequence[Question], rng: random.Random) -> Iterator[Question]:
        """Questions at random but for ``shown``; in the first half of the search, of other subjects only."""
        ids, stems, subjects = ({getattr(q, name) for q in shown} for name in ("id", "stem", "subject"))
        for tried, other in enumerate(self.drawn(rng)):
            elsewhere = tried >= TRIES // 2 or not self._has_subjects or other.subject not in subjects
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

        It makes sense on its own ("both of these" does not), says something else than every option of the question, and
        shares no word that carries meaning with the question. The same holds for every question with the stem
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


def _distinct(questions: Iterable[Question]) -> list[Question]:
    """Each id once, the first one."""
    kept: dict[str, Question] = {}
    for question in questions:
        kept.setdefault(question.id, question)
    return list(kept.values())

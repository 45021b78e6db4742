"""Where replaced options and second questions come from: other questions of the same set."""

from __future__ import annotations

import bisect
import hashlib
import random
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from unslant.presentations.interventions import language
from unslant.presentations.interventions.equivalence import equivalent, overlapping
from unslant.questions.question import Question

TRIES = 400
"""Questions looked at before a search is given up."""


class Pool:
    """Questions arranged on a ring by a hash of their ids.

    A random point on the ring picks the question after it. Neither the order of the file nor the presence of any
    question but the one picked has a say in what is picked.
    """

    def __init__(self, questions: Iterable[Question]) -> None:
        """
        Raises:
            ValueError: if there is no question.
        """
        ring = sorted((_place(question.id), question) for question in _distinct(questions))
        if not ring:
            raise ValueError("a pool needs at least one question")
        self._places = [place for place, _ in ring]
        self._questions = [question for _, question in ring]

    def __len__(self) -> int:
        return len(self._questions)

    @cached_property
    def _has_subjects(self) -> bool:
        return len({question.subject for question in self._questions}) > 1

    def drawn(self, rng: random.Random, tries: int = TRIES) -> Iterator[Question]:
        """Questions at random, possibly the same one again."""
        for _ in range(tries):
            yield self._questions[bisect.bisect(self._places, rng.random()) % len(self._questions)]

    def _others(self, question: Question, rng: random.Random) -> Iterator[Question]:
        """Questions at random but for ``question`` itself; in the first half of the search, of other subjects only."""
        for tried, other in enumerate(self.drawn(rng)):
            elsewhere = tried >= TRIES // 2 or not self._has_subjects or other.subject != question.subject
            if elsewhere and other.id != question.id and other.stem != question.stem:
                yield other

    def foreign_option(
        self, question: Question, rng: random.Random, avoid: Callable[[str], bool] = lambda text: False
    ) -> str | None:
        """An option of another question that has nothing to do with ``question``; ``None`` if none was found.

        It stands on its own ("both of these" does not), says something else than every option of the question, and
        shares no word that carries meaning with the question.
        """
        around = language.content_words(question.stem).union(*map(language.content_words, question.options))
        for other in self._others(question, rng):
            text = other.options[rng.randrange(len(other.options))]
            if (
                language.stands_alone(text)
                and not around & language.content_words(text)
                and not any(overlapping(text, option) for option in question.options)
                and not avoid(text)
            ):
                return text
        return None

    def second_stem(self, question: Question, rng: random.Random) -> str | None:
        """The stem of another question that the options of ``question`` do not answer; ``None`` if none was found.

        It makes sense without context, is about something, and has no option in common with ``question``.
        """
        words = language.content_words(question.stem)
        for other in self._others(question, rng):
            if (
                not other.context
                and not language.generic(other.stem)
                and not any(equivalent(a, b) for a in other.options for b in question.options)
                and 2 * len(words & language.content_words(other.stem)) <= len(words)
            ):
                return other.stem
        return None


def _place(question_id: str) -> float:
    digest = hashlib.sha256(f"pool\x1f{question_id}".encode()).digest()
    return int.from_bytes(digest[:7], "big") / 2**56


def _distinct(questions: Iterable[Question]) -> list[Question]:
    """Each id once, the first one."""
    kept: dict[str, Question] = {}
    for question in questions:
        kept.setdefault(question.id, question)
    return list(kept.values())

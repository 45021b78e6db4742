"""The share of one machine: some of the questions, in the order of the set, with everything asked of them."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from operator import itemgetter
from typing import Any, TypeVar

from unslant.errors import InputError
from unslant.questions import QuestionSet
from unslant.responses.run import ShardHeader
from unslant.scale.plan import Counts, Plan

Item = TypeVar("Item")


@dataclass(frozen=True)
class Shard:
    """One of several parts of a run.

    Attributes:
        index: which one, from 1.
        of: how many there are.
    """

    index: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """From ``3/16``.

        Raises:
            InputError: if it is not written so, or there is no such part.
        """
        found = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text.strip())
        if not found or not 1 <= int(found[1]) <= int(found[2]):
            raise InputError(f"--shard {text!r}: give I/N with I from 1 to N, such as 3/16")
        return cls(int(found[1]), int(found[2]))

    def __str__(self) -> str:
        return f"{self.index}/{self.of}"


@dataclass
class Share:
    """What one machine asks of a run: all of it, or a shard.

    Shards are stretches of the question set, so that prompts that share a beginning stay together; they are about
    equally long by the characters that they show, and a passage common to several questions is not cut. Controls come
    last in every table, so the last shard asks them, and no other does.

    Attributes:
        questions: places in the set of the questions asked, as a range.
        presentations: how many it asks.
        runs: filled in while asking: first row in the whole run's table, and number, of every stretch of rows.
    """

    shard: Shard | None = None
    plan: Plan | None = None
    places: Mapping[str, int] = field(default_factory=dict)
    questions: range = range(0)
    presentations: int = 0
    runs: list[list[int]] = field(default_factory=list)

    def cut(self, asked: Iterable[Item], question: Callable[[Any], Any] = itemgetter(0)) -> Iterator[Item]:
        """Those that are this machine's, noting where their rows belong; ``question`` gives the question of one."""
        if self.shard is None:
            yield from asked
            return
        last, self.runs = self.shard.index == self.shard.of, []
        for row, one in enumerate(asked):
            place = self.places.get(question(one).id)
            if last if place is None else place in self.questions:
                if self.runs and sum(self.runs[-1]) == row:
                    self.runs[-1][1] += 1
                else:
                    self.runs.append([row, 1])
                yield one

    def own(self, found: QuestionSet[Any]) -> QuestionSet[Any]:
        """The questions of the set that are this machine's."""
        mine = self.questions
        return found if self.shard is None else replace(found, questions=found.questions[mine.start : mine.stop])

    @property
    def header(self) -> ShardHeader | None:
        """What the table says of it, once everything was asked; None for a whole run."""
        if self.shard is None or self.plan is None:
            return None
        n = self.plan.n_presentations
        return ShardHeader(
            index=self.shard.index,
            of=self.shard.of,
            questions=len(self.questions),
            runs=tuple((start + way * n, length) for way in range(self.plan.ways) for start, length in self.runs),
            plan=self.plan.model_dump(),
            digest=self.plan.digest,
        )


def stretch(part: Shard, contexts: Sequence[str], counts: Counts) -> range:
    """Places of the questions of a shard. A question is in the shard that the middle of its characters falls in."""
    middles = [2 * end - own for end, own in zip(accumulate(counts.characters), counts.characters, strict=True)][:-1]
    total = 2 * sum(counts.characters[:-1])

    def bound(k: int) -> int:
        return len(middles) if k == part.of else bisect_left(middles, total * k / part.of)

    def whole(k: int) -> int:
        """The bound behind the passage that it cuts, unless that is longer than a shard."""
        first = place = bound(k)
        while place < bound(min(k + 1, part.of)) and _shared(contexts, place):
            place += 1
        return first if place == len(middles) or _shared(contexts, place) else place

    return range(whole(part.index - 1), whole(part.index))


def _shared(contexts: Sequence[str], place: int) -> bool:
    """Whether a question has the passage of the one before."""
    return place > 0 and bool(contexts[place]) and contexts[place] == contexts[place - 1]

"""More than one process: shards of a run and one table from them, a cluster or several GPUs that score for one run.

This file holds the options of every command that can be sharded, and the share of the work that they ask for. It
imports little, as every command imports it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from unslant.errors import InputError

if TYPE_CHECKING:
    from unslant.presentations import Asked
    from unslant.questions import QuestionSet
    from unslant.responses.run import ShardHeader
    from unslant.scale.plan import Plan, Shard

Item = TypeVar("Item")


@dataclass
class Share:
    """One machine's share of a run: all of it, or a shard, which is everything asked about some of the questions.

    Shards are stretches of the question set, so that prompts that share a beginning stay together: dealt out in turn,
    questions on one passage would have it computed once per shard. They are about equally long in characters, and
    questions on one passage stay together. Controls come last in every table, so only the last shard asks them.

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
        """This machine's items; notes where their rows belong. ``question`` returns the question of an item."""
        if self.shard is None:
            yield from asked
            return
        last, self.runs = self.shard.index == self.shard.of, []
        for row, item in enumerate(asked):
            place = self.places.get(question(item).id)
            if last if place is None else place in self.questions:
                if self.runs and sum(self.runs[-1]) == row:
                    self.runs[-1][1] += 1
                else:
                    self.runs.append([row, 1])
                yield item

    def own(self, questions: QuestionSet[Any]) -> QuestionSet[Any]:
        """This machine's questions of the set."""
        if self.shard is None:
            return questions
        return replace(questions, questions=questions.questions[self.questions.start : self.questions.stop])

    @property
    def header(self) -> ShardHeader | None:
        """The header for the table, once everything was asked; None for a whole run."""
        if self.shard is None or self.plan is None:
            return None
        from unslant.responses.run import ShardHeader

        n = self.plan.n_presentations
        return ShardHeader(
            index=self.shard.index,
            of=self.shard.of,
            questions=len(self.questions),
            runs=tuple((start + way * n, length) for way in range(self.plan.ways) for start, length in self.runs),
            plan=self.plan.model_dump(),
            digest=self.plan.digest,
        )


@dataclass(frozen=True, kw_only=True)
class ShardOptions:
    """The part of the work that this machine does."""

    shard: str = ""
    """Ask only part I of N, such as 3/16; unslant merge joins the parts."""
    plan: Path | None = None
    """With --shard: file in which the first part records what is asked; the others must match it."""

    def __post_init__(self) -> None:
        if self.shard:
            from unslant.scale.plan import Shard

            Shard.parse(self.shard)
        elif self.plan:
            raise InputError("--plan applies only to shards: add --shard, such as --shard=1/16, or leave it out")

    def check_none(self, other: str) -> None:
        """InputError if a shard is given together with ``other``, an option for whole runs."""
        if self.shard:
            raise InputError(f"{other} is for whole runs, and --shard asks only part of one: leave one of them out")

    def share(
        self,
        study: str,
        questions: QuestionSet[Any],
        settings: Mapping[str, Any],
        ways: Sequence[object],
        asked: Callable[[], Iterable[Asked]],
        progress: Callable[[str, int, int], None] = lambda *_: None,
    ) -> Share:
        """What this machine asks. Every machine computes the plan of the whole run.

        Args:
            questions: all questions of the run.
            settings, ways: see :func:`~unslant.scale.plan.planned`.
            asked: returns everything that all machines ask, in order; called once.

        Raises:
            InputError: if the plan in the file is another.
            OutputError: if the plan cannot be written.
        """
        if not self.shard:
            return Share()
        from unslant.scale.plan import Shard, planned, stretch

        part = Shard.parse(self.shard)
        places = {question.id: place for place, question in enumerate(questions)}
        plan, numbers, characters = planned(study, places, questions.digest, settings, ways, asked(), progress)
        if self.plan is not None:
            plan.agree(Path(self.plan))
        places_here = stretch(part, [getattr(question, "context", "") for question in questions], characters)
        controls = numbers[-1] if part.index == part.of else 0
        presentations = sum(numbers[place] for place in places_here) + controls
        return Share(part, plan, places, places_here, presentations)


WHOLE = ShardOptions()
"""All of the work."""

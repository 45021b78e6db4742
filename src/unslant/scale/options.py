"""Options of the commands whose work several machines can share; imports little, as every command imports it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unslant.errors import InputError

if TYPE_CHECKING:
    from unslant.presentations import Asked
    from unslant.questions import QuestionSet
    from unslant.scale.plan import Share


@dataclass(frozen=True, kw_only=True)
class ShardOptions:
    """Which part of the work this machine does."""

    shard: str = ""
    """Ask only part I of N, such as 3/16; unslant merge joins the parts."""
    plan: Path | None = None
    """With --shard: file in which the first part records what is asked; the others must match it."""

    def __post_init__(self) -> None:
        if self.shard:
            from unslant.scale.plan import Shard

            Shard.parse(self.shard)
        elif self.plan:
            raise InputError("--plan says what shards ask: add --shard, such as --shard=1/16, or leave it out")

    def check_none(self, other: str) -> None:
        """Raise InputError where a shard is given together with another option, which concerns whole runs."""
        if self.shard:
            raise InputError(f"{other} is about a whole run, and --shard asks a part of one: leave out one of them")

    def share(
        self,
        study: str,
        questions: "QuestionSet[Any]",
        settings: Mapping[str, Any],
        ways: Sequence[object],
        asked: "Callable[[], Iterable[Asked]]",
        progress: Callable[[str, int, int], None] = lambda *_: None,
    ) -> "Share":
        """What this machine asks. Every machine makes the plan of the whole run.

        Args:
            questions: all questions of the run.
            settings, ways: see :func:`~unslant.scale.plan.planned`.
            asked: everything that all machines ask, in order; called once.

        Raises:
            InputError: if the plan in the file is another.
            OutputError: if the plan cannot be written.
        """
        from unslant.scale.plan import Shard, Share, planned, stretch

        if not self.shard:
            return Share()
        part = Shard.parse(self.shard)
        places = {question.id: place for place, question in enumerate(questions)}
        plan, counts = planned(study, places, questions.digest, settings, ways, asked(), progress)
        if self.plan is not None:
            plan.agree(Path(self.plan))
        mine = stretch(part, [getattr(question, "context", "") for question in questions], counts)
        presentations = sum(counts.presentations[place] for place in mine)
        presentations += counts.presentations[-1] if part.index == part.of else 0
        return Share(part, plan, places, mine, presentations)


WHOLE = ShardOptions()
"""All of the work."""

"""How a judge is asked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Self

from unslant.errors import InputError
from unslant.experiment.options import ElicitOptions, ScoredLabelOptions
from unslant.reach import Reach

ERROR = 0.1
"""Error at which abstention is shown unless another is given."""


@dataclass(frozen=True, kw_only=True)
class JudgeSettings(ElicitOptions, ScoredLabelOptions):
    """How pairs are asked about; see :func:`unslant.studies.judge.study.judge`."""

    LEAST: ClassVar = {"repeats": 1}

    template: Annotated[str, Reach.PLACE] = ""
    """Prompt template: a name or the path of a .toml file. By default judge, or judge-reasoning with --reasoning."""
    repeats: int = 1
    """Replies: judge every pair N times in each order, to see how often the verdict changes by itself."""
    error: float = ERROR
    """Highest share of wrong verdicts, above 0 and below 1, at which abstention is shown."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.error < 1:
            raise InputError(f"--error {self.error}: give a share above 0 and below 1")

    def resolved(self, generate: bool) -> Self:
        """See :meth:`ElicitOptions.resolved`; with the templates of judges."""
        if self.repeats > 1 and not generate:
            raise InputError("--repeats applies only to generated replies; add --elicit=generate")
        found = super().resolved(generate)
        return found if self.template else replace(found, template="judge-reasoning" if self.reasoning else "judge")

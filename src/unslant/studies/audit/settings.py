"""How an audit asks."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

from unslant.errors import InputError
from unslant.studies.options import PromptOptions, ScoredLabelOptions, ShotOptions

_OF_REPLIES = ("reasoning", "repeats", "repeat_sample", "adaptive", "calibrate")
"""Fields that say nothing where labels are scored."""


@dataclass(frozen=True, kw_only=True)
class AuditSettings(ShotOptions, ScoredLabelOptions, PromptOptions):
    """How the questions are asked; see :func:`unslant.audit`."""

    LEAST: ClassVar = {"repeats": 0, "repeat_sample": 1, "calibrate": 0}

    orders: str = "auto"
    """auto (labels: up to 24, balanced over positions; replies: up to 6 rotations), all, cyclic, reverse, given, or the
    number to sample."""
    template: str = ""
    """Prompt template: a name or the path of a .toml file. By default plain; for replies label-alone or reasoning."""
    elicit: Literal["auto", "labels", "generate"] = "auto"
    """What is read: labels (their log-probabilities) or generate (replies in words). auto: labels where it can be."""
    reasoning: bool = False
    """Replies: let the model reason first; the answer is asked for at the end."""
    repeats: int = 0
    """Replies: ask some questions N times more in the order of the file, which shows how often sampling alone changes
    an answer."""
    repeat_sample: int = 50
    """Replies: how many questions --repeats asks again, drawn at random."""
    adaptive: bool = False
    """Replies: ask a question in all orders only if its answers as given and reversed differ; see --calibrate."""
    calibrate: float = 0.1
    """Replies: share of the agreeing questions that --adaptive asks in all orders all the same, ten at least, to
    estimate what the others would have shown."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.calibrate > 1:
            raise InputError(f"calibrate {self.calibrate}: give 0 to 1")

    def resolved(self, generate: bool) -> Self:
        """The settings of one way to ask, its own template filled in.

        Raises:
            InputError: on settings of the other way.
        """
        if not generate:
            useless = [name for name in ("reasoning", "repeats", "adaptive") if getattr(self, name)]
            if useless:
                raise InputError(f"--{useless[0]} is about replies, but labels are scored: add --elicit generate")
            return replace(self, elicit="labels", template=self.template or "plain")
        if self.to_end:
            raise InputError("--to-end is about scores of labels, but replies are read: leave it out")
        if self.reasoning and self.template:
            raise InputError(
                "--reasoning has a template of its own: leave out --template, or have yours ask for reasoning and "
                "leave out --reasoning"
            )
        template = self.template or ("reasoning" if self.reasoning else "label-alone")
        return replace(self, elicit="generate", template=template)

    def recorded(self, *left_out: str) -> dict[str, Any]:
        """See :meth:`Options.recorded`; only what applies to this way of asking."""
        others = ("to_end",) if self.elicit == "generate" else ("elicit", *_OF_REPLIES)
        return super().recorded(*others, *left_out)

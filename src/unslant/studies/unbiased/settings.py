"""Settings of the unbiased evaluator."""

from dataclasses import dataclass
from typing import Any, ClassVar

from unslant.experiment.options import Numbers, PromptOptions, ShotOptions, pairs
from unslant.presentations.interventions.matrix import check_probabilities
from unslant.questions import QuestionSet


@dataclass(frozen=True, kw_only=True)
class ComposeSettings(ShotOptions, PromptOptions):
    """How interventions are drawn."""

    LEAST: ClassVar = {"runs": 1}

    runs: int = 5
    """Random draws of interventions for every question."""
    probabilities: Numbers = ()  # type: ignore[assignment]
    """Probability of an intervention, as OS=0.3; repeatable. By default 0.5, and 0.1 for BT."""
    no_instructions: bool = False
    """Leave out the instruction, for models that follow none."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "probabilities", pairs("--probabilities", self.probabilities, float))


@dataclass(frozen=True, kw_only=True)
class UnbiasedSettings(ComposeSettings):
    """How the questions are asked."""

    shots: int = 5
    """Worked examples before each question, changed in the same way."""
    maths: bool = False
    """Questions are open maths questions with numbers as answers."""
    generate: bool = False
    """Read generated replies instead of label probabilities."""
    no_alone: bool = False
    """Do not ask under each intervention alone."""

    @property
    def in_words(self) -> bool:
        """See :attr:`~unslant.experiment.options.Options.in_words`."""
        return self.generate

    def load(self, source: Any, maths: bool = False) -> QuestionSet[Any]:
        """See :meth:`~unslant.experiment.options.LoadOptions.load`."""
        return super().load(source, maths or self.maths)

    def recorded(self, *left_out: str) -> dict[str, Any]:
        """The settings for JSON, with the probability of every intervention."""
        return super().recorded("maths", "generate", *left_out) | {
            "probabilities": check_probabilities(self.probabilities)
        }

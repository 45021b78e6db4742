"""Settings of the unbiased evaluator."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from unslant.experiment.options import Numbers, PromptOptions, ShotOptions, pairs
from unslant.flags import Flag
from unslant.presentations.interventions.matrix import check_probabilities
from unslant.questions import QuestionSet


@dataclass(frozen=True, kw_only=True)
class ComposeSettings(ShotOptions, PromptOptions):
    """How interventions are drawn."""

    LEAST: ClassVar = {"runs": 1}

    runs: int = 5
    """Random draws of interventions for every question."""
    probabilities: Annotated[Numbers, Flag("--probability", "-p")] = ()  # type: ignore[assignment]
    """Probability of an intervention, as OS=0.3; may be given several times. By default the paper's: 0.5, BT 0.1."""
    no_instructions: bool = False
    """Leave out the first sentence, which says what to do: models that follow no instructions do not need it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "probabilities", pairs("--probability", self.probabilities, float))


@dataclass(frozen=True, kw_only=True)
class UnbiasedSettings(ComposeSettings):
    """How the questions are asked."""

    shots: int = 5
    """Worked examples before each question, under the same interventions."""
    maths: bool = False
    """Questions are open maths questions with numbers as answers."""
    generate: bool = False
    """Read generated replies instead of label probabilities; models that can only generate need no such flag."""
    no_alone: bool = False
    """Skip asking under each intervention by itself."""

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

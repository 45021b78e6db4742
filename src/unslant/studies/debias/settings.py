"""How debiasing methods are compared, answer questions and are trained."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypedDict

from unslant.debiasing.lora1 import TrainKeywords, TrainSettings
from unslant.experiment import ElicitOptions, Names, Pool, Pools, PromptOptions, ScoredLabelOptions
from unslant.models.options import ModelKeywords
from unslant.reach import Reach

DEFAULT_METHODS = (
    "vote", "adaptive-fast", "pride", "gray-box", "gray-box-calibrated", "bnp", "aoi", "set-based", "lora-1",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class DebiasSettings(ScoredLabelOptions, PromptOptions):
    """Settings of :class:`unslant.studies.debias.study.DebiasStudy`."""

    methods: Annotated[Names, Reach.PLACE] = DEFAULT_METHODS
    """Methods separated by commas, with settings after colons; see unslant debias."""
    train: Pools = ()
    """Training questions, one file for each of QUESTIONS, separated by commas; by default half of each."""
    no_transfer: bool = False
    """Skip measuring fitted methods on other sets."""
    orders: str = "auto"
    """Orders in which questions are listed to measure the remaining bias; see unslant audit."""


@dataclass(frozen=True, kw_only=True)
class AnswerSettings(ScoredLabelOptions, ElicitOptions):
    """How questions are answered."""

    method: Annotated[str, Reach.PLACE] = "vote"
    """none, vote, adaptive, pride, gray-box, bnp, aoi, set-based or lora-1 (variants: --help-all), with settings after
    colons: vote:orders=shared:24, lora-1:adapter=DIR."""
    train: Pool | None = None
    """Questions to fit on, for methods that need fitting; by default QUESTIONS."""


class PromptKeywords(TypedDict, total=False):
    """The fields of :class:`PromptOptions` and :class:`LabelOptions` as keywords, for editors."""

    fields: Mapping[str, str]
    answer_base: int | None
    answer_kind: str
    skip_bad: bool
    limit: int | None
    seed: int
    template: str | Path
    chat: bool
    labels: str | Sequence[str]
    to_end: bool


class AnswerKeywords(ModelKeywords, PromptKeywords, total=False):
    """Keywords of :func:`unslant.debias`, for editors and type checkers: how a named model is opened, the fields of
    :class:`AnswerSettings`, and how replies are generated."""

    elicit: Literal["auto", "labels", "generate"]
    reasoning: bool
    method: str
    train: Pool | None
    temperature: float | None
    max_tokens: int | None
    inspect: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class AdapterSettings(ScoredLabelOptions, PromptOptions, TrainSettings):
    """How an adapter is trained."""

    held_out: Pool | None = None
    """Questions to monitor the training on; by default a fifth of QUESTIONS, at most 64."""


class AdapterKeywords(ModelKeywords, PromptKeywords, TrainKeywords, total=False):
    """Keywords of :func:`train`: the fields of :class:`AdapterSettings`, and how a named model is opened."""

    held_out: Pool | None

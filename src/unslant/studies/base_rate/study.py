"""The base-rate study (P5): labels a model prefers before reading anything, and their effect on its score."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, cast

import pyarrow as pa

from unslant.asking import Asked
from unslant.errors import InputError, MostlyFailedError
from unslant.experiment.job import Asking, Given
from unslant.experiment.options import WITH_LOG, ChooseShotsOptions, OutputOptions, PromptOptions, ScoredLabelOptions
from unslant.experiment.outputs import check_file
from unslant.experiment.result import StudyResult
from unslant.experiment.study import Keywords, Study, function
from unslant.flags import check_unused
from unslant.presentations import control_presentations, nvr_presentations, parse_labels, present
from unslant.prompts import Cloze, Counterfactual, Elicitation
from unslant.questions import Question
from unslant.reach import Reach
from unslant.responses import Responses
from unslant.responses.importers.label_scores import load_recorded
from unslant.studies.base_rate.charts import check_format, save_charts
from unslant.studies.base_rate.findings import GIVEN
from unslant.studies.base_rate.result import BaseRateResult


@dataclass(frozen=True, kw_only=True)
class BaseRateSettings(ChooseShotsOptions, ScoredLabelOptions, PromptOptions):
    """How the questions are asked; see :func:`unslant.studies.base_rate.study.base_rate`."""

    template: Annotated[str, Reach.PLACE] = "base-rate"
    """Prompt template: a name, or the path of a .toml file; base-rate is the paper's layout."""
    canary: str = "best"
    """Word scored after each label (counterfactual)."""
    no_nvr: bool = False
    """Skip the Nvr-X variants, and with them the cost of the base rates: ask only the given order."""


@dataclass(frozen=True, kw_only=True)
class BaseRateOutputs(OutputOptions):
    """What is written."""

    charts: Path | None = None
    """Draw base rates against gold labels to a .pdf, .svg or .png file."""


class BaseRate(Study[BaseRateSettings]):
    """Measure which labels a model prefers before it reads the question (base rates, Nvr-X).

    Asks every question as given and as Nvr-X, and questions without content, each by cloze and by counterfactual.
    Without arguments, studies the reference model prefers-a on the embedded questions. With --log FILE, uses recorded
    label log-probabilities (.csv, .parquet, .gz): MODEL selects a recorded model, QUESTIONS provides the texts for
    the shortcut controls, and --fields maps the file's columns.

    Examples:
      unslant study base-rate org/name mmlu --html report.html
      unslant study base-rate --log scores.csv.gz
    """

    name = "base-rate"
    settings = BaseRateSettings
    result = BaseRateResult
    outputs = BaseRateOutputs
    of_logs = ("fields", "seed")
    in_shards = True

    def ask(self, asking: Asking[BaseRateSettings]) -> Responses:
        settings, questions = asking.settings, asking.questions
        alphabet, writer = parse_labels(settings.labels), settings.writer()
        elicitations: list[Elicitation] = [Cloze(writer), Counterfactual(writer, settings.canary)]
        chooser = settings.chooser(questions, alphabet)
        presented = base_rate_presentations(questions.questions, alphabet, not settings.no_nvr, settings.seed)
        pages = [(question, page.with_shots(chooser(question))) for question, page in presented]
        return asking.ask(pages, elicitations)

    def measured(self, responses: Responses) -> BaseRateResult:
        try:
            return BaseRateResult.of(responses)
        except InputError as error:
            from unslant.experiment.page_parts import unanswered

            failure = unanswered(responses)
            raise MostlyFailedError(f"{failure}: {error}") if failure else error from None

    def check(self, given: Given[BaseRateSettings]) -> None:
        if given.outputs and given.outputs.charts:
            given.shards.check_none("--charts")
            check_file(given.outputs.charts)
            check_format(given.outputs.charts)

    def check_log(self, model: str | None, questions: Any, more: Sequence[str], groups: Sequence[Any]) -> None:
        check_unused(WITH_LOG, *groups, but=self.of_logs)  # MODEL and QUESTIONS select among what is recorded

    def read(self, given: Given[BaseRateSettings]) -> BaseRateResult:
        settings, model = given.settings, next(iter(given.models), None)
        texts = settings.pool(given.questions)
        tables = [load_recorded(path, fields=settings.fields, model=model) for path in given.log]
        models = sorted({table.run.model for table in tables})
        if len(models) > 1:
            raise InputError(f"the files hold responses of several models: {', '.join(models)}; give those of one")
        responses = replace(tables[0], table=pa.concat_tables([table.table for table in tables]))
        return BaseRateResult.of(responses, texts.questions if texts else None, settings.seed)

    def also(self, result: StudyResult, given: Given[BaseRateSettings]) -> Iterator[Callable[[], object]]:
        if given.outputs and given.outputs.charts:
            yield partial(save_charts, cast(BaseRateResult, result), given.outputs.charts)


@dataclass(frozen=True, kw_only=True)
class BaseRateKeywords(Keywords, BaseRateSettings):
    """Keywords of :func:`base_rate`."""


base_rate = function(
    BaseRate(),
    BaseRateKeywords,
    BaseRateResult,
    """
    >>> result = unslant.study.base_rate("prefers-a", "embedded", limit=20)
    >>> sorted(result.found)
    ['cloze', 'counterfactual']
    """,
)


def base_rate_presentations(
    questions: Sequence[Question], alphabet: tuple[str, ...], nvr: bool = True, seed: int = 0
) -> list[Asked]:
    """Every question as given and (``nvr``) in its Nvr-X variants, then the controls for every number of options."""
    pages: list[Asked] = []
    for question in questions:
        pages.append((question, present(question, alphabet=alphabet, kind=GIVEN)))
        if nvr:
            pages += [(question, presentation) for presentation in nvr_presentations(question, alphabet, seed)]
    for n in sorted({len(question.options) for question in questions}):
        pages += control_presentations(n, alphabet, seed=seed)
    return pages

"""The base-rate study (P5): labels a model prefers before reading anything, and their effect on its score."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from unslant.asking import Asked
from unslant.errors import InputError
from unslant.experiment.job import Asking, Given
from unslant.experiment.options import WITH_LOG, check_unused
from unslant.experiment.outputs import check_file
from unslant.experiment.result import StudyResult
from unslant.experiment.study import Keywords, Study, check_answered, function
from unslant.presentations import control_presentations, nvr_presentations, parse_labels, present
from unslant.prompts import Cloze, Counterfactual, Elicitation
from unslant.questions import Question, load_questions
from unslant.responses import Responses, load_recorded
from unslant.studies.base_rate.charts import check_format, save_charts
from unslant.studies.base_rate.findings import GIVEN
from unslant.studies.base_rate.result import BaseRateResult, result_of
from unslant.studies.base_rate.settings import BaseRateOutputs, BaseRateSettings


class BaseRate(Study[BaseRateSettings]):
    """Measure which labels a model prefers before it reads the question (base rates, Nvr-X).

    Every question is asked as given and as Nvr-X, and so are questions without content, each by cloze and by
    counterfactual. Without arguments, studies the reference model prefers-a on the embedded questions. With --log FILE,
    uses recorded label log-probabilities (.csv, .parquet, .gz): MODEL selects a recorded model, QUESTIONS provides the
    texts for the shortcut controls, and --fields maps the file's columns.

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
        asked = [(question, shown.with_shots(chooser.of(question))) for question, shown in presented]
        return asking.ask(asked, elicitations)

    def measured(self, responses: Responses) -> BaseRateResult:
        try:
            return BaseRateResult.of(responses)
        except InputError as error:
            raise check_answered(responses, error) from None

    def check(self, given: Given[BaseRateSettings]) -> None:
        if given.outputs and given.outputs.charts:
            given.shards.check_none("--charts")
            check_file(given.outputs.charts)
            check_format(given.outputs.charts)

    def check_log(self, model: str | None, questions: Any, more: Sequence[str], groups: Sequence[Any]) -> None:
        check_unused(WITH_LOG, *groups, but=self.of_logs)  # MODEL and QUESTIONS select among what is recorded

    def read(self, given: Given[BaseRateSettings]) -> BaseRateResult:
        settings, texts = given.settings, given.settings.pool(given.questions)
        model = next(iter(given.models), None)
        return base_rate_recorded(given.log, texts, model=model, fields=settings.fields, seed=settings.seed)

    def also(self, result: StudyResult, given: Given[BaseRateSettings]) -> Iterator[Callable[[], object]]:
        if given.outputs and given.outputs.charts:
            yield partial(save_charts, cast(BaseRateResult, result), given.outputs.charts)


@dataclass(frozen=True, kw_only=True)
class BaseRateKeywords(Keywords, BaseRateSettings):
    """Keywords of :func:`base_rate`."""


base_rate = function(BaseRate(), BaseRateKeywords, BaseRateResult)


def base_rate_presentations(
    questions: Sequence[Question], alphabet: tuple[str, ...], nvr: bool = True, seed: int = 0
) -> list[Asked]:
    """Every question as given and (``nvr``) in its Nvr-X variants, then the controls for every number of options."""
    asked: list[Asked] = []
    for question in questions:
        asked.append((question, present(question, alphabet=alphabet, kind=GIVEN)))
        if nvr:
            asked += [(question, presentation) for presentation in nvr_presentations(question, alphabet, seed)]
    for n in sorted({len(question.options) for question in questions}):
        asked += control_presentations(n, alphabet, seed=seed)
    return asked


def base_rate_recorded(
    source: str | Path | Responses | Sequence[str | Path],
    questions: Any = None,
    *,
    model: str | None = None,
    fields: Mapping[str, str] | None = None,
    seed: int = 0,
) -> BaseRateResult:
    """The same study from recorded log-probabilities, without a model.

    Args:
        source: one or several files of one model for :func:`unslant.responses.load_recorded`, including those of
            :meth:`BaseRateResult.to_parquet`, or a table of responses.
        questions: the texts for the shortcut controls, by default those in a table of ours; anything that
            :func:`unslant.load_questions` takes. Recorded ids may be the last parts of the questions' ids
            (``abstract_algebra/0`` for ``mmlu/test/abstract_algebra/0``).
        model, fields: see unslant.responses.load_recorded.

    Raises:
        InputError: if a file cannot be used, or the questions are not the recorded ones.
    """
    if isinstance(source, Responses):
        responses = source
    else:
        paths = [source] if isinstance(source, str | Path) else source
        responses = _joined([load_recorded(path, fields=fields, model=model) for path in paths])
    if questions is not None:
        return result_of(responses, list(load_questions(questions)), seed)
    return result_of(responses, responses.questions or None, seed or responses.run.settings.get("seed", 0))


def _joined(tables: Sequence[Responses]) -> Responses:
    models = sorted({table.run.model for table in tables})
    if len(models) > 1:
        raise InputError(f"the files hold responses of several models: {', '.join(models)}; give those of one")
    return replace(tables[0], table=pa.concat_tables([table.table for table in tables]))

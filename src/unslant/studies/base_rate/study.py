"""The base-rate study (P5): labels a model prefers before reading anything, and their effect on its score."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
import pyarrow as pa

from unslant.arrays import Jsonable, jsonable
from unslant.asking import Asked
from unslant.errors import InputError, MostlyFailedError, needed
from unslant.experiment import WITH_LOG, ChooseShotsOptions, OutputOptions, PromptOptions, ScoredLabelOptions
from unslant.experiment.comparison import check_whole
from unslant.experiment.job import Asking, Given
from unslant.experiment.outputs import check_file
from unslant.experiment.result import RecordedResult, StudyResult
from unslant.experiment.study import Keywords, Study, function
from unslant.flags import check_unused
from unslant.metrics import Estimate
from unslant.metrics.catalogue import metric_at
from unslant.metrics.registry import metric
from unslant.metrics.shortcuts import Shortcut, shortcuts
from unslant.presentations import control_presentations, nvr_presentations, parse_labels, present
from unslant.prompts import Cloze, Counterfactual, Elicitation
from unslant.questions import Question
from unslant.reach import Reach
from unslant.reports.export import FORMATS, save_figure
from unslant.reports.numbers import listed
from unslant.reports.style import PAPER, specification
from unslant.responses import Responses
from unslant.responses.importers.label_scores import load_recorded
from unslant.responses.importers.registry import log_files
from unslant.studies.base_rate.charts import figure_1
from unslant.studies.base_rate.findings import ELICITATIONS, GIVEN, Findings, Hypothesis, findings, hypotheses

_ROW = ("question_id", "kind", "item", "elicitation", "repeat")
PRESENTATIONS = ("nvr-A", "nvr-B", "nvr-C", "nvr-D", GIVEN)
SOURCE = "MMLU"

TABLE_3: dict[str, dict[str, tuple[float, ...]]] = {
    "gpt2": {"cloze": (0.007, 0.336, 0.333, 0.324, 0.231), "counterfactual": (0.134, 0.326, 0.320, 0.227, 0.248)},
    "llama2": {"cloze": (0.314, 0.398, 0.346, 0.417, 0.348), "counterfactual": (0.238, 0.270, 0.201, 0.308, 0.260)},
    "llama3": {"cloze": (0.560, 0.586, 0.571, 0.629, 0.574), "counterfactual": (0.341, 0.402, 0.314, 0.450, 0.341)},
    "mistral": {"cloze": (0.273, 0.445, 0.468, 0.512, 0.393), "counterfactual": (0.107, 0.317, 0.304, 0.341, 0.338)},
    "solar": {"cloze": (0.503, 0.625, 0.608, 0.594, 0.564), "counterfactual": (0.113, 0.340, 0.321, 0.364, 0.366)},
}
"""Model -> elicitation -> accuracy on each of ``PRESENTATIONS``: mean over 57 subjects, ties to the first label."""


@dataclass(frozen=True)
class PublishedCell(Jsonable):
    """A published accuracy, ours (unweighted mean over subjects, ties to the first label), and ours minus theirs."""

    presentation: str
    elicitation: str
    published: float
    ours: Estimate
    difference: float


@metric("published.published", "paper", "as published", unit="share", source="P5 table 3")
@metric("published.ours", "here", "from the scores at hand", unit="share")
@metric("published.difference", "difference", "here minus the paper", digits=4, unit="difference")
def published(model: str, source: str, by_elicitation: Mapping[str, Findings]) -> tuple[PublishedCell, ...]:
    """Published accuracies of ``model`` and ours; empty for other models or question sets."""
    plain = model.lower().replace("-", "").replace("_", "").replace(" ", "")
    table = next((table for name, table in TABLE_3.items() if plain.startswith(name)), None)
    if table is None or source != SOURCE:
        return ()
    return tuple(
        PublishedCell(presentation, elicitation, value, ours, ours.value - value)
        for elicitation, measured in by_elicitation.items()
        for presentation, value in zip(PRESENTATIONS, table[elicitation], strict=True)
        for ours in (cell.by_subject["first"] for cell in measured.cells if cell.presentation == presentation)
    )


@dataclass(frozen=True)
class BaseRateResult(RecordedResult):
    """The result of the base-rate study.

    Attributes:
        found: findings by elicitation (``cloze``, ``counterfactual``).
        shortcuts: test-taking shortcuts against the cloze answers; empty without question texts.
        published: comparison with the paper, for its own models and questions.
    """

    study = "base-rate"
    unwritten = ("responses", "found")

    responses: Responses
    found: Mapping[str, Findings]
    hypotheses: tuple[Hypothesis, ...]
    shortcuts: tuple[Shortcut, ...]
    published: tuple[PublishedCell, ...]

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"elicitations": jsonable(self.found)}

    def numbers_compared_with(self, earlier: Mapping[tuple[str, ...], Any]) -> Sequence[tuple[str, ...]]:
        """Accuracy as given and in each Nvr-X, and how uneven the labels are, by elicitation."""
        keys = {"nvr.plain", "nvr.accuracy", "base_rates.distance"}
        return [path for path in earlier if (one := metric_at(path)) and one.key in keys]

    @classmethod
    def of(cls, responses: Responses, questions: Sequence[Question] | None = None) -> BaseRateResult:
        """The result, from responses alone.

        Args:
            questions: the texts for the shortcut controls, by default those in the table. Recorded ids may be the last
                parts of the questions' ids (``abstract_algebra/0`` for ``mmlu/test/abstract_algebra/0``).

        Raises:
            InputError: if there is no response of these elicitations, or the questions are not those recorded.
        """
        names = set(responses.table["elicitation"].unique().to_pylist())
        measured = [name for name in ELICITATIONS if name in names]
        if not measured:
            there = ", ".join(sorted(names)) or "none"
            raise InputError(f"no responses by {' or '.join(ELICITATIONS)}; there are {there}")
        questions, seed = questions or responses.questions, responses.run.settings.get("seed", 0)
        by_elicitation: dict[str, Findings] = {}
        for name in measured:
            by_elicitation[name] = findings(responses, name, cloze=by_elicitation.get("cloze"), seed=seed)
        return cls(
            responses,
            by_elicitation,
            hypotheses(by_elicitation),
            _shortcuts(questions, by_elicitation[measured[0]]) if questions else (),
            published(responses.run.model, responses.run.source, by_elicitation),
        )


def _shortcuts(questions: Sequence[Question], findings: Findings) -> tuple[Shortcut, ...]:
    scores = findings.given
    rows = {question_id: row for row, question_id in enumerate(scores.ids)}
    choices: list[int | None] = []
    for question in questions:
        parts = question.id.split("/")
        row = next((rows[end] for i in range(len(parts)) if (end := "/".join(parts[i:])) in rows), None)
        if row is not None and set(np.flatnonzero(scores.right[row])) != question.answers:
            raise InputError(
                f"question {question.id!r}: its right option is not the one recorded for {scores.ids[row]!r}; "
                "give the question file that the responses were recorded with"
            )
        choices.append(None if row is None else int(scores.chosen[row]))
    if all(choice is None for choice in choices):
        raise InputError(
            f"no question's id is among the recorded ones: questions have ids like {questions[0].id!r}, "
            f"responses like {scores.ids[0]!r}"
        )
    return shortcuts(questions, choices)


@dataclass(frozen=True, kw_only=True)
class BaseRateSettings(ChooseShotsOptions, ScoredLabelOptions, PromptOptions):
    """How the questions are asked; see :func:`unslant.studies.base_rate.study.base_rate`."""

    template: Annotated[str, Reach.PLACE] = "base-rate"
    """Prompt template: a name, or the path of a .toml file; base-rate is the paper's layout."""
    canary: str = "best"
    """Word scored after each label (counterfactual)."""
    no_nvr: bool = False
    """Skip the Nvr-X variants: base rates are measured, but not what they cost the score."""


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
    of_logs = ("fields",)
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
        files = [file for log in given.log for file in log_files(Path(log))]
        tables = [load_recorded(file, fields=settings.fields, model=model) for file in files]
        models = sorted({table.run.model for table in tables})
        if len(models) > 1:
            raise InputError(f"the files have responses of several models: {', '.join(models)}; give those of one")
        check_whole(tables)
        earlier: set[tuple[object, ...]] = set()
        for path, responses in zip(files, tables, strict=True):
            rows = set(zip(*(responses.table[name].to_pylist() for name in _ROW), strict=True))
            if again := min(rows & earlier, default=None):
                raise InputError.at(path, f"question {again[0]!r} is in another of these files too; give each row once")
            earlier |= rows
        responses = replace(tables[0], table=pa.concat_tables([table.table for table in tables]))
        return BaseRateResult.of(responses, texts.questions if texts else None)

    def also(self, result: StudyResult, given: Given[BaseRateSettings]) -> Iterator[Callable[[], object]]:
        if given.outputs and given.outputs.charts:
            yield partial(save_charts, cast(BaseRateResult, result), given.outputs.charts)


@dataclass(frozen=True, kw_only=True)
class BaseRateKeywords(Keywords, BaseRateSettings):
    """Keywords of :func:`base_rate`.

    Examples:
        >>> result = unslant.study.base_rate("prefers-a", "embedded", limit=20)
        >>> sorted(result.found)
        ['cloze', 'counterfactual']
    """


base_rate = function(BaseRate(), BaseRateKeywords, BaseRateResult)


def check_format(path: str | Path) -> None:
    """Raise InputError unless the path ends in one of :data:`FORMATS`, ModelError if charts cannot be drawn here."""
    needed("vl_convert", "drawing figures")
    if Path(path).suffix.lower() not in FORMATS:
        raise InputError.at(path, f"charts can be written as {listed(FORMATS).replace(' and ', ' or ')}")


def save_charts(result: BaseRateResult, path: str | Path) -> None:
    """Draw all charts into one PDF, SVG or PNG file, offline, with a column per elicitation.

    Raises:
        InputError: see :func:`check_format`.
    """
    import altair as alt

    check_format(path)
    style = replace(PAPER, width=200)
    columns = []
    for one in result.found.values():
        pictures = [chart for figure in figure_1(one) for chart in figure.charts]
        drawings = [chart.draw(style).properties(title=chart.title, width=style.width) for chart in pictures]
        columns.append(alt.vconcat(*drawings, spacing=30).resolve_scale(xOffset="independent", color="independent"))
    whole = alt.hconcat(*columns, spacing=50, title=result.run.model or "model")
    spec = specification(whole.resolve_scale(xOffset="independent", color="independent"), style)
    save_figure(spec, Path(path), [result.provenance.model_dump()])


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

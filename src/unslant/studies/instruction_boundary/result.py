"""The result of the instruction-boundary study, and the rows of its table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from unslant.asking import GENERATE
from unslant.errors import InputError
from unslant.experiment.result import RecordedResult
from unslant.presentations import Presentation, ShownOption
from unslant.questions import JudgingQuestion, Question
from unslant.replies import Extracted, chosen_contents, extract
from unslant.replies.judge import needs_judge
from unslant.responses import Response, Responses
from unslant.studies.instruction_boundary.metrics import JUDGED, BoundaryMetrics, boundary_metrics


@dataclass(frozen=True)
class BoundaryStudy(RecordedResult):
    """The result of the study.

    Attributes:
        metrics: every number, with N and interval; at the first temperature, where several were asked.
        by_temperature: temperature -> every number, where several were asked; else empty.
        responses: the table of responses.
        statuses: status -> number of rows.
    """

    study = "instruction-boundary"
    unwritten = ("metrics", "responses")

    metrics: BoundaryMetrics
    responses: Responses
    statuses: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    by_temperature: Mapping[float, BoundaryMetrics] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | self.metrics.to_dict()

    @classmethod
    def of(cls, responses: Responses) -> BoundaryStudy:
        """The result from a stored table, whose replies are read again with today's reader.

        A judge's reading stays where the patterns still find nothing. So do all readings of choices in a table without
        the texts of its questions, with a note.
        """
        texts = {question.id: question for question in responses.questions}
        rows = [_read_again(row, texts.get(row.question_id)) for row in responses.rows()]
        result = result_of(replace(Responses.from_rows(rows, responses.run), questions=responses.questions))
        unread = sum(row.raw is not None and not _readable(row, texts.get(row.question_id)) for row in rows)
        if not unread:
            return result
        why = f"{unread:,} replies keep their first reading: the table does not hold their questions"
        return replace(result, notes=(*result.notes, f"{why}; to read them again, repeat the run"))


def result_of(responses: Responses) -> BoundaryStudy:
    """The study's result from its table of responses alone.

    Raises:
        InputError: if the table holds no answers in words.
    """
    settings = responses.run.settings
    runs = sorted(set(responses.table["run"].to_pylist())) or [0]
    seed = settings.get("seed", 0)
    measured = [boundary_metrics(responses.where(run=run), seed=seed) for run in runs]
    temperatures = settings.get("temperatures", [])
    if len(runs) > 1 and not 0 <= runs[0] <= runs[-1] < len(temperatures):
        raise InputError(f"holds answers at more temperatures than the {len(temperatures)} of its settings")
    return BoundaryStudy(
        measured[0],
        responses,
        Counter(responses.table["status"].to_pylist()),
        responses.run.notes,
        by_temperature={float(temperatures[run]): metrics for run, metrics in zip(runs, measured, strict=True)}
        if len(runs) > 1
        else {},
    )


def _readable(row: Response, question: Question | None) -> bool:
    return row.labels == JudgingQuestion.VERDICTS or question is not None


def _read_again(row: Response, question: Question | None) -> Response:
    if not row.raw or row.status == "error" or not _readable(row, question):
        return row
    options = question.options if question else JudgingQuestion.VERDICTS
    labelled = tuple(
        ShownOption(label, options[code] if code >= 0 else "", code)
        for label, code in zip(row.labels, row.contents, strict=True)
    )
    presentation = Presentation(row.question_id, row.kind, "", labelled, row.answers)
    reading = extract(row.raw, presentation, cut=row.status == "cut")
    if row.elicitation != GENERATE and reading.status in ("unparsed", "cut"):
        return row
    contents = chosen_contents(reading, presentation)
    return replace(row, status=reading.status, chosen=contents, elicitation=GENERATE)


def needs_reading(row: Response, presentation: Presentation) -> bool:
    """Whether the patterns find no answer in a reply that a judge may read."""
    return row.status == "unparsed" and needs_judge(extract(row.raw or "", presentation))


def as_judged(row: Response, presentation: Presentation, judgement: Extracted) -> Response:
    """The row of a reply as a judge read it."""
    contents = chosen_contents(judgement, presentation)
    return replace(row, status=judgement.status, chosen=contents, elicitation=JUDGED)

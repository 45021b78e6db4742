"""The result of the evaluator probe."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
from pydantic import BeforeValidator, Field

from unslant.arrays import Bools, Floats
from unslant.errors import InputError
from unslant.experiment.comparison import agreements
from unslant.experiment.page_parts import spent
from unslant.experiment.result import StudyResult
from unslant.files import Cell, TableRow
from unslant.metrics import METRICS, Bootstrap, Estimate, Numbers, agreement, verdicts
from unslant.presentations import question_rng
from unslant.questions.formats import table_rows
from unslant.reports import Column, Figure, Page, Panel, Plot, Tile, charts
from unslant.reports.numbers import count, listed, magnitude, number, unsettled
from unslant.responses import Run, write_table
from unslant.studies.unbiased.probe import metrics
from unslant.studies.unbiased.probe.metrics import HIGHEST, LOWEST, ConsensusRates

COLUMNS = ("question_id", "subject", "context", "kind", "rephraser", "judge", "score")
MISSING = ("", "nan", "na", "none", "null")


@dataclass(frozen=True)
class ScoreTable:
    """Confidence 1 to 10 of J models, who judge and rephrase, for Q questions; nan where none was given.

    Attributes:
        ids, subjects: of the questions.
        original: (J, Q) for the questions as published; may be all nan if strength 1 alone is of interest.
        rephrased: (J rephrasers, J judges, Q).
        boat: (J, Q) for the questions under interventions; all nan if they were not judged.
        contexts: (Q,) passage of each question; by default each is on its own.
    """

    models: tuple[str, ...]
    ids: tuple[str, ...]
    subjects: tuple[str, ...]
    original: Floats
    rephrased: Floats
    boat: Floats
    contexts: tuple[str, ...] = ()

    def changed(self, strength: float, seed: int = 0) -> Bools:
        """(Q,) which questions are changed, each with probability ``strength``; a higher strength only adds some."""
        draws = [question_rng(question_id, seed, "probe/strength").random() for question_id in self.ids]
        return np.array(draws) < strength

    @property
    def has_boat(self) -> bool:
        """Whether the questions were also judged under interventions."""
        return not np.isnan(self.boat).all()

    @property
    def missing(self) -> int:
        """Confidences that were asked for and not given."""
        parts = (self.original, self.rephrased, self.boat)
        return int(sum(np.isnan(part).sum() for part in parts if not np.isnan(part).all()))

    def to_parquet(self, path: str | Path, run: Run | None = None) -> None:
        """Write one row a confidence, and how they came to be; :func:`load_scores` reads the rows back."""
        versions = [("original", "", self.original)]
        versions += [("rephrased", name, scores) for name, scores in zip(self.models, self.rephrased, strict=True)]
        versions += [("boat", "", self.boat)] if self.has_boat else []
        contexts = self.contexts or ("",) * len(self.ids)
        rows = [
            (self.ids[q], self.subjects[q], contexts[q], kind, rephraser, self.models[j], float(scores[j, q]))
            for kind, rephraser, scores in versions
            for q, j in np.ndindex(scores.T.shape)
        ]
        write_table(pa.table(list(map(list, zip(*rows, strict=True))), COLUMNS), run or Run(study="probe"), (), path)


def load_scores(path: str | Path) -> ScoreTable:
    """A table from a CSV, TSV, JSONL or Parquet file with ``question_id``, ``rephraser``, ``judge`` and ``score``.

    ``subject``, ``context`` and ``kind`` (``original``, ``rephrased``, ``boat``) are optional; without ``kind``, a row
    without a rephraser is about the question as published. An empty score was asked for and not given.

    Raises:
        InputError: naming the line and field.
    """
    cells: dict[tuple[str, str, str, str], float] = {}
    about: dict[str, tuple[str, str]] = {}
    for place, row in table_rows(path, _Score):
        if not row.judge:
            raise InputError.at(place, "is empty", field="judge")
        kind = row.kind or ("rephrased" if row.rephraser else "original")
        if (kind == "rephrased") != bool(row.rephraser):
            raise InputError.at(place, "is given for rephrased questions, and for them alone", field="rephraser")
        key = (row.question_id, kind, row.rephraser, row.judge)
        if key in cells:
            raise InputError.at(place, f"a second score by {row.judge!r} for the same question", field="score")
        cells[key] = math.nan if row.score is None else row.score
        about.setdefault(row.question_id, (row.subject, row.context))
    names = tuple(dict.fromkeys(name for *_, rephraser, judge in cells for name in (judge, rephraser) if name))
    if len(names) < 2:
        raise InputError.at(path, "holds one model: consensus needs at least two")
    ids = tuple(about)
    subjects, contexts = zip(*about.values(), strict=True)
    index, column = ({name: i for i, name in enumerate(keys)} for keys in (names, ids))
    shape = (len(names), len(ids))
    versions = {"original": np.full(shape, np.nan), "boat": np.full(shape, np.nan)}
    rephrased = np.full((len(names), *shape), np.nan)
    for (question_id, version, rephraser, judge), score in cells.items():
        target = rephrased[index[rephraser]] if rephraser else versions[version]
        target[index[judge], column[question_id]] = score
    return ScoreTable(names, ids, subjects, rephrased=rephrased, contexts=contexts, **versions)


class _Score(TableRow):
    question_id: str
    judge: str
    score: Annotated[
        Annotated[float, Field(ge=LOWEST, le=HIGHEST)] | None,
        BeforeValidator(lambda value: None if str(value).strip().lower() in MISSING else value),
        Field(description=f"a number from {LOWEST} to {HIGHEST}"),
    ]
    subject: Cell = ""
    context: Cell = ""
    rephraser: Cell = ""
    kind: Annotated[
        Literal["", "original", "rephrased", "boat"] | None, Field(description="one of original, rephrased, boat")
    ] = ""


class _Accuracy(TableRow):
    model: str
    subject: str
    accuracy: float = Field(ge=0, le=1, description="a number from 0 to 1")


def load_accuracy(path: str | Path) -> dict[str, dict[str, float]]:
    """Model -> subject -> accuracy, from a file with ``model``, ``subject`` and ``accuracy`` (0 to 1).

    Raises:
        InputError: naming the line and field.
    """
    accuracies: dict[str, dict[str, float]] = {}
    for place, row in table_rows(path, _Accuracy):
        by_subject = accuracies.setdefault(row.model, {})
        if row.subject in by_subject:
            raise InputError.at(place, f"a second accuracy of {row.model!r} for the same subject", field="accuracy")
        by_subject[row.subject] = row.accuracy
    return accuracies


@dataclass(frozen=True)
class ModelBias:
    """One model.

    Attributes:
        rates: strength -> rates on questions that this model rephrased.
        boat_rates: the same on questions under interventions, which nobody rephrased; empty if they were not judged.
        overconfidence: rise of OCR from the lowest strength to the highest; undefined for one strength.
        data_bias, boat_data_bias: correlation of its accuracy by subject with its CER by subject at the highest
            strength (P4, table 1). Negative: its questions are sound where it does well, and unsound where it does not.
    """

    rates: Mapping[float, ConsensusRates]
    boat_rates: Mapping[float, ConsensusRates]
    overconfidence: Estimate
    data_bias: Numbers
    boat_data_bias: Numbers | None


@dataclass(frozen=True)
class ProbeResult(StudyResult):
    """The bias of every model, and what it rests on.

    Attributes:
        table: every model's confidence in every question.
        accuracy: model -> subject -> accuracy.
        models: model -> its bias.
    """

    study = "probe"
    unwritten = ("table", "run")

    table: ScoreTable
    accuracy: Mapping[str, Mapping[str, float]]
    models: Mapping[str, ModelBias]
    run: Run = field()

    def described(self) -> Page:
        """Model bias against strength, and data bias over subjects, for rephrased questions and for BOAT."""
        judged = count(len(self.table.ids), "question")
        rises = [(name, bias.overconfidence) for name, bias in self.models.items()]
        return Page(
            about=f"{listed(list(self.models))} on {judged}",
            headline=_headline(self),
            lines=(_rates(self), spent(self.run)),
            tiles=Tile.row(
                *(("overconfidence", rise, f"rise of over-confidence, {name}") for name, rise in rises[:MOST_TILES])
            ),
            panels=(_model_bias(self), _data_bias(self)),
            name=", ".join(self.models),
            compared=tuple(self.models),
        )

    @property
    def failure(self) -> str:
        """See :class:`StudyResult`."""
        table = self.table
        # A question that nobody judged in some model's words was not rephrased by it, so nothing was asked.
        as_is = [part for part in (table.original, table.boat) if not np.isnan(part).all()]
        rephrased = [part[:, ~np.isnan(part).all(axis=0)] for part in table.rephrased]
        scores = np.concatenate([*as_is, *rephrased], axis=1)
        total = scores.shape[1]
        return super().failure or "; ".join(
            f"no reply of {name} holds a confidence"
            if missing == total
            else f"{missing:,} of {total:,} replies of {name} hold no confidence"
            for name, missing in zip(table.models, np.isnan(scores).sum(axis=1).tolist(), strict=True)
            if 2 * missing > total or missing == total
        )

    def to_dict(self) -> dict[str, Any]:
        """Every number, JSON-able."""
        counted = {"questions_judged": len(self.table.ids), "confidences_missing": self.table.missing}
        return super().to_dict() | counted

    def to_parquet(self, path: str | Path) -> None:
        """Write the table of confidences; :mod:`~unslant.studies.unbiased.probe.result` reads it."""
        self.table.to_parquet(path, replace(self.run, provenance=self.provenance))


def result_of(
    table: ScoreTable, accuracy: Mapping[str, Mapping[str, float]], strengths: Sequence[float], seed: int, run: Run
) -> ProbeResult:
    """All rates and correlations of a table."""
    changed = {strength: table.changed(strength, seed) for strength in strengths}
    weakest, last = min(strengths), max(strengths)
    bootstrap = Bootstrap(len(table.ids), table.subjects, contexts=table.contexts or None)

    def mixed(versions: Floats) -> dict[float, Floats]:
        return {strength: np.where(rows, versions, table.original) for strength, rows in changed.items()}

    def rates_of(i: int, scores: Mapping[float, Floats]) -> dict[float, ConsensusRates]:
        return {
            p: metrics.consensus_rates(judged, i, table.subjects, bootstrap=bootstrap) for p, judged in scores.items()
        }

    models = {}
    for i, name in enumerate(table.models):
        scores = mixed(table.rephrased[i])
        rates, boat = rates_of(i, scores), rates_of(i, mixed(table.boat)) if table.has_boat else {}
        rise = metrics.overconfidence(scores[weakest], scores[last], i, bootstrap)
        if len(scores) < 2:
            rise = Estimate.undefined("one strength: nothing to compare")
        by_subject = accuracy.get(name, {})
        bias = agreement(by_subject, rates[last].by_subject, of="subjects")
        boat_bias = agreement(by_subject, boat[last].by_subject, of="subjects") if boat else None
        models[name] = ModelBias(rates, boat, rise, bias, boat_bias)
    return ProbeResult(table, accuracy, models, run)


MOST_TILES = 3
SAME = 0.05
"""A smaller rise of over-confidence is called none."""
REPHRASED = "rephrased by it"
CHARTS = {"ocr": ("Over-confidence", "accepts"), "ucr": ("Under-confidence", "rejects")}


def _headline(result: ProbeResult) -> str:
    """Which models come to accept what only they accept, in questions that they have rewritten."""
    rises = {name: bias.overconfidence for name, bias in result.models.items() if bias.overconfidence.defined}
    if not rises:
        return f"Whether {listed(list(result.models))} favour their own rewriting needs two strengths of it"
    outcomes = dict(zip(rises, verdicts([*rises.values()], bound=SAME), strict=True))
    names = [name for name, one in outcomes.items() if one.kind == "above"]
    if names:
        amounts = listed([f"{name} by {magnitude(outcomes[name].joint)}" for name in names])
        return f"Overconfidence in questions a model has rewritten itself rises: {amounts}"
    if all(one.kind in ("equal", "below") for one in outcomes.values()):
        return f"Rewriting the questions makes no model overconfident by {SAME} or more"
    widest = max(outcomes.values(), key=lambda one: one.estimate.high)
    return f"Whether models are overconfident in questions they rewrote cannot be determined {unsettled(widest)}"


def _rates(result: ProbeResult) -> str:
    """Over-confidence of each model at both ends."""
    parts, several = [], False
    for name, bias in result.models.items():
        ends = [bias.rates[strength]["ocr"] for strength in sorted({min(bias.rates), max(bias.rates)})]
        if all(end.defined for end in ends):
            parts.append(f"{name} {' and '.join(number(end, METRICS['ocr']) for end in ends)}")
            several = len(ends) > 1
    when = ", before and after rewriting" * several
    return f"Answers that only the rewriting model accepts{when}: {', '.join(parts)}." if parts else ""


def _model_bias(result: ProbeResult) -> Panel:
    rows = [
        {"model": name, "kind": kind, "strength": strength, **rates.numbers.cells()}
        for name, bias in result.models.items()
        for kind, by_strength in ((REPHRASED, bias.rates), ("BOAT", bias.boat_rates))
        for strength, rates in by_strength.items()
    ]
    plots = [
        Plot(
            partial(charts.lines, axis="rate", zero=True),
            f"A line that rises: the model {does} its own questions more often than the others do (unbiased-evaluator "
            "paper, figure 2).",
            [key],
            title=f"{word} rate against strength",
            id=f"probe-{key}",
            series="model",
            dash="kind",
            at="strength",
            rows="strength",
        )
        for key, (word, does) in CHARTS.items()
    ]
    names = [Column("model"), Column("questions", key="kind"), Column("strength", 2)]
    rates = Figure("probe-rates", "Consensus rates", names, ["ocr", "ucr", "cer", "rejected"], rows, plots)
    missing = count(result.table.missing, "confidence was", "confidences were")
    return Panel(
        "probe-model-bias",
        "Do models favour their own questions?",
        "Each model rephrases a growing share of the questions; it and the others say if the kept answer still holds. "
        "OCR, over-confidence rate: share of answers that it accepts and the others reject; UCR, under-confidence "
        "rate: the reverse; CER, consensus-error rate: all reject it, weighted by how surely. BOAT: questions under "
        "random interventions.",
        figures=(rates, _by_subject(result)),
        notes=(f"{missing} asked for and not given; those questions are left out.",) if result.table.missing else (),
        short="Model bias",
    )


def _data_bias(result: ProbeResult) -> Panel:
    correlations: dict[tuple[str, ...], Numbers | None] = {}
    for name, bias in result.models.items():
        correlations |= {(name, REPHRASED): bias.data_bias, (name, "BOAT"): bias.boat_data_bias}
    notes = sorted({bias.data_bias["pearson"].note for bias in result.models.values()} - {""})
    return agreements("probe-data-bias", "Data bias", correlations, "model", "questions").panel(
        "Are questions better where the model is better?",
        "Accuracy by subject against consensus errors by subject; a strong negative correlation is data bias.",
        notes=tuple(f"No correlation: {note}." for note in notes),
    )


def _by_subject(result: ProbeResult) -> Figure:
    rows = []
    for name, bias in result.models.items():
        cer, accuracy = bias.rates[max(bias.rates)].by_subject, result.accuracy.get(name, {})
        rows += [
            {"model and subject": f"{name}, {subject}", "accuracy": accuracy.get(subject), "cer": cer.get(subject)}
            for subject in sorted({*accuracy, *cer})
        ]
    columns = [Column("accuracy"), Column.of("cer", "CER at the highest strength")]
    return Figure("probe-subjects", "By subject", ["model and subject"], columns, rows, folded=True)

"""The page of the evaluator probe."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from unslant.experiment.provenance import settings_rows
from unslant.metrics import METRICS, Numbers
from unslant.reports import Chart, Column, Page, Panel, Style, Table, Tile, charts
from unslant.reports.charts import Mark
from unslant.reports.numbers import Cell, count, listed, number, with_interval
from unslant.studies.unbiased.panels import associations

if TYPE_CHECKING:
    from unslant.studies.unbiased.probe.result import ProbeResult

MOST_TILES = 6
CHARTS = {
    "ocr": ("Over-confidence", "accepts"),
    "ucr": ("Under-confidence", "rejects"),
}


def page(result: ProbeResult) -> Page:
    """Model bias against strength, and data bias over subjects, for rephrased questions and for BOAT."""
    first = list(result.models.items())[:MOST_TILES]
    judged = count(len(result.table.ids), "question")
    return Page(
        about=f"{listed(list(result.models))} on {judged}",
        headline=_headline(result),
        tiles=Tile.row(*(("ocr", bias.rates[max(bias.rates)].ocr, f"OCR, {name}") for name, bias in first)),
        panels=(_model_bias(result), _data_bias(result)),
        settings=settings_rows(result.run),
        name=", ".join(result.models),
        compared=tuple(result.models),
    )


def _headline(result: ProbeResult) -> str:
    rises = []
    for name, bias in result.models.items():
        before, after = (bias.rates[strength(bias.rates)].ocr for strength in (min, max))
        if after.defined and before.defined and after.low > before.value:
            rises.append(f"{name} {number(before, METRICS['ocr'])} to {with_interval(after, METRICS['ocr'])}")
    if rises:
        return f"Over-confidence in its own questions grows with strength: {listed(rises)}"
    return f"No model of {listed(list(result.models))} grows clearly over-confident in its own questions"


def _model_bias(result: ProbeResult) -> Panel:
    keys = ("ocr", "ucr", "cer", "rejected")
    rows: list[tuple[Cell, ...]] = []
    for name, bias in result.models.items():
        for kind, rates in (("rephrased by it", bias.rates), ("BOAT", bias.boat_rates)):
            rows += [(name, kind, p, *(getattr(found, key) for key in keys)) for p, found in rates.items()]
    columns = (Column("model"), Column("questions"), Column("strength", 2), *map(Column.of, keys))
    missing = count(result.table.missing, "confidence was", "confidences were")
    note = f"{missing} asked for and not given; those questions are left out."
    return Panel(
        "probe-model-bias",
        "Do models favour their own questions?",
        "Each model rephrases a growing share of the questions; it and the others say if the kept answer still holds.",
        charts=tuple(
            Chart(
                f"probe-{key}",
                f"{word} rate against strength",
                f"A line that rises: the model {does} its own questions more often than the others do (P4, figure 2).",
                partial(_lines, result, key),
            )
            for key, (word, does) in CHARTS.items()
        ),
        tables=(Table("probe-rates", "Consensus rates", columns, tuple(rows), names=3), *_by_subject(result)),
        notes=(note,) if result.table.missing else (),
        short="Model bias",
        first_screen=True,
    )


def _data_bias(result: ProbeResult) -> Panel:
    rows: dict[tuple[str, ...], Numbers | None] = {}
    for name, bias in result.models.items():
        rows |= {(name, "rephrased by it"): bias.data_bias, (name, "BOAT"): bias.boat_data_bias}
    notes = sorted({bias.data_bias["pearson"].note for bias in result.models.values()} - {""})
    return Panel(
        "probe-data-bias",
        "Are questions better where the model is better?",
        "Accuracy by subject against consensus errors by subject; a strong negative correlation is data bias.",
        tables=(associations("probe-data-bias", "Data bias", rows, "model", "questions"),),
        short="Data bias",
        first_screen=True,
        notes=tuple(f"No correlation: {note}." for note in notes),
    )


def _by_subject(result: ProbeResult) -> tuple[Table, ...]:
    rows: list[tuple[Cell, ...]] = []
    for name, bias in result.models.items():
        cer = bias.rates[max(bias.rates)].by_subject
        own = result.accuracy.get(name, {})
        rows += [(f"{name}, {subject}", own.get(subject), cer.get(subject)) for subject in sorted({*own, *cer})]
    columns = (Column("model and subject"), Column("accuracy"), Column.of("cer", "CER at the highest strength"))
    return (Table("probe-subjects", "By subject", columns, tuple(rows), folded=True),) if rows else ()


def _lines(result: ProbeResult, key: str, style: Style) -> Any:
    marks = [
        Mark(f"{p:g}", getattr(found, key), name, dash=kind)
        for name, bias in result.models.items()
        for kind, rates in (("rephrased by it", bias.rates), ("BOAT", bias.boat_rates))
        for p, found in rates.items()
    ]
    return charts.lines(marks, style, under="strength", beside="rate", zero=True)

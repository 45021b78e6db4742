"""The page of the evaluator probe."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from unslant.experiment.comparison import agreements
from unslant.experiment.provenance import settings_rows
from unslant.metrics import METRICS, Numbers
from unslant.reports import Column, Figure, Page, Panel, Plot, Tile, charts
from unslant.reports.numbers import count, listed, number, with_interval

if TYPE_CHECKING:
    from unslant.studies.unbiased.probe.result import ProbeResult

MOST_TILES = 6
REPHRASED = "rephrased by it"
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
    rows = [
        {"model": name, "kind": kind, "strength": strength, **vars(rates)}
        for name, bias in result.models.items()
        for kind, by_strength in ((REPHRASED, bias.rates), ("BOAT", bias.boat_rates))
        for strength, rates in by_strength.items()
    ]
    plots = [
        Plot(
            partial(charts.lines, axis="rate", zero=True),
            f"A line that rises: the model {does} its own questions more often than the others do (P4, figure 2).",
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
        "Each model rephrases a growing share of the questions; it and the others say if the kept answer still holds.",
        figures=(rates, _by_subject(result)),
        notes=(f"{missing} asked for and not given; those questions are left out.",) if result.table.missing else (),
        short="Model bias",
    )


def _data_bias(result: ProbeResult) -> Panel:
    found: dict[tuple[str, ...], Numbers | None] = {}
    for name, bias in result.models.items():
        found |= {(name, REPHRASED): bias.data_bias, (name, "BOAT"): bias.boat_data_bias}
    notes = sorted({bias.data_bias["pearson"].note for bias in result.models.values()} - {""})
    return Panel(
        "probe-data-bias",
        "Are questions better where the model is better?",
        "Accuracy by subject against consensus errors by subject; a strong negative correlation is data bias.",
        figures=(agreements("probe-data-bias", "Data bias", found, "model", "questions"),),
        short="Data bias",
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

"""The evaluator probe in words and panels."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from unslant.metrics.association import Association
from unslant.metrics.estimate import Estimate
from unslant.reports.panels import Cell, Chart, Column, Panel, Style, Table

if TYPE_CHECKING:
    from unslant.studies.probe.result import ProbeResult

RATES = {"ocr": "over-confidence", "ucr": "under-confidence"}


def headline(result: ProbeResult) -> str:
    """The outcome in one sentence."""
    rises = []
    for name, bias in result.models.items():
        first, last = min(bias.rates), max(bias.rates)
        before, after = bias.rates[first].ocr, bias.rates[last].ocr
        if after.defined and before.defined and after.low > before.value:
            rises.append(f"{name} {before.value:.2f} to {after.value:.2f}")
    if rises:
        return f"Over-confidence in its own questions grows with strength: {'; '.join(rises)}"
    return "No model grows clearly over-confident in its own questions"


def panels(result: ProbeResult) -> list[Panel]:
    """Model bias against strength, and data bias over subjects, for rephrased questions and for BOAT."""
    return [_model_bias(result), _data_bias(result)]


def _model_bias(result: ProbeResult) -> Panel:
    rows: list[tuple[Cell, ...]] = []
    for name, bias in result.models.items():
        for kind, rates in (("rephrased by it", bias.rates), ("BOAT", bias.boat_rates)):
            for strength, found in rates.items():
                rows.append((name, kind, float(strength), found.ocr, found.ucr.value, found.cer.value))
    columns = (
        Column("model"),
        Column("questions"),
        Column("strength", 2),
        Column("OCR", explanation="it accepts the kept answer, the others reject it"),
        Column("UCR", explanation="it rejects the kept answer, the others accept it"),
        Column("CER", explanation="all reject it, weighted by how surely"),
    )
    missing = result.table.missing
    notes = (f"{missing:,} confidences were asked for and not given; those questions are left out.",) if missing else ()
    return Panel(
        "probe-model-bias",
        "Do models favour their own questions?",
        "Each model rephrases a growing share of the questions; it and the others say if the kept answer still holds.",
        charts=tuple(
            Chart(
                f"probe-{key}",
                f"{word.capitalize()} rate against strength",
                _READING[key],
                partial(_lines, result, key),
            )
            for key, word in RATES.items()
        ),
        tables=(Table("probe-rates", "Consensus rates", columns, tuple(rows)),),
        notes=notes,
    )


_READING = {
    "ocr": "A line that rises: the model accepts its own questions more often than the others do.",
    "ucr": "A line that rises: the model rejects its own questions more often than the others do.",
}


def _data_bias(result: ProbeResult) -> Panel:
    rows: list[tuple[Cell, ...]] = []
    for name, bias in result.models.items():
        for kind, found in (("rephrased by it", bias.data_bias), ("BOAT", bias.boat_data_bias)):
            if found is not None:
                rows.append((name, kind, *_correlation(found)))
    names = ("model", "questions", "Kendall", "p", "Pearson", "p (Pearson)", "subjects")
    notes = sorted({bias.data_bias.pearson.note for bias in result.models.values()} - {""})
    return Panel(
        "probe-data-bias",
        "Are questions better where the model is better?",
        "Accuracy by subject against consensus errors by subject; a strong negative correlation is data bias.",
        tables=(Table("probe-data-bias", "Data bias", tuple(map(Column, names)), tuple(rows)),),
        notes=tuple(f"No correlation: {note}." for note in notes),
    )


def _correlation(found: Association) -> tuple[Cell, ...]:
    def value(estimate: Estimate) -> float | None:
        return estimate.value if estimate.defined else None

    return (
        value(found.kendall),
        found.kendall_p if found.kendall.defined else None,
        value(found.pearson),
        found.pearson_p if found.pearson.defined else None,
        found.pearson.n,
    )


def _lines(result: ProbeResult, key: str, style: Style) -> Any:
    import altair as alt

    records = [
        {
            "model": name,
            "questions": kind,
            "strength": strength,
            "value": getattr(found, key).value,
            "n": getattr(found, key).n,
        }
        for name, bias in result.models.items()
        for kind, rates in (("rephrased", bias.rates), ("BOAT", bias.boat_rates))
        for strength, found in rates.items()
        if getattr(found, key).defined
    ]
    names = list(result.models)
    colours = [style.series[i % len(style.series)] for i in range(len(names))]
    return (
        alt.Chart(alt.Data(values=records), width=style.width, height=220)
        .mark_line(point=True)
        .encode(
            x=alt.X("strength:Q", title="strength"),
            y=alt.Y("value:Q", title="rate", scale=alt.Scale(zero=True)),
            color=alt.Color("model:N", scale=alt.Scale(domain=names, range=colours)),
            strokeDash=alt.StrokeDash("questions:N"),
            tooltip=["model:N", "questions:N", "strength:Q", alt.Tooltip("value:Q", format=".3f"), "n:Q"],
        )
    )

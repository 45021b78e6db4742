"""The page of the evaluator probe."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from unslant.experiment.comparison import agreements
from unslant.experiment.provenance import settings_rows, spent
from unslant.metrics import METRICS, Numbers, verdicts
from unslant.reports import Column, Figure, Page, Panel, Plot, Tile, charts
from unslant.reports.numbers import count, listed, magnitude, number, unsettled

if TYPE_CHECKING:
    from unslant.studies.unbiased.probe.result import ProbeResult

MOST_TILES = 3
SAME = 0.05
"""A smaller rise of over-confidence is called none."""
REPHRASED = "rephrased by it"
CHARTS = {
    "ocr": ("Over-confidence", "accepts"),
    "ucr": ("Under-confidence", "rejects"),
}


def page(result: ProbeResult) -> Page:
    """Model bias against strength, and data bias over subjects, for rephrased questions and for BOAT."""
    judged = count(len(result.table.ids), "question")
    rises = {name: bias.overconfidence for name, bias in result.models.items()}
    return Page(
        about=f"{listed(list(result.models))} on {judged}",
        headline=_headline(result),
        lines=(_rates(result), spent(result.run)),
        tiles=Tile.row(
            *(
                ("overconfidence", rise, f"rise of over-confidence, {name}")
                for name, rise in [*rises.items()][:MOST_TILES]
            )
        ),
        panels=(_model_bias(result), _data_bias(result)),
        settings=settings_rows(result.run),
        name=", ".join(result.models),
        compared=tuple(result.models),
    )


def _headline(result: ProbeResult) -> str:
    """Which models come to accept what only they accept, in questions that they have rewritten."""
    rises = {name: bias.overconfidence for name, bias in result.models.items() if bias.overconfidence.defined}
    if not rises:
        return f"Whether {listed(list(result.models))} favour their own rewriting needs two strengths of it"
    found = dict(zip(rises, verdicts([*rises.values()], bound=SAME), strict=True))
    names = [name for name, one in found.items() if one.kind == "above"]
    if names:
        amounts = listed([f"{name} by {magnitude(rises[name], 2)}" for name in names])
        return f"Overconfidence in questions a model has rewritten itself rises: {amounts}"
    if all(one.kind in ("equal", "below") for one in found.values()):
        return f"Rewriting the questions makes no model overconfident by {SAME} or more"
    widest = max(found.values(), key=lambda one: one.estimate.high)
    return f"Whether models are overconfident in questions they rewrote cannot be determined {unsettled(widest)}"


def _rates(result: ProbeResult) -> str:
    """Over-confidence of each model at both ends."""
    shown = []
    for name, bias in result.models.items():
        weak, strong = (bias.rates[strength(bias.rates)].ocr for strength in (min, max))
        if weak.defined and strong.defined:
            shown.append(f"{name} {number(weak, METRICS['ocr'])} and {number(strong, METRICS['ocr'])}")
    if not shown:
        return ""
    return f"Answers that only the rewriting model accepts, before and after rewriting: {', '.join(shown)}."


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
        "rate: the reverse; CER, consensus-error rate: all reject it. BOAT: questions under random interventions.",
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

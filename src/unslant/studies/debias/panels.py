"""Panels of the comparison of debiasing methods."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from unslant.arrays import grouped
from unslant.debiasing.base import left_out_notes
from unslant.experiment.page_parts import settings_rows
from unslant.metrics import METRICS, Verdict, verdicts
from unslant.reports import Column, Figure, Page, Panel, Plot, Tile, charts
from unslant.reports.numbers import count, listed, magnitude, number, significant, with_interval
from unslant.responses import Run
from unslant.studies.debias.measure_debiased import INVARIANT, MEANS, MEASURES, MeasureChange
from unslant.studies.debias.result import DebiasResult, MeanChange, MethodEntry

_CHANGE, _DIFFERENCE, _P = (METRICS[f"change.{key}"] for key in ("relative", "difference", "p"))
_NAMES = {key: METRICS[key].label for key in MEASURES} | {"accuracy": "accuracy"}
_MEASURES = tuple(Column.of(key, name) for key, name in _NAMES.items())
_CHANGES = tuple(Column(name, _CHANGE, key=key) for key, name in _NAMES.items())
_DIFFERENCES = tuple(Column(name, _DIFFERENCE, key=key) for key, name in _NAMES.items())
_RELATIVES = (
    Column("mean change", _CHANGE, key="relative"),
    *(Column(name, _CHANGE) for name in ("smallest", "largest")),
)
_TESTED = tuple(key for key in MEASURES if key not in MEANS)


def page(result: DebiasResult) -> Page:
    """One section per model and set, then averages and transfer."""
    entries = [entry for entry in result.entries if not entry.transferred]
    models = list(dict.fromkeys(entry.model for entry in entries))
    sets = list(dict.fromkeys(entry.questions for entry in entries))
    short = [Run(model=model).name for model in models]
    name_of = dict(zip(models, short if len({*short}) == len(short) else models, strict=True))
    groups = grouped(((name_of[entry.model], entry.questions), entry) for entry in entries)
    subject = f"{listed([*name_of.values()], 2)} on {listed(sets, 2)}"
    sizes = ", ".join(f"{name} {n}" for name, n in result.measured_on.items())
    return Page(
        about=f"{subject}: {count(len(result.average), 'method')} compared with the undebiased model",
        headline=_headline(result, subject),
        lines=_lines(result, entries),
        tiles=_tiles(result, entries),
        panels=(*(_group_panel(k, *group) for k, group in enumerate(groups.items())), _all_panel(result, entries)),
        notes=(
            *map(str, result.missing),
            *_constructed(entries),
            "Tokens are computed with the prefix tree; forwards are presentations scored. Both are per question.",
        ),
        settings=settings_rows(replace(result.run, models=tuple(models), questions=sizes or listed(sets))),
        name=", ".join(name_of.values()),
    )


def _verdicts(result: DebiasResult, key: str) -> dict[str, Verdict]:
    """The verdict on each method's change of one measure, the highest first."""
    changes = {method: row[key].difference for method, row in result.average.items() if row[key].difference.defined}
    by_method = dict(zip(changes, verdicts(list(changes.values())), strict=True))
    return dict(sorted(by_method.items(), key=lambda item: -item[1].estimate.value))


def _headline(result: DebiasResult, subject: str) -> str:
    """Which methods raise the accuracy, if any does for certain, or that all lower it."""
    if not result.average:
        return f"No method gave a result for {subject}"
    by_method = _verdicts(result, "accuracy")
    if not by_method:
        return f"No change of accuracy can be measured for {subject}"
    up, down = ([method for method, one in by_method.items() if one.kind == kind] for kind in ("above", "below"))
    shown = up or (down if len(down) == len(by_method) else [])
    best = shown[0] if shown else next(iter(by_method))
    if shown:
        does = f"; so {'does' if len(shown) == 2 else 'do'} {len(shown) - 1} of {len(by_method) - 1} other methods"
        verb, change = "raises" if up else "lowers", magnitude(by_method[best].joint)
        return f"{best} {verb} the accuracy of {subject} by {change}{does * (len(shown) > 1)}"
    change = with_interval(by_method[best].joint, _DIFFERENCE)
    if len(by_method) == 1:
        return f"{best} is not shown to raise the accuracy of {subject}: {change}"
    none = f"None of {len(by_method)} methods is shown to raise the accuracy of {subject}"
    return f"{none}; the largest estimate is {change}, {best}"


def _lines(result: DebiasResult, entries: Sequence[MethodEntry]) -> tuple[str, ...]:
    """How each method changes accuracy and PBM, the cost of methods, and those without a result."""
    base = [entry for entry in entries if entry.method == "none" and entry.measures["accuracy"].defined]
    start = []
    if len(base) == 1:
        guessing = f", {base[0].chance:.2f} by guessing" * math.isfinite(base[0].chance)
        start = [f"{number(base[0].measures['accuracy'], 2)} undebiased{guessing}"]
    constructed = [
        method
        for method in result.average
        if all("pbm" in entry.constructed for entry in entries if entry.method == method)
    ]
    pbm = {method: one for method, one in _verdicts(result, "pbm").items() if method not in constructed}
    removed = [f"removed by construction by {listed(constructed, 4)}"] * bool(constructed)
    forwards = {
        method: float(np.mean([entry.spent.forwards for entry in entries if entry.method == method]))
        for method in result.average
    }
    spent = [f"{method} {significant(n)}" for method, n in sorted(forwards.items(), key=lambda item: -item[1])]
    counted = any(forwards.values())  # a model of other people need not count what it is asked
    parts = [f"presentations per question: {listed(spent, 5)}"] * counted
    missing = list(dict.fromkeys(one.method for one in result.missing))
    parts += [f"no result from {listed(missing, 4)}"] * bool(missing)
    return (
        _sentence("accuracy", [*start, *_ruled(_verdicts(result, "accuracy"))]),
        _sentence("how far answers move with the order (PBM)", [*removed, *_ruled(pbm)]),
        _sentence("", parts),
    )


def _ruled(by_method: Mapping[str, Verdict]) -> list[str]:
    """Methods grouped by verdict: ``raised by vote``."""
    words = {"above": "raised by", "below": "lowered by", "unclear": "no change shown by"}
    by_kind = {kind: [method for method, one in by_method.items() if one.kind == kind] for kind in words}
    return [f"{words[kind]} {listed(methods, 4)}" for kind, methods in by_kind.items() if methods]


def _sentence(subject: str, parts: Sequence[str]) -> str:
    text = f"{subject}: " * bool(subject) + "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}." if parts else ""


def _tiles(result: DebiasResult, entries: Sequence[MethodEntry]) -> tuple[Tile, ...]:
    base = [entry for entry in entries if entry.method == "none"]
    start = [("accuracy", base[0].measures["accuracy"], "accuracy, undebiased")] * (len(base) == 1)
    by_key = {key: _verdicts(result, key) for key in ("accuracy", "pbm")}
    best = next(iter(by_key["accuracy"] or by_key["pbm"]), None)
    changes = [
        ("change.difference", by_method[best].joint, f"change of {_NAMES[key]}, {best}")
        for key, by_method in by_key.items()
        if best in by_method
    ]
    return Tile.row(*start, *changes)


def _group_panel(k: int, names: tuple[str, str], entries: Sequence[MethodEntry]) -> Panel:
    id, subject = f"debias-{k}", " on ".join(names)
    some = any(entry.left_out for entry in entries)
    compared = [entry for entry in entries if entry.change]
    answered = Column("answered", explanation="questions with an answer in every listing, of those asked")
    plots = [
        Plot(
            partial(charts.intervals, axis=_NAMES[key]),
            "After each method, with 95 % intervals.",
            [key],
            title=f"{METRICS[key].name[:1].upper()}{METRICS[key].name[1:]}, {subject}",
            id=f"{id}-{key}",
            name=["name"],
        )
        for key in ("accuracy", "pbm")
    ]
    rows = [
        {
            **vars(entry),
            **entry.measures,
            **vars(entry.spent),
            "name": _name(entry),
            "fitted on": entry.fitted_on or None,
            "answered": f"{entry.asked - sum(entry.left_out.values()):,} of {entry.asked:,}",
        }
        for entry in entries
    ]
    differences = [
        {"method": entry.method, **_part(entry.change, "difference"), **{key: entry.change[key].p for key in _TESTED}}
        for entry in compared
    ]
    method, measures = ["method"], [*_MEASURES, *[answered] * some]
    changes = [
        *(Column(_NAMES[key], _DIFFERENCE, "debiased minus undebiased, same questions", key) for key in MEANS),
        *(Column(f"{_NAMES[key]}: p", _P, _P.meaning, key) for key in _TESTED),
    ]
    spent = [Column.of(f"spent.{key}") for key in ("tokens", "forwards", "seconds")]
    spent += [Column.of(f"debiasing_{key}") for key in ("tokens", "forwards", "seconds")]
    relative = [{"method": entry.method, **_part(entry.change, "relative")} for entry in compared]
    return Panel(
        id,
        f"Debiasing {subject}",
        "Every method answers the questions listed in many orders; remaining differences are bias.",
        figures=(
            Figure(f"{id}-measures", f"Measures, {subject}", method, measures, rows, plots),
            Figure(
                f"{id}-change", f"Difference to the undebiased model, {subject}", method, changes, differences,
                explanation="RStd, CKLD and AccStd are spreads, which have no reliable interval; p tests whether they "
                "changed at all."
                + " Each method is compared over the questions that both it and the undebiased model answered." * some,
            ),
            Figure(
                f"{id}-relative", f"Relative change from the undebiased model, {subject}", method, _CHANGES,
                relative, explanation="As in table 3 of the selection-bias paper.", folded=True,
            ),
            Figure(f"{id}-cost", f"Cost, {subject}", method, [*spent, Column("fitted on")], rows),
            Figure(f"{id}-ckld", f"CKLD without smoothing, {subject}", method, ["ckld"], rows, folded=True),
        ),
        notes=tuple(note for entry in entries for note in _notes(entry)),
        short=subject,
    )  # fmt: skip


def _part(changes: Mapping[str, MeasureChange] | Mapping[str, MeanChange], name: str) -> dict[str, Any]:
    """One part of the change of every measure, such as its ``difference``."""
    return {key: getattr(changes[key], name) for key in MEASURES}


def _mean_figures(
    id: str,
    titles: tuple[str, str],
    names: Sequence[str | Column],
    groups: Sequence[tuple[Mapping[str, Any], Mapping[str, MeanChange]]],
    explanations: tuple[str, str],
) -> tuple[Figure, Figure]:
    """Mean differences, with a row for each group of entries (its names and changes), and mean relative changes."""
    differences = [{**cells, **_part(changes, "difference")} for cells, changes in groups]
    relative = [
        {**cells, **vars(changes[key]), "measure": _NAMES[key]} for cells, changes in groups for key in MEASURES
    ]
    more: list[str | Column] = [*names, "measure"]
    return (
        Figure(id, titles[0], names, _DIFFERENCES, differences, explanation=explanations[0]),
        Figure(f"{id}-relative", titles[1], more, _RELATIVES, relative, explanation=explanations[1], folded=True),
    )


def _name(entry: MethodEntry) -> str:
    return "undebiased" if entry.method == "none" else entry.method


def _constructed(entries: Sequence[MethodEntry]) -> list[str]:
    methods = list(dict.fromkeys(entry.method for entry in entries if entry.constructed))
    names = listed([_NAMES[key] for key in INVARIANT])
    return [
        f"{listed(methods)}: {names} are 0 by construction, because no answer depends on how options are listed."
    ] * (len(methods) > 0)


def _notes(entry: MethodEntry) -> list[str]:
    notes = [f"{entry.method}: {note}" for note in (*entry.notes, *left_out_notes(entry.left_out, entry.asked))]
    if entry.draws:
        parts = [
            f"{_NAMES[key]} {number(mean, METRICS[key])} ± {number(std, METRICS[key])}"
            for key, (mean, std) in entry.draws.items()
        ]
        notes.append(f"{entry.method}: mean and standard deviation over draws: {', '.join(parts)}.")
    return notes


def _all_panel(result: DebiasResult, entries: Sequence[MethodEntry]) -> Panel:
    several = len({(entry.model, entry.questions) for entry in entries}) > 1
    points = [
        {**e.measures, "of": f"{e.method}, {e.model} on {e.questions}" if several else _name(e), "series": _name(e)}
        for e in entries
    ]
    scatter = Plot(
        partial(charts.scatter, across="PBM", axis="AccStd", how_across=METRICS["pbm"], zero=True, names=not several),
        "One point per method, model and set; consistent methods lie near the origin "
        "(selection-bias paper, figure 1a).",
        ["acc_std"],
        name=["of"],
        series="series",
        at="pbm",
    )
    average = _mean_figures(
        "debias-average",
        ("Mean difference to the undebiased model, over models and sets", "Mean relative change over models and sets"),
        ["method"],
        [({"method": method}, changes) for method, changes in result.average.items()],
        ("Each model and set counts the same; intervals are over the questions, paired, each for one method. The first "
         "screen has wider ones, which hold for all methods at once.",
         "As in table 3 of the selection-bias paper; N counts models and sets."),
    )  # fmt: skip
    names: list[str | Column] = ["model", "method", Column("fitted on", key="fitted_on")]
    transfer = _mean_figures(
        "debias-transfer",
        ("Transfer: mean difference on the other sets", "Transfer: mean relative change on the other sets"),
        names,
        [(vars(one), one.change) for one in result.transfer],
        ("", "As in table 4 of the selection-bias paper; N counts the other sets."),
    )
    by_set = [{**vars(entry), **_part(entry.change, "relative")} for entry in result.entries if entry.transferred]
    measured_on = Column("measured on", key="questions")
    title = "Transfer, set by set: change from the undebiased model"
    return Panel(
        "debias-all",
        "All methods",
        "Mean change by each method, and its transfer to other questions.",
        figures=(
            Figure("debias-scatter", "AccStd against PBM", ["of"], [], points, [scatter], drawn_only=True),
            *average,
            *transfer,
            Figure("debias-transfers", title, [*names, measured_on], _CHANGES, by_set, folded=True),
        ),
    )

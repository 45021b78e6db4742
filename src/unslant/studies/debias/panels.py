"""Panels of the comparison of debiasing methods."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from unslant.debiasing.base import left_out_notes
from unslant.experiment.provenance import settings_rows
from unslant.metrics import METRICS, Estimate
from unslant.reports import Column, Figure, Page, Panel, Plot, Tile, charts
from unslant.reports.numbers import count, listed, number, with_interval
from unslant.studies.debias.measure_debiased import INVARIANT, MEASURES

if TYPE_CHECKING:
    from unslant.studies.debias.result import DebiasResult, Entry

_CHANGE, _DIFFERENCE, _P = (METRICS[f"change.{key}"] for key in ("relative", "difference", "p"))
MOST_TILES = 6
_METHOD, _CKLD = ["method"], ["ckld"]
_NAMES = {key: METRICS[key].label for key in MEASURES} | {"accuracy": "accuracy"}
_MEASURES = tuple(Column.of(key, name) for key, name in _NAMES.items())
_CHANGES = tuple(Column(name, _CHANGE, key=key) for key, name in _NAMES.items())
_PAIRED, _TESTED = ("accuracy", "pbm", "fr"), ("rstd", "ckld_smoothed", "acc_std")


def page(result: DebiasResult) -> Page:
    """One section per model and set, then averages and transfer."""
    own = [entry for entry in result.entries if not entry.transferred]
    groups: dict[tuple[str, str], list[Entry]] = {}
    for entry in own:
        groups.setdefault((entry.model, entry.questions), []).append(entry)
    models, sets = (list(dict.fromkeys(names)) for names in zip(*groups, strict=True))
    methods = count(len({entry.method for entry in own if entry.change}), "method")
    return Page(
        about=f"{listed(models)} on {listed(sets)}: {methods} compared with the undebiased model",
        headline=headline(result),
        lines=("; ".join(_outcomes(result)[1:]),),
        tiles=_key_numbers(own) if len(groups) == 1 else _mean_changes(result),
        panels=(*(_group_panel(k, *named) for k, named in enumerate(groups.items())), _all_panel(result, own)),
        notes=(
            *map(str, result.missing),
            *_constructed(own),
            "Tokens are computed with the prefix tree; forwards are presentations scored. Both are per question.",
        ),
        settings=settings_rows(replace(result.run, models=tuple(models), questions=_sizes(result) or listed(sets))),
        name=", ".join(models),
    )


def _sizes(result: DebiasResult) -> str:
    return ", ".join(f"{name} {n}" for name, n in result.measured_on.items())


def headline(result: DebiasResult) -> str:
    """What the method with the most accuracy does to accuracy and PBM; see :func:`_outcomes`."""
    outcomes, models = _outcomes(result), listed(list(dict.fromkeys(entry.model for entry in result.entries)))
    base = [entry for entry in result.entries if entry.method == "none"]
    start = ""
    if len(base) == 1:
        start = f"; undebiased accuracy {with_interval(base[0].measures['accuracy'], METRICS['accuracy'])}"
        start += f", chance {base[0].chance:.3f}" if math.isfinite(base[0].chance) else ""
    if not outcomes:
        return f"{models}: no difference to the undebiased model is defined{start}"
    first = f"most accurate of {len(outcomes)} methods is {outcomes[0]}" if len(outcomes) > 1 else outcomes[0]
    return f"{models}: {first}, against the undebiased model{start}"


def _outcomes(result: DebiasResult) -> list[str]:
    """Accuracy and PBM by each method, most accurate first; with several models and sets, in how many for sure."""
    own = [entry for entry in result.entries if entry.change and not entry.transferred]
    by_method: dict[str, list[Entry]] = {}
    for entry in own:
        by_method.setdefault(entry.method, []).append(entry)

    def gain(method: str) -> float:
        values = [
            e.change["accuracy"].difference.value for e in by_method[method] if e.change["accuracy"].difference.defined
        ]
        return -sum(values) / len(values) if values else math.inf

    return [f"{method}: {_outcome(by_method[method])}" for method in sorted(by_method, key=gain)]


def _mean_changes(result: DebiasResult) -> tuple[Tile, ...]:
    rows = list(result.average.items())[: MOST_TILES // 2]
    keys = ("accuracy", "pbm")
    return Tile.row(
        *(("change.relative", row[key], f"{_NAMES[key]}, {method}") for method, row in rows for key in keys)
    )


def _key_numbers(entries: Sequence[Entry]) -> tuple[Tile, ...]:
    return Tile.row(
        *(("accuracy", one.measures["accuracy"], f"accuracy, {one.method}") for one in entries[:MOST_TILES])
    )


def _outcome(entries: Sequence[Entry]) -> str:
    """Accuracy and PBM of one method: the difference itself, or in how many of several sets it shows."""
    return ", ".join(
        f"{_NAMES[key]} 0 by construction"
        if all(key in entry.constructed for entry in entries)
        else f"{_NAMES[key]} {_in_words([entry.change[key].difference for entry in entries])}"
        for key in ("accuracy", "pbm")
    )


def _in_words(found: Sequence[Estimate]) -> str:
    if len(found) == 1:
        shows = "" if found[0].excludes(0) else ", no difference that shows"
        return with_interval(found[0], _DIFFERENCE) + shows
    up, down = sum(one.low > 0 for one in found), sum(one.high < 0 for one in found)
    words = [f"{word} in {n}" for word, n in (("higher", up), ("lower", down)) if n]
    return f"{' and '.join(words)} of {len(found)}" if words else "not seen to change"


def _group_panel(k: int, names: tuple[str, str], entries: Sequence[Entry]) -> Panel:
    id, asked = f"debias-{k}", " on ".join(names)
    some = any(entry.left_out for entry in entries)
    compared = [entry for entry in entries if entry.change]
    answered = Column("answered", explanation="questions with an answer in every listing, of those asked")
    plots = [
        Plot(
            partial(charts.intervals, axis=_NAMES[key]),
            "After each method, with 95 % intervals.",
            [key],
            title=f"{METRICS[key].name[:1].upper()}{METRICS[key].name[1:]}, {asked}",
            id=f"{id}-{key}",
            name=["shown"],
        )
        for key in ("accuracy", "pbm")
    ]
    rows = [
        {
            **entry.measures,
            **vars(entry.spent),
            "method": entry.method,
            "shown": _shown(entry),
            "fitted on": entry.fitted_on or None,
            "answered": f"{entry.asked - sum(entry.left_out.values()):,} of {entry.asked:,}",
        }
        for entry in entries
    ]
    differences = [
        {"method": entry.method, **{key: entry.change[key].difference for key in _PAIRED},
         **{key: entry.change[key].p for key in _TESTED}}
        for entry in compared
    ]  # fmt: skip
    measures = [*_MEASURES, *[answered] * some]
    changes = [
        *(Column(_NAMES[key], _DIFFERENCE, "debiased less undebiased, same questions", key) for key in _PAIRED),
        *(Column(f"{_NAMES[key]}: p", _P, _P.meaning, key) for key in _TESTED),
    ]
    spent = [Column.of(f"spent.{key}") for key in ("tokens", "forwards", "seconds")]
    spent += [Column.of(f"debiasing_{key}") for key in ("tokens", "forwards", "seconds")]
    relative = [{"method": entry.method, **_relative(entry)} for entry in compared]
    return Panel(
        id,
        f"Debiasing {asked}",
        "Every method answers the questions listed in many orders; remaining differences are bias.",
        figures=(
            Figure(f"{id}-measures", f"Measures, {asked}", _METHOD, measures, rows, plots),
            Figure(
                f"{id}-change", f"Difference to the undebiased model, {asked}", _METHOD, changes, differences,
                explanation="RStd, CKLD and AccStd are spreads, for which no interval covers; p tests whether they "
                "changed at all."
                + " Each method is compared over the questions that both it and the undebiased model answered." * some,
            ),
            Figure(
                f"{id}-relative", f"Relative change from the undebiased model, {asked}", _METHOD, _CHANGES,
                relative, explanation="As in P1 table 3.", folded=True,
            ),
            Figure(f"{id}-cost", f"Cost, {asked}", _METHOD, [*spent, Column("fitted on")], rows),
            Figure(f"{id}-ckld", f"CKLD without smoothing, {asked}", _METHOD, _CKLD, rows, folded=True),
        ),
        notes=tuple(note for entry in entries for note in _notes(entry)),
        short=asked,
    )  # fmt: skip


def _relative(entry: Entry) -> dict[str, Estimate]:
    return {key: entry.change[key].relative for key in MEASURES}


def _shown(entry: Entry) -> str:
    return "undebiased" if entry.method == "none" else entry.method


def _constructed(entries: Sequence[Entry]) -> list[str]:
    methods = list(dict.fromkeys(entry.method for entry in entries if entry.constructed))
    names = listed([_NAMES[key] for key in INVARIANT])
    return [
        f"{listed(methods)}: {names} are 0 by construction, because listing options otherwise changes no answer."
    ] * (len(methods) > 0)


def _notes(entry: Entry) -> list[str]:
    notes = [f"{entry.method}: {note}" for note in (*entry.notes, *left_out_notes(entry.left_out, entry.asked))]
    if entry.draws:
        parts = [
            f"{_NAMES[key]} {number(mean, METRICS[key])} ± {number(std, METRICS[key])}"
            for key, (mean, std) in entry.draws.items()
        ]
        notes.append(f"{entry.method}: mean and standard deviation over draws: {', '.join(parts)}.")
    return notes


def _all_panel(result: DebiasResult, own: Sequence[Entry]) -> Panel:
    several = len({(entry.model, entry.questions) for entry in own}) > 1
    points = [
        {**e.measures, "of": f"{e.method}, {e.model} on {e.questions}" if several else _shown(e), "series": _shown(e)}
        for e in own
    ]
    scatter = Plot(
        partial(charts.scatter, across="PBM", axis="AccStd", how_across=METRICS["pbm"], zero=True, names=not several),
        "One point per method, model and set (P1 fig. 1a); consistent methods lie near the origin.",
        ["acc_std"],
        name=["of"],
        series="series",
        at="pbm",
    )
    average = [{"method": method, **changes} for method, changes in result.average.items()]
    names = ["model", "method", "fitted on"]
    transfer = [{**vars(row), "fitted on": row.fitted_on, **row.change} for row in result.transfer]
    transfers = [
        {**vars(entry), "fitted on": entry.fitted_on, "measured on": entry.questions, **_relative(entry)}
        for entry in result.entries
        if entry.transferred and result.transfer
    ]
    about = "N counts models and sets; the range is from the smallest to the largest value."
    return Panel(
        "debias-all",
        "All methods",
        "Mean change by each method, and its transfer to other questions.",
        figures=(
            Figure("debias-scatter", "AccStd against PBM", ["of"], [], points, [scatter], drawn_only=True),
            Figure("debias-average", "Mean change over models and sets", _METHOD, _CHANGES, average, explanation=about),
            Figure(
                "debias-transfer",
                "Transfer: mean change on the other sets",
                names,
                _CHANGES,
                transfer,
                explanation="As in P1 table 4; N counts the other sets.",
            ),
            Figure(
                "debias-transfers",
                "Transfer, set by set: change from the undebiased model",
                [*names, "measured on"],
                _CHANGES,
                transfers,
                folded=True,
            ),
        ),
    )

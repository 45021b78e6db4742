"""``results.json`` as a page and a picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

OURS = "unslant"
_CLOCKS = {
    "seconds": "Seconds are wall-clock seconds.",
    "cpu_seconds": "Seconds are CPU seconds of the process (the machine was in use by others, so wall-clock time would "
    "have measured them too).",
}
_TARGETS = {"plain": 4.0, "lm-eval": 4.0, "BaQCKV": 1.35}


def speedups(cell: dict[str, Any], name: str, clock: str) -> list[float]:
    """How many times as long ``name`` took as we did, repeat by repeat, by ``seconds`` or ``cpu_seconds``."""
    pairs = zip(cell["runs"][name], cell["runs"][OURS], strict=False)
    return [theirs[clock] / ours[clock] for theirs, ours in pairs]


def geometric_mean(values: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))


def write_report(facts: dict[str, Any], folder: Path) -> str:
    """Write ``RESULTS.md`` and ``speedup.svg``; returns the summary."""
    summary = "\n".join(_summary(facts["cells"], facts["clock"]))
    parts = [
        "# Scoring all orders: measured side by side",
        "Written by `make bench` (`python -m benchmarks.compare`); do not edit. What is compared is described in "
        "[README.md](README.md).",
        "\n".join(f"- {key}: {value}" for key, value in facts["machine"].items()),
        f"Median of {facts['repeats']} interleaved repeats ({facts['slow_repeats']} for plain and lm-eval). "
        "Every contender tokenizes the prompts itself, within its time. " + _CLOCKS[facts["clock"]],
        "## Summary",
        "Times faster: how many times as long the other takes. Geometric mean over all workloads and sizes.",
        summary,
        "![Times faster, by workload and size](speedup.svg)",
        *_tables(facts["cells"], facts["clock"]),
        "## Equal results",
        "Largest difference of any log-probability from the plain path, over all workloads and sizes: "
        + ", ".join(f"{name} {worst:.1e}" for name, worst in _apart(facts["cells"]).items())
        + ".",
        "## Scaling",
        "20M parameters; six questions of four options in 24 orders unless changed (six options where the number of "
        "orders changes). Context in words. Memory: most used beyond the loaded model.",
        "\n".join(_scaling(facts["scaling"])),
        "## Outside the model",
        "Share of a run (20M parameters, 12 questions of four options, 24 orders) spent on "
        + ", ".join(f"{kind} {share:.1%}" for kind, share in facts["overhead"].items())
        + f": {sum(facts['overhead'].values()):.1%} in all.",
        "## A whole audit",
        _whole_audit(facts["whole_audit"]),
    ]
    (folder / "RESULTS.md").write_text("\n\n".join(parts) + "\n", "utf-8")
    _picture(facts["cells"], facts["clock"], folder / "speedup.svg")
    return summary


def _others(cells: Sequence[dict[str, Any]]) -> list[str]:
    return [name for name in cells[0]["runs"] if name != OURS]


def _summary(cells: Sequence[dict[str, Any]], clock: str) -> Iterator[str]:
    yield "| over | geometric mean | least | most | target |"
    yield "|---|---|---|---|---|"
    for name in _others(cells):
        medians = [float(np.median(speedups(cell, name, clock))) for cell in cells]
        target = _TARGETS.get(name)
        aim = f">= {target}" + (", none below 1.0" if name == "BaQCKV" else "") if target else "none"
        yield f"| {name} | {geometric_mean(medians):.2f} | {min(medians):.2f} | {max(medians):.2f} | {aim} |"


def _tables(cells: Sequence[dict[str, Any]], clock: str) -> Iterator[str]:
    for size in dict.fromkeys(cell["size"] for cell in cells):
        yield "## A real model" if size == "real" else f"## {size} parameters"
        mine = [cell for cell in cells if cell["size"] == size]
        names = [OURS, *_others(mine)]
        yield "Seconds:"
        yield "\n".join(_table(mine, names, lambda cell, name: f"{_median(cell, name, clock):.2f}"))
        yield "Times faster than the other, median and range over the repeats:"
        yield "\n".join(_table(mine, names[1:], lambda cell, name: _spread(speedups(cell, name, clock))))
        yield "Tokens given to the model (with padding; llama.cpp: not found in its prompt cache):"
        yield "\n".join(_table(mine, names, lambda cell, name: f"{_median(cell, name, 'tokens'):,.0f}"))
        yield "Peak memory beyond the loaded model, MiB (llama.cpp's own buffers are set aside when it loads):"
        yield "\n".join(
            _table(mine, names, lambda cell, name: f"{max(r['memory'] for r in cell['runs'][name]) / 2**20:.0f}")
        )


def _table(cells: Sequence[dict[str, Any]], names: Sequence[str], value: Any) -> Iterator[str]:
    yield "| workload | prompts | " + " | ".join(names) + " |"
    yield "|---|" + "---|" * (len(names) + 1)
    for cell in cells:
        yield f"| {cell['workload']} | {cell['prompts']} | " + " | ".join(value(cell, name) for name in names) + " |"


def _median(cell: dict[str, Any], name: str, what: str) -> float:
    return float(np.median([run[what] for run in cell["runs"][name]]))


def _spread(ratios: Sequence[float]) -> str:
    return f"{np.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def _apart(cells: Sequence[dict[str, Any]]) -> dict[str, float]:
    names = [name for name in cells[0]["apart"] if name != "plain"]
    return {name: max(cell["apart"][name] for cell in cells) for name in names}


def _scaling(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield "| changed | to | prompts | tokens | seconds | tokens a second | memory, MiB |"
    yield "|---|---|---|---|---|---|---|"
    for row in rows:
        yield (
            f"| {row['changed']} | {row['value']} | {row['prompts']} | {row['tokens']:,} | {row['seconds']:.2f} "
            f"| {row['tokens'] / row['seconds']:,.0f} | {row['memory'] / 2**20:.0f} |"
        )


def _whole_audit(found: dict[str, Any]) -> str:
    seconds, tokens = found["seconds"], found["tokens"]
    return (
        f"`unslant.audit` on {found['questions']} questions of four options (20M parameters), with every metric, "
        f"correction and interval: {seconds['audit']:.1f} s and {tokens['audit']:,} tokens; scoring their 24 orders "
        f"alone: {seconds['orders']:.1f} s and {tokens['orders']:,} tokens. Ratio {_spread(found['ratios'])}; target: "
        "at most 1.3."
    )


def _picture(cells: Sequence[dict[str, Any]], clock: str, path: Path) -> None:
    import altair as alt

    rows = [
        {
            "workload": cell["workload"],
            "over": name,
            "size": cell["size"],
            "median": float(np.median(ratios)),
            "low": min(ratios),
            "high": max(ratios),
        }
        for cell in cells
        for name in _others(cells)
        for ratios in [speedups(cell, name, clock)]
    ]
    order = list(dict.fromkeys(row["workload"] for row in rows))
    # Layers must bring no data of their own, or every facet shows all of it.
    base = alt.Chart().encode(
        y=alt.Y("over:N", title=None, sort=_others(cells)),
        color=alt.Color("over:N", sort=_others(cells), legend=None),
    )
    scale = alt.Scale(type="log", domainMin=0.5, nice=False)
    points = base.mark_point(filled=True, size=60).encode(
        x=alt.X("median:Q", scale=scale, title="times faster (log scale)"),
        shape=alt.Shape("size:N", title="parameters"),
    )
    ranges = base.mark_rule().encode(x=alt.X("low:Q", scale=scale), x2="high:Q")
    even = alt.Chart().mark_rule(strokeDash=[4, 4]).encode(x=alt.XDatum(1))
    chart = (
        alt.layer(even, ranges, points, data=alt.Data(values=rows))
        .properties(width=420, height=80)
        .facet(row=alt.Row("workload:N", sort=order, title=None, header=alt.Header(labelAngle=0, labelAlign="left")))
        .properties(title="unslant against other ways to score the same prompts")
    )
    chart.save(str(path))

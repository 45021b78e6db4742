"""The base-rate study in the terminal: hypotheses in words, then the tables they rest on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from unslant.metrics.estimate import Estimate
from unslant.reports.terminal import interval, number, render

if TYPE_CHECKING:
    from rich.console import RenderableType

    from unslant.studies.base_rate.findings import Findings
    from unslant.studies.base_rate.result import BaseRateResult

_MOST_SUBJECTS = 15
_TOLERANCE = 0.005
_UNTRUSTED = "*"
_COLOURS = {"holds": "bold", "partly": "bold", "does not hold": "bold", "cannot be tested": "dim"}


def summary(result: BaseRateResult, width: int = 100, color: bool = False) -> str:
    """The whole study as text."""
    from unslant.studies.base_rate.findings import name

    meta = result.meta
    about = meta.get("questions") or meta.get("recorded") or "responses"
    parts: list[RenderableType] = [f"{escape(str(meta.get('model', 'model')))} on {escape(str(about))}\n"]
    for hypothesis in result.hypotheses:
        style = _COLOURS[hypothesis.verdict]
        parts.append(f"[{style}]{hypothesis.name} {hypothesis.verdict}[/{style}]: {escape(hypothesis.claim)}")
        parts.append(f"   {escape(hypothesis.words)}\n")
    for found in result.found.values():
        parts += [
            f"[bold]Accuracy, {found.elicitation}[/bold] (ties to the first, shared, to the last; mean of subjects)"
        ]
        parts += [_accuracy_table(found), ""]
    doubts = [
        f"* not to be trusted: {found.elicitation}, {name(cell.presentation)} ({cell.doubt})"
        for found in result.found.values()
        for cell in found.cells
        if cell.doubt
    ]
    parts += [*doubts, ""] if doubts else []
    if result.published:
        parts += ["[bold]Beside the paper's table 3[/bold] (mean over subjects, ties to the first label)"]
        parts += [_published_table(result), ""]
    for found in result.found.values():
        if found.base_rates:
            parts += [f"[bold]Base rates, {found.elicitation}[/bold] (mean probability over all label orders)"]
            parts += [_rates_table(found), *_variance(found), ""]
    for found in result.found.values():
        about = f"{found.elicitation}, questions of {found.n_options} options"
        parts += [f"[bold]Accuracy by the right option's label[/bold], {about}", _gold_table(found), ""]
    if result.shortcuts:
        alone, followed = _shortcut_tables(result)
        parts += ["[bold]Shortcuts[/bold] (what each would score alone; + more than guessing)", alone, ""]
        parts += [
            "[bold]Shortcuts followed[/bold] (where model and shortcut are both wrong; * more than by chance)",
            followed,
            "",
        ]
    if result.cost.prompts:
        cost = result.cost
        parts.append(
            f"{cost.prompts:,} prompts in {cost.seconds:.1f} s; {cost.tokens:,} tokens computed, "
            f"{cost.tokens_plain:,} if each prompt were run alone"
        )
    return render(*parts, width=width, color=color)


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column.removeprefix("#"), justify="right" if column.startswith("#") else "left", no_wrap=True)
    return table


def _accuracy_table(found: Findings) -> Table:
    from unslant.studies.base_rate.findings import name

    table = _table("", "#first", "#95 % interval", "#shared", "#last", "#ties", "#N", "#subjects", "")
    for cell in found.cells:
        table.add_row(
            name(cell.presentation),
            number(cell.accuracy["first"]),
            interval(cell.accuracy["first"]),
            number(cell.accuracy["split"]),
            number(cell.accuracy["last"]),
            f"{cell.tie_rate.value:.1%}",
            f"{cell.accuracy['first'].n:,}",
            number(cell.by_subject["first"]),
            _UNTRUSTED if cell.doubt else "",
        )
    if found.nvr is not None:
        score = found.nvr.score
        table.add_row(
            "Nvr-X score",
            number(score),
            interval(score),
            "",
            "",
            "",
            f"{score.n:,}",
            number(found.nvr_by_subject),
            _UNTRUSTED if any(cell.doubt for cell in found.cells[1:]) else "",
        )
    return table


def _published_table(result: BaseRateResult) -> Table:
    from unslant.studies.base_rate.findings import name

    table = _table(
        "", "", "#paper", "#here", "#difference", "#subjects", "",
    )  # fmt: skip
    for cell in result.published:
        table.add_row(
            cell.elicitation,
            name(cell.presentation),
            f"{cell.published:.3f}",
            number(cell.ours),
            f"{cell.difference:+.4f}",
            str(cell.ours.n),
            "" if abs(cell.difference) <= _TOLERANCE else "differs",
        )
    return table


def _rates_table(found: Findings) -> Table:
    table = _table(
        "n", "label", "#rate", "#95 % interval", "#share", "#place", "#rate", "#95 % interval",
    )  # fmt: skip
    for n, rates in found.base_rates.items():
        for i, (label, by_label, share, by_position) in enumerate(
            zip(rates.labels, rates.by_label, rates.shares, rates.by_position, strict=True)
        ):
            row = (label, _four(by_label), _four_interval(by_label), f"{share:.1%}")
            table.add_row(str(n) if not i else "", *row, str(i + 1), _four(by_position), _four_interval(by_position))
    return table


def _variance(found: Findings) -> list[str]:
    return [
        f"{n} options: the label explains {rates.label_part.value:.0%} of the variance, the position "
        f"{rates.position_part.value:.0%}; {rates.distance.value:.1%} of the guesses are out of balance by label, "
        f"{rates.position_distance.value:.1%} by position"
        for n, rates in found.base_rates.items()
        if rates.label_part.defined
    ]


def _four(estimate: Estimate) -> str:
    return number(estimate, 4)


def _four_interval(estimate: Estimate) -> str:
    return interval(estimate, 4)


def _gold_table(found: Findings) -> Table:
    gold = found.gold
    table = _table("subject", *(f"#{label}" for label in gold.labels), "#N")
    total = sum(estimate.n for estimate in gold.by_label)
    table.add_row("all", *(number(estimate) for estimate in gold.by_label), f"{total:,}")
    if len(gold.subjects) > 1:
        for subject, accuracy, counts in list(zip(gold.subjects, gold.accuracy, gold.counts, strict=True))[
            :_MOST_SUBJECTS
        ]:
            cells = [f"{value:.3f}" if n else "–" for value, n in zip(accuracy, counts, strict=True)]
            table.add_row(subject or "(none)", *cells, f"{counts.sum():,}")
        if len(gold.subjects) > _MOST_SUBJECTS:
            table.add_row(f"... and {len(gold.subjects) - _MOST_SUBJECTS} more (--json has all)")
    return table


def _shortcut_tables(result: BaseRateResult) -> tuple[Table, Table]:
    alone = _table("", "#scores", "#95 % interval", "#N", "#guessing", "")
    followed = _table("", "#followed", "#95 % interval", "#N", "#by chance", "")
    for shortcut in result.shortcuts:
        score, follow = shortcut.score, shortcut.follow
        cells = (number(score), interval(score), f"{score.n:,}", _plain(shortcut.guess))
        alone.add_row(shortcut.name, *cells, "+" if shortcut.earns else "")
        cells = (number(follow), interval(follow), f"{follow.n:,}", _plain(shortcut.follow_chance))
        followed.add_row(shortcut.name, *cells, "*" if shortcut.followed else "")
    return alone, followed


def _plain(value: float) -> str:
    return f"{value:.3f}" if value == value else "–"

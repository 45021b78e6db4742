"""What a person reads in the terminal: the headline in words, then the table."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from unslant.metrics import Estimate, LabelShare

if TYPE_CHECKING:
    from rich.console import RenderableType

    from unslant.studies.audit import AuditResult

_MOST_SUBJECTS = 12


def render(*parts: RenderableType, width: int = 100, color: bool = False) -> str:
    """Rich parts as text, one below the other."""
    stream = io.StringIO()
    console = Console(file=stream, width=width, force_terminal=color, color_system="auto" if color else None)
    for part in parts:
        console.print(part, highlight=False, soft_wrap=isinstance(part, str))
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())


def number(estimate: Estimate, digits: int = 3) -> str:
    """The value alone; a dash where there is none."""
    return f"{estimate.value:.{digits}f}" if estimate.defined else "–"


def interval(estimate: Estimate, digits: int = 3) -> str:
    """``low – high``, or nothing where the data allow none."""
    if not estimate.defined or estimate.low != estimate.low:
        return ""
    return f"{estimate.low:.{digits}f} – {estimate.high:.{digits}f}"


def headline(result: AuditResult) -> str:
    """The outcome in one sentence, as a manager would read it."""
    means = result.metrics.means
    parts = [f"reported {number(means.accuracy, 2)}"] if means.accuracy.defined else []
    if means.robust_accuracy.defined:
        parts.append(f"{number(means.robust_accuracy, 2)} whatever the order")
    if result.metrics.preference.unsure.defined:
        parts.append(result.metrics.preference.phrase)
    if means.vote_accuracy.defined:
        parts.append(f"voted {number(means.vote_accuracy, 2)}")
    return "; ".join(parts) or "nothing could be measured"


def summary(result: AuditResult, width: int = 100, color: bool = False) -> str:
    """The whole audit as text."""
    parts: list[RenderableType] = [f"{_about(result)}\n", f"[bold]{headline(result)}[/bold]\n", _score_table(result)]
    parts += ["", _preference_table(result)]
    if result.metrics.by_subject:
        parts += ["", _subject_table(result)]
    parts += ["", *_notes(result)]
    return render(*parts, width=width, color=color)


def _about(result: AuditResult) -> str:
    counts = result.metrics.counts
    options = ", ".join(f"{number} with {n} options" for n, number in counts.by_options.items())
    return f"{result.meta.get('model', 'model')} on {result.meta.get('questions', 'questions')}: {options}"


def _table(*columns: str, title: str = "") -> Table:
    table = Table(box=None, pad_edge=False, title=title or None, title_justify="left", title_style="bold")
    for i, column in enumerate(columns):
        right = column in ("value", "N", "95 % interval") or column.startswith("#")
        table.add_column(column.removeprefix("#"), justify="right" if right else "left", no_wrap=i == 0 or right)
    return table


def _score_table(result: AuditResult) -> Table:
    means, bias, over = result.metrics.means, result.metrics.label_bias, result.metrics.over_orders
    rows = (
        ("accuracy, as reported", means.accuracy, "options in the order of the file"),
        ("accuracy, mean over orders", means.expected_accuracy, "the score without luck of the order"),
        ("accuracy, right in every order", means.robust_accuracy, "what the order cannot change"),
        ("accuracy, voted", means.vote_accuracy, "mean probability over the orders: the corrected answer"),
        ("accuracy, worst order", over.worst, "whole set under one order"),
        ("accuracy, best order", over.best, ""),
        ("chance", means.chance, "share of options that are right"),
        ("consistency", means.consistency, "questions with the same answer in every order"),
        ("flips when reversed (FR)", means.fr, "answer changes when the order is reversed"),
        ("flips, labels reversed", means.fr_labels, ""),
        ("flips, both reversed", means.fr_both, ""),
        ("PBM", means.pbm, "variance of an option's probability over the orders"),
        ("PBM, normalised", means.normalised_pbm, "share of its maximum"),
        ("AccStd", over.std, "spread of accuracy over the orders"),
        ("RStd", bias.rstd, "spread of recall over the labels"),
        ("RSD", bias.rsd, "the same, relative to the mean"),
        ("CKLD", bias.ckld, "predicted against gold label shares"),
        ("ties", means.tie_rate, "several options equally probable, given order"),
    )
    table = _table("", "value", "95 % interval", "N", "meaning")
    for name, estimate, meaning in rows:
        if estimate.defined:
            table.add_row(name, number(estimate), interval(estimate), f"{estimate.n:,}", meaning)
    return table


def _preference_table(result: AuditResult) -> Table:
    preference = result.metrics.preference
    unsure = (
        f"{number(preference.unsure)} of {preference.unsure.n:,} questions" if preference.unsure.defined else "none"
    )
    table = _table(
        "label", "#when unsure", "#95 % interval", "#expected", "#predicted", "#gold", "#recall",
        title=f"Labels (unsure, the answer changes with the order: {unsure})",
    )  # fmt: skip
    given = {row.label: row for row in result.metrics.given_labels}
    for slot in preference.slots:
        own = given.get(slot.label)
        cells = _share_cells(own) if own else ("", "", "")
        name = f"[bold]{slot.label}[/bold]" if slot.label == preference.named else slot.label
        expected = f"{slot.expected:.3f}" if slot.expected == slot.expected else "–"
        table.add_row(name, number(slot.chosen), interval(slot.chosen), expected, *cells)
    return table


def _share_cells(row: LabelShare) -> tuple[str, str, str]:
    return number(row.predicted), number(row.gold), number(row.recall)


def _subject_table(result: AuditResult) -> Table:
    table = _table(
        "subject", "#N", "#reported", "#95 % interval", "#every order", "#voted", "#PBM", title="Subjects, by PBM"
    )
    ranked = sorted(result.metrics.by_subject.items(), key=lambda item: -_or_zero(item[1].pbm))
    for subject, means in ranked[:_MOST_SUBJECTS]:
        table.add_row(
            subject or "(none)",
            f"{means.accuracy.n:,}",
            number(means.accuracy),
            interval(means.accuracy),
            number(means.robust_accuracy),
            number(means.vote_accuracy),
            number(means.pbm, 4),
        )
    if len(ranked) > _MOST_SUBJECTS:
        table.add_row(f"... and {len(ranked) - _MOST_SUBJECTS} more (--json has all)", *[""] * 6)
    return table


def _or_zero(estimate: Estimate) -> float:
    return estimate.value if estimate.defined else 0.0


def _notes(result: AuditResult) -> list[str]:
    counts, cost = result.metrics.counts, result.cost
    found = [
        (counts.failed_rows, "responses failed; they count as no answer, and their questions are left out of orders"),
        (counts.incomplete, "questions left out of the order metrics because an order is missing or failed"),
        (counts.no_right_option, "questions have no right option and are left out of accuracies"),
        (counts.several_right, "questions have several right options; naming one of them counts as right"),
        (counts.with_pinned, "questions have options that keep their place (all of the above, both A and C)"),
        (counts.immovable, "questions have nothing to reorder"),
        (counts.sampled_orders, "questions were shown in a sample of their orders"),
    ]
    lines = [f"note: {count:,} {words}" for count, words in found if count]
    loading = result.meta.get("loading")
    if isinstance(loading, dict):
        lines += [f"note: {count:,} lines skipped: {reason}" for reason, count in loading.get("skipped", {}).items()]
    if cost.prompts:
        plain = cost.tokens_plain / max(1, cost.tokens)
        lines.append(
            f"{cost.prompts:,} prompts in {cost.seconds:.1f} s; {cost.tokens:,} tokens computed, "
            f"{cost.tokens_plain:,} if each prompt were run alone ({plain:.1f}x), "
            f"{cost.tokens_baqckv:,} with question-context caching ({cost.tokens_baqckv / max(1, cost.tokens):.1f}x)"
        )
    return lines

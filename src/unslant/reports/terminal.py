"""What a person reads in the terminal: the headline in words, then the table."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from unslant.metrics import Estimate, LabelShare
from unslant.studies.audit.rows import cost_line, notes, score_rows

if TYPE_CHECKING:
    from rich.console import RenderableType

    from unslant.studies.audit.result import AuditResult

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
    if result.corrections:
        parts += ["", _correction_table(result)]
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
    table = _table("", "value", "95 % interval", "N", "meaning")
    for row in score_rows(result.metrics):
        table.add_row(
            row.name,
            number(row.estimate, row.digits),
            interval(row.estimate, row.digits),
            f"{row.estimate.n:,}",
            row.meaning,
        )
    return table


def _preference_table(result: AuditResult) -> Table:
    preference = result.metrics.preference
    unsure = (
        f"{number(preference.unsure)} of {preference.unsure.n:,} questions" if preference.unsure.defined else "none"
    )
    table = _table(
        "label", "#when unsure", "#95 % interval", "#expected", "#predicted", "#gold", "#recall",
        "#Nvr-X", "#base rate",
        title=f"Labels (unsure, the answer changes with the order: {unsure})",
    )  # fmt: skip
    given = {row.label: row for row in result.metrics.given_labels}
    never = {label: number(e) for label, e in zip(result.nvr.labels, result.nvr.accuracy, strict=True)}
    rates = _base_rate_shares(result)
    for slot in preference.slots:
        own = given.get(slot.label)
        cells = _share_cells(own) if own else ("", "", "")
        beside = never.get(slot.label, ""), rates.get(slot.label, "")
        name = f"[bold]{slot.label}[/bold]" if slot.label == preference.named else slot.label
        expected = f"{slot.expected:.3f}" if slot.expected == slot.expected else "–"
        table.add_row(name, number(slot.chosen), interval(slot.chosen), expected, *cells, *beside)
    return table


def _base_rate_shares(result: AuditResult) -> dict[str, str]:
    """Share of each label on the question without content, for the most common number of options."""
    counts = result.metrics.counts.by_options
    usual = max(counts, key=lambda n: counts[n])
    if usual not in result.base_rates:
        return {}
    rates = result.base_rates[usual]
    return {label: f"{share:.3f}" for label, share in zip(rates.labels, rates.shares.tolist(), strict=True)}


def _correction_table(result: AuditResult) -> Table:
    table = _table(
        "", "#accuracy", "#95 % interval", "#change", "#95 % interval ", "#N", "#orders",
        title="Corrected, from the same scores",
    )  # fmt: skip
    for c in result.corrections:
        cells = number(c.accuracy), interval(c.accuracy), signed(c.change), interval(c.change)
        table.add_row(c.method, *cells, f"{c.accuracy.n:,}", f"{c.orders:.1f}")
    score = result.nvr.score
    if score.defined:
        table.add_row("Nvr-X (least)", number(score), interval(score), "", "", f"{score.n:,}", "")
    return table


def signed(estimate: Estimate, digits: int = 3) -> str:
    """A difference with its sign."""
    return f"{estimate.value:+.{digits}f}" if estimate.defined else "–"


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
    cost = cost_line(result)
    return [f"note: {note}" for note in notes(result)] + ([cost] if cost else [])

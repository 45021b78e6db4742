"""The page of a check of questions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unslant.metrics.accuracy import LEVEL
from unslant.reports import Column, Figure, Page, Panel, Plot, charts
from unslant.reports.numbers import count, listed, p_words, percent, with_interval

if TYPE_CHECKING:
    from unslant.studies.question_check.check import QuestionCheck


def page(found: QuestionCheck) -> Page:
    """What was understood, what is odd, and the positions of right options."""
    report = found.questions.report
    sizes = [f"{count(n, 'question')} with {size} options" for size, n in report.option_counts.items()]
    understood, read = count(len(found.questions), "question"), count(report.n_read, "record")
    return Page(
        about=f"{report.origin}: {understood} understood of {read}",
        headline=_headline(found),
        lines=_lines(found),
        panels=(_columns(found), _oddities(found), _positions(found)),
        notes=(*_first(found), f"{listed(sizes)}.", *(f"{note[:1].upper()}{note[1:]}." for note in report.notes)),
        name=found.questions.name,
        caveats=report.caveats,
    )


def _headline(found: QuestionCheck) -> str:
    understood = f"{count(len(found.questions), 'question')} understood"
    skewed, long = (p < LEVEL for p in found.tests)
    left_out = {f"left out: {reason}" for reason in found.questions.report.skipped}  # a caveat above has them
    names = [f"{one.name} ({one.count:,})" for one in found.oddities if one.name not in left_out]
    names += ["right answers favour a position"] * skewed
    names += [f"the longest option is right {_than_chance(found)}"] * long
    if names:
        return f"{understood}; to check: {listed(names, 4)}"
    return (
        f"{understood}; {'no irregularity found' if found.positions.tested else 'too few to test for skewed answers'}"
    )


def _than_chance(found: QuestionCheck) -> str:
    return f"{'more' if found.longest_excess.value > 0 else 'less'} often than by chance"


def _lines(found: QuestionCheck) -> tuple[str, ...]:
    """What positions and lengths of right options give away, or that there are too few questions to say."""
    at, (where, long) = found.positions, found.tests
    if not at.tested:
        placed = "Too few questions to test whether right answers favour a position."
    elif where < LEVEL:
        most = max(range(len(at.counts)), key=lambda i: at.counts[i] - at.expected[i])
        placed = f"Position {most + 1} is right {at.counts[most]:,} times, {at.expected[most]:,.0f} if all were equal."
    else:
        placed = f"No skew of right answers over positions is shown on {count(at.tested, 'question')}."
    if not found.longest.defined:
        return (placed,)
    share = f"The longest option is right in {percent(found.longest.value)} of {count(found.longest.n, 'question')}"
    chance = f"a random one in {percent(found.longest_chance)}"
    return placed, f"{share}, {chance}{f': {_than_chance(found)}' * (long < LEVEL)}."


def _columns(found: QuestionCheck) -> Panel:
    rows = [
        {"column": use.column, "became": use.field or "not used", "first values": "; ".join(use.examples)}
        for use in found.columns
    ]
    columns = Figure("columns", "Columns", ["column"], [Column("became"), Column("first values")], rows)
    about = "Map a field to another column with --fields FIELD=COLUMN."
    return Panel("columns", "What was understood", about, figures=(columns,))


def _oddities(found: QuestionCheck) -> Panel:
    columns = [Column("count"), Column("first"), Column("meaning")]
    rows = [vars(oddity) for oddity in found.oddities]
    oddities = Figure("oddities", "Questions and records that are odd", [Column("with", key="name")], columns, rows)
    about = "Common irregularities; none is fatal, but each changes what a score means."
    return Panel("oddities", "Oddities", about, figures=(oddities,))


def _positions(found: QuestionCheck) -> Panel:
    at = found.positions
    rows = [
        {"position": chr(ord("A") + i), "right": n, "expected": expected}
        for i, (n, expected) in enumerate(zip(at.counts, at.expected, strict=True))
    ]
    plot = Plot(
        charts.counts,
        "Number of questions whose right option is in each position of the file.",
        ["right"],
    )
    columns = [Column("right"), Column("if equally often", 1, key="expected")]
    figure = Figure("positions", "Right options by position", ["position"], columns, rows, [plot])
    notes = []
    if at.tested:
        notes.append(
            f"All positions equally often right: {p_words(at.p)} (chi-squared {at.statistic:.1f}, {at.degrees} degrees "
            f"of freedom, {count(at.tested, 'question')})."
        )
    elif rows:
        notes.append("Too few questions to test whether all positions are equally often right.")
    if found.longest.defined:
        notes.append(
            f"The longest option is right in {with_interval(found.longest)} of {count(found.longest.n, 'question')}, a "
            f"random one in {found.longest_chance:.3f}: a difference of {with_interval(found.longest_excess)}."
        )
    about = "A model that prefers a position, or the longest option, scores by it where right options have that trait."
    return Panel(
        "positions",
        "Positions of right options",
        about,
        figures=(figure,),
        notes=tuple(notes),
        short="Positions",
    )


def _first(found: QuestionCheck) -> tuple[str, ...]:
    question = found.questions[0]
    options = " ".join(f"{chr(ord('A') + i)}. {text}" for i, text in enumerate(question.options))
    right = listed([chr(ord("A") + i) for i in sorted(question.answers)]) or "none"
    how = found.questions.report.answers
    reading = (f"Answers were read as {how}.",) if how else ()
    return (
        *reading,
        f"First question as understood: {question.stem[:200]} {options[:400]} Right: {right}.",
    )

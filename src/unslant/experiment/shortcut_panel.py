"""The panel of test-taking shortcuts, which the audit and the base-rate study show."""

from __future__ import annotations

from collections.abc import Sequence

from unslant.metrics.shortcuts import Shortcut
from unslant.reports import Column, Panel, Table


def shortcut_panel(found: Sequence[Shortcut], id: str) -> Panel:
    """What test-taking shortcuts score, and whether wrong answers follow them."""
    keys = ("score", "guess")
    columns = (
        Column("shortcut"),
        *(Column.of(f"shortcuts.{key}") for key in keys),
        Column("earns", explanation="the shortcut alone scores above guessing"),
        *map(Column.of, ("follow", "follow_chance", "shortcuts.excess")),
        Column("is followed", explanation="more than by chance"),
        Column.of("applies"),
    )
    rows = tuple(
        (s.name, s.score, s.guess, "yes" if s.earns else "no", s.follow, s.follow_chance, s.excess,
         "yes" if s.followed else "no", s.applies)
        for s in found
    )  # fmt: skip
    return Panel(
        id,
        "Test-taking shortcuts",
        "Score of each shortcut alone, and how often a wrong answer matches a wrong shortcut.",
        tables=(Table(f"{id}-table", "Shortcuts", columns, rows),) if rows else (),
        short="Shortcuts",
    )

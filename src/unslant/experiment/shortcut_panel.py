"""The panel of test-taking shortcuts, which the audit and the base-rate study show."""

from __future__ import annotations

from collections.abc import Sequence

from unslant.metrics.shortcuts import Shortcut
from unslant.reports import Column, Figure, Panel


def shortcut_panel(found: Sequence[Shortcut], id: str) -> Panel:
    """What test-taking shortcuts score, and whether wrong answers follow them."""
    columns = [
        *map(Column.of, ("shortcuts.score", "shortcuts.guess")),
        Column("earns", explanation="the shortcut alone scores above guessing"),
        *map(Column.of, ("follow", "follow_chance", "shortcuts.excess")),
        Column("is followed", explanation="more than by chance"),
        Column.of("applies"),
    ]
    rows = [
        {
            **vars(one),
            "shortcut": one.name,
            "earns": "yes" if one.earns else "not shown",
            "excess": one.excess,
            "is followed": "yes" if one.followed else "not shown",
        }
        for one in found
    ]
    return Panel(
        id,
        "Test-taking shortcuts",
        "Score of each shortcut alone, and how often a wrong answer matches a wrong shortcut.",
        figures=(Figure(f"{id}-table", "Shortcuts", ["shortcut"], columns, rows),),
        short="Shortcuts",
    )

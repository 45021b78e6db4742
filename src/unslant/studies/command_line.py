"""The command that is running, for what it writes; imports next to nothing, so that naming it costs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar

from unslant.errors import without_options

COMMAND: ContextVar[tuple[str, ...]] = ContextVar("command", default=())
"""The words typed after ``unslant``; none in Python."""
OUTPUTS = frozenset(
    {"json", "html", "responses", "out", "figures", "tables", "charts", "samples", "save_model", "merged"}
)
"""Names of options that say where to write."""
_ELSEWHERE = frozenset(
    {f"--{name.replace('_', '-')}" for name in OUTPUTS} | {"--store", "--fail-if", "--baseline", "--config"}
)
_SWITCHES = frozenset({"--quiet", "-q", "--details", "--no-store"})


def reproducing(words: Sequence[str]) -> list[str]:
    """A command without the options that say where to write, what to store and what to show."""
    switches = _SWITCHES - {"-q"} if "leaderboard" in words[:1] else _SWITCHES  # there -q names questions
    return without_options(words, _ELSEWHERE, switches)

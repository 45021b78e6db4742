"""The command that is running, for what it writes; imports nothing, so that naming it costs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar

COMMAND: ContextVar[tuple[str, ...]] = ContextVar("command", default=())
"""The words typed after ``unslant``; none in Python."""
OUTPUTS = frozenset({"json", "html", "responses", "out", "figures", "tables", "charts", "save_model"})
"""Names of options that say where to write."""
_ELSEWHERE = frozenset(
    {f"--{name.replace('_', '-')}" for name in OUTPUTS} | {"--store", "--fail-if", "--baseline", "--config"}
)
_SWITCHES = frozenset({"--quiet", "-q", "--details", "--no-store"})


def reproducing(words: Sequence[str]) -> list[str]:
    """A command without the options that say where to write, what to store and what to show."""
    found, left_out = [], False
    switches = _SWITCHES - {"-q"} if "leaderboard" in words[:1] else _SWITCHES  # there -q names questions
    for word in words:
        option, sign, _ = word.partition("=")
        option = option.replace("_", "-")
        if not left_out and option not in switches and option not in _ELSEWHERE:
            found.append(word)
        left_out = not left_out and option in _ELSEWHERE and not sign
    return found

"""The command that is running, for what it writes; imports next to nothing, so that naming it costs nothing."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Command:
    """A command as it may be written down: the words after ``unslant``, without secrets; none from Python.

    Attributes:
        words: all of them, for the run store.
        repeatable: those that say what is asked, for provenance: not where to write, what to store and what to show.
    """

    words: tuple[str, ...] = ()
    repeatable: tuple[str, ...] = ()


ON_INTERRUPT: list[Callable[[], None]] = []
"""Called, from another thread, where the main one is busy in native code and cannot handle Ctrl-C itself."""
_FROM_PYTHON = Command()
COMMAND: ContextVar[Command] = ContextVar("command", default=_FROM_PYTHON)
OUTPUTS = frozenset(
    {"json", "html", "responses", "out", "figures", "tables", "charts", "samples", "save_model", "merged"}
)
"""Names of options that say where to write."""
NOT_REPEATED = OUTPUTS | {"plan", "store", "fail_if", "baseline", "quiet", "details", "no_store"}
"""Names of options that have no part in what is asked."""

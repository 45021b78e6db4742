"""Run the command line in this process, as a user would type it."""

from __future__ import annotations

import copy
import io
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from cyclopts import App, ArgumentCollection

from unslant import cli


@dataclass(frozen=True)
class Ran:
    """What a command left behind."""

    code: int
    out: str
    err: str


_ASSEMBLE = App.assemble_argument_collection
_ASSEMBLED: dict[Callable[..., Any], ArgumentCollection] = {}


def _assembled(app: App, **options: Any) -> ArgumentCollection:
    """The arguments of a command, without values.

    A user's process runs one command. Here many run, and the parser would put the same arguments together every time,
    which takes longer than all else in a command that is refused: later calls get copies.
    """
    command = app.default_command
    if command is None or options:
        return _ASSEMBLE(app, **options)
    if command not in _ASSEMBLED:
        _ASSEMBLED[command] = _ASSEMBLE(app)
    copies = ArgumentCollection(map(copy.copy, _ASSEMBLED[command]))
    for argument in copies:
        assert not argument.children, "options within options would be shared with other calls"
        argument.tokens, argument.children = [], ArgumentCollection()
    return copies


def unslant(*arguments: object) -> Ran:
    """``unslant`` with these arguments."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with (
        patch("sys.argv", ["unslant", *map(str, arguments)]),
        patch.object(warnings, "formatwarning"),
        patch.object(App, "assemble_argument_collection", _assembled),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            cli.main()
        except SystemExit as stopped:
            code = stopped.code if isinstance(stopped.code, int) else int(bool(stopped.code))
    return Ran(code, out.getvalue(), err.getvalue())

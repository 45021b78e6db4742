"""Run the command line in this process, as a user would type it."""

from __future__ import annotations

import io
import warnings
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from unittest.mock import patch

from unslant import cli


@dataclass(frozen=True)
class Ran:
    """What a command left behind."""

    code: int
    out: str
    err: str


def unslant(*arguments: object) -> Ran:
    """``unslant`` with these arguments."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with (
        patch("sys.argv", ["unslant", *map(str, arguments)]),
        patch.object(warnings, "formatwarning"),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            cli.main()
        except SystemExit as stopped:
            code = stopped.code if isinstance(stopped.code, int) else int(bool(stopped.code))
    return Ran(code, out.getvalue(), err.getvalue())

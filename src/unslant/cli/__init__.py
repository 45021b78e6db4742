"""The command line: parse, call a study, print, write. Commands are imported when they are called."""

from __future__ import annotations

import os
import sys
import warnings

from cyclopts import App, CycloptsError, Parameter

import unslant
from unslant.errors import UnslantError
from unslant.studies.commands import register
from unslant.studies.options import OPTIONS
from unslant.studies.readers import STUDIES

COMMANDS = {
    **STUDIES["audit"].homes(),
    "debias": "unslant.cli.debias:debias",
    "train": "unslant.cli.train:train",
    "replies": "unslant.cli.replies:replies",
    "report": "unslant.cli.report:report",
}


def _shown(value: object) -> str | None:
    """A default as the help shows it; switches and empty values show none."""
    if value is None or isinstance(value, bool) or value in ("", (), {}) or callable(value):
        return None
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


app = App(
    name="unslant",
    help="How much of a multiple-choice score is option order, label preference or luck.",
    version=unslant.__version__,
    help_format="plaintext",
    group_parameters=OPTIONS,
    default_parameter=Parameter(negative="", show_default=_shown),
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)
register(app, COMMANDS)
app.command("unslant.cli.study:group", name="study", help="Run one of the experiments.")
app.command("unslant.cli.questions:group", name="questions", help="Make question sets.")
app.command("unslant.cli.runs:group", name="runs", help="List, show, resume, remove or export recorded runs.")
app.command("unslant.cli.completion:install", name="--install-completion", help="Install shell completion.")


def main() -> None:
    """Entry point: errors the user can mend become one line and exit code 2."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    warnings.formatwarning = lambda message, *_: f"warning: {message}\n"
    try:
        app(sys.argv[1:], exit_on_error=False, print_error=False)
    except UnslantError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except CycloptsError as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        sys.exit(130)

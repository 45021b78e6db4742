"""The command line; commands are imported only when called."""

from __future__ import annotations

import functools
import os
import re
import shlex
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from cyclopts import App, CycloptsError, Group, Parameter, UnknownOptionError, UnusedCliTokensError
from cyclopts.argument import ArgumentCollection

import unslant
from unslant.cli.commands import register
from unslant.cli.config import Config
from unslant.cli.help import print_help
from unslant.cli.safe_files import check_files
from unslant.cli.words import Recorded, Seen
from unslant.errors import (
    FailedConditionsError,
    InputError,
    MostlyFailedError,
    OutputError,
    UnslantError,
    first_line,
    naming_flags,
    shown,
)
from unslant.experiment.command_line import COMMAND, ON_INTERRUPT, Command
from unslant.extras import missing
from unslant.reach import without_secrets
from unslant.studies.readers import STUDIES, TOP
from unslant.writing import unfailing_streams

COMMANDS = {
    "Measure": {
        **{name: STUDIES[name] for name in TOP},
        "plan": "unslant.cli.plan:plan",
        "lm-eval": "unslant.plugins.lm_eval.command:lm_eval",
        "replies": "unslant.cli.replies:replies",
    },
    "Correct": {
        "debias": "unslant.cli.debias:debias",
        "train": "unslant.cli.debias:train",
    },
    "Studies": {},
    "Files": {
        "report": "unslant.cli.report:report",
        "export": "unslant.cli.export:export",
        "merge": "unslant.cli.report:merge",
        "rerun": "unslant.cli.rerun:rerun",
    },
    "Lists": {
        "models": "unslant.cli.listing:models",
        "templates": "unslant.cli.listing:templates",
    },
}
"""Commands as ``unslant --help`` lists them, by heading; groups of commands are added below."""


def _shown(value: object) -> str | None:
    """A default as shown in help; none for switches and empty values."""
    if value is None or isinstance(value, bool) or value in ("", (), {}) or callable(value):
        return None
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


app = App(
    name="unslant",
    help="How much of a multiple-choice score is option order, label preference or luck.",
    help_epilogue="Start with: unslant audit (it needs no arguments)\n\nunslant COMMAND --help shows the usual options "
    "of a command, --help-all every option. Also: --version, --install-completion.",
    version=unslant.__version__,
    help_format="plaintext",
    group_parameters=Group("Options", sort_key=1),
    default_parameter=Parameter(negative="", show_default=_shown),
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)
GROUPS = {title: Group(title, sort_key=place) for place, title in enumerate(COMMANDS)}
for title, commands in COMMANDS.items():
    register(app, commands, GROUPS[title])
for name, title, home, about in (
    ("study", "Studies", "studies", "Run one of the experiments of the papers; unslant study --help lists them."),
    ("questions", "Files", "questions", "Check or build question sets."),
    ("runs", "Files", "runs", "List, show, resume, delete or export recorded runs."),
):
    app.command(f"unslant.cli.{home}:group", name=name, help=about, group=GROUPS[title])
app.command("unslant.cli.completion:install", name="--install-completion", help="Install shell completion.")


_HOLD_SECRETS = frozenset({"--header", "--extra-body", "--base-url", "--inspect"})
EXIT_STATUS = {OutputError: 5, FailedConditionsError: 4, MostlyFailedError: 3}
"""Errors that do not end with 2."""


PATIENCE = 1.5
"""Seconds that a command has to end in order after Ctrl-C."""


@contextmanager
def interrupts_end() -> Iterator[None]:
    """The first Ctrl-C lets the block end in order, for :data:`PATIENCE`; a second ends the process at once (code 130).

    Python runs signal handlers only between bytecodes, which may be minutes apart while a model computes; a thread that
    reads the wakeup pipe notices even then. Everything scored is in the store by then, so nothing is lost.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)

    deadline = threading.Timer(PATIENCE, _end_now)
    deadline.daemon = True

    def listen() -> None:
        left = 2
        while number := os.read(reader, 1):
            if number[0] == signal.SIGINT:
                left -= 1
                if not left:
                    os._exit(130)
                deadline.start()
        os.close(reader)

    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    threading.Thread(target=listen, daemon=True).start()
    _keep_from_children()
    try:
        yield
    finally:
        deadline.cancel()
        signal.set_wakeup_fd(before)
        os.close(writer)


def _end_now() -> None:
    """Note that the run was stopped, unless the store is busy, and end the process."""
    for note in ON_INTERRUPT:
        thread = threading.Thread(target=note, daemon=True)
        thread.start()
        thread.join(0.3)
    print("stopped", file=sys.stderr, flush=True)
    os._exit(130)


@functools.cache
def _keep_from_children() -> None:
    """Forked children must not write to the parent's wakeup pipe: their Ctrl-C would count as ours."""
    if hasattr(os, "register_at_fork"):  # not on Windows
        os.register_at_fork(after_in_child=lambda: signal.set_wakeup_fd(-1))


def main() -> None:
    """Entry point: every deliberate error becomes one line and an exit code (:data:`EXIT_STATUS`)."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    # threads that spin while they wait make small models twenty times slower where other processes want the cores
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    warnings.formatwarning = lambda message, *_: f"warning: {message}\n"
    before = COMMAND.set(Command())
    try:
        with naming_flags(), unfailing_streams() as lost_output:
            code = _run(sys.argv[1:])
            if code in (0, *EXIT_STATUS.values()) and (lost := lost_output()):
                print(f"error: {lost}", file=sys.stderr)
                code = EXIT_STATUS[OutputError]
    finally:
        COMMAND.reset(before)
    if code:
        sys.exit(code)


def _run(words: Sequence[str]) -> int:
    """Run a command and say what went wrong; returns the exit code."""
    try:
        with interrupts_end():
            call(words)
    except ModuleNotFoundError as error:
        if not (advice := missing(error)):
            raise
        print(f"error: {advice}", file=sys.stderr)
        return 2
    except UnslantError as error:
        for line in getattr(error, "lines", (error,)):
            print(f"error: {line}", file=sys.stderr)
        return next((code for kind, code in EXIT_STATUS.items() if isinstance(error, kind)), 2)
    except UnusedCliTokensError as error:
        words = " ".join(error.unused_tokens or ())
        if _HOLD_SECRETS & {word.partition("=")[0].replace("_", "-") for word in sys.argv}:
            words = "a word"  # part of a value without quotation marks, perhaps
        print(f"error: {words}: one argument too many; names with spaces need quotation marks", file=sys.stderr)
        return 2
    except CycloptsError as error:
        text = str(error)
        for word in sys.argv if isinstance(error, UnknownOptionError) else ():
            text = text.replace(word, word.partition("=")[0])  # --headr='NAME: SECRET'
        print(f"error: {' '.join(without_secrets(text).split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    return 0


def call(words: Sequence[str], defaults: bool = True) -> None:
    """Run a command, as typed after ``unslant``; without ``defaults`` no file of settings is read."""
    if print_help(app, words):
        return
    config, words = Config.of(words) if defaults else (Config(), list(words))
    seen = Seen(words)
    try:
        command, given = _parsed(words, config, seen)
        COMMAND.set(seen.command)
        check_files({**given.arguments, "config": config.path})
        with _connected(given.arguments.get("offline", False)):
            command(*given.args, **given.kwargs)
    except InputError as error:
        if type(error) is InputError and (options := config.named_in(str(error))):
            raise InputError(f"{error} ({shown(config.path)} sets {', '.join(options)})") from error
        raise


def _connected(without: bool) -> AbstractContextManager[None]:
    """What ``--offline`` asks for, where it was given."""
    if not without:
        return nullcontext()
    from unslant.reachable import offline

    return offline()


def repeat(recorded: Recorded, typed: Sequence[str] = ()) -> None:
    """Run a command from a file, with these words typed again, and say so."""
    started, seen = COMMAND.get(), Seen([*recorded.words, *typed])
    command, given = _parsed([*recorded.commands, *typed], recorded, seen)
    print(f"unslant {shlex.join(seen.command.words)}", file=sys.stderr)
    # The store keeps what the user typed: a run that is resumed from it trusts the file no further than now.
    words = seen.command.words if recorded.writes else (*started.words, *seen.typed)
    COMMAND.set(Command(words, seen.command.repeatable))
    check_files(given.arguments)
    with recorded.keys_kept(), _connected(given.arguments.get("offline", False)):
        command(*given.args, **given.kwargs)


def _parsed(words: Sequence[str], *sources: Any) -> tuple[Any, Any]:
    """The function and the arguments of a command, with values of these sources where none were typed."""
    app.config = sources
    command, given, *_ = app.parse_args(with_values(words), exit_on_error=False, print_error=False)
    given.apply_defaults()
    return command, given


class _Arguments(Exception):
    """Ends the parsing of a command before its values are converted."""


def arguments_of(words: Sequence[str]) -> tuple[tuple[str, ...], ArgumentCollection]:
    """The command that words name, and its arguments; nothing is checked, opened or read.

    Raises:
        InputError: if they are not a command.
    """

    def stop(_: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
        raise _Arguments(commands, arguments)

    try:
        _parsed(words, stop)
    except _Arguments as parsed:
        commands, arguments = parsed.args
        return commands, arguments
    except CycloptsError as error:
        raise InputError(f"its command cannot be read: {first_line(error)}") from None
    raise InputError("its command only shows help")


def with_values(words: Sequence[str]) -> list[str]:
    """Words as the parser needs them, which treats every word starting with a dash as an option.

    ``--json -`` becomes ``--json=-``, and ``--ray``, whose address may be left out, ``--ray=auto`` where the next word
    is not one.
    """
    joined: list[str] = []
    for word in words:
        if word == "-" and joined and joined[-1].startswith("--") and "=" not in joined[-1]:
            joined[-1] += "=-"
            continue
        if joined and joined[-1] == "--ray" and not _CLUSTER.fullmatch(word):
            joined[-1] = "--ray=auto"
        joined.append(word)
    return [*joined[:-1], "--ray=auto"] if joined and joined[-1] == "--ray" else joined


_CLUSTER = re.compile(r"auto|local|ray://.+|[\w.-]+:\d+|\[[\da-fA-F:]+\]:\d+")
"""An address of a Ray cluster."""

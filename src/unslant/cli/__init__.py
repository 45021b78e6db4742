"""The command line; commands are imported only when called."""

from __future__ import annotations

import functools
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import copy_context
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args

from cyclopts import (
    App,
    CoercionError,
    CycloptsError,
    Group,
    MissingArgumentError,
    Parameter,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
)
from cyclopts.argument import ArgumentCollection

import unslant
from unslant.cli.commands import ALL, HELP_OF, SHORT, Seen, check_files, register
from unslant.errors import (
    FailedConditionsError,
    InputError,
    MostlyFailedError,
    OutputError,
    UnslantError,
    missing,
    naming_flags,
    offline,
    one_line,
    shortened,
    shown,
)
from unslant.reach import COMMAND, ON_INTERRUPT, without_secrets
from unslant.studies import STUDIES, TOP
from unslant.writing import unfailing_streams

COMMANDS = {
    "Measure": {
        **{name: STUDIES[name] for name in TOP},
        "plan": "unslant.cli.questions:plan",
        "lm-eval": "unslant.plugins.lm_eval.study:LmEval",
        "replies": "unslant.cli.replies:replies",
    },
    "Correct": {"debias": "unslant.cli.debias:debias", "train": "unslant.cli.debias:train"},
    "Studies": {},
    "Files": {
        "report": "unslant.cli.results:report",
        "export": "unslant.cli.export:export",
        "merge": "unslant.cli.results:merge",
        "rerun": "unslant.cli.results:rerun",
    },
    "Lists": {"models": "unslant.cli.listing:models", "templates": "unslant.cli.listing:templates"},
}
"""Heading in ``unslant --help`` -> commands; groups of commands are added below."""


def _default(value: object) -> str | None:
    """A default for help; None for switches and empty values."""
    if value is None or isinstance(value, bool) or value in ("", (), {}) or callable(value):
        return None
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


app = App(
    name="unslant",
    help="How much of a multiple-choice score is option order, label preference or luck.",
    help_epilogue=f"Start with: unslant audit (it needs no arguments)\n\n{HELP_OF.format('')} Also: --version, "
    "--install-completion.",
    version=unslant.__version__,
    help_format="plaintext",
    group_parameters=Group("Options", sort_key=1),
    default_parameter=Parameter(negative="", show_default=_default),
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)
GROUPS = {title: Group(title, sort_key=place) for place, title in enumerate(COMMANDS)}
for title, commands in COMMANDS.items():
    register(app, commands, GROUPS[title])
for name, title, home, about in (
    ("study", "Studies", "studies", "Run an experiment from the papers, such as base-rate or unbiased."),
    ("questions", "Files", "questions", "Check or build question sets."),
    ("runs", "Files", "runs", "List, show, resume, delete or export recorded runs."),
):
    app.command(f"unslant.cli.{home}:group", name=name, help=about, group=GROUPS[title])
app.command("unslant.cli.listing:install", name="--install-completion", help="Install shell completion.")


FILE = Path("unslant.toml")
"""In the working folder: defaults of options."""
_HOLD_SECRETS = frozenset({"--header", "--extra-body", "--base-url", "--inspect"})
EXIT_STATUS = {OutputError: 5, FailedConditionsError: 4, MostlyFailedError: 3}
"""Exit codes of errors; of all others it is 2."""
MEANT = {
    "--report": "--html",
    "--num-fewshot": "--shots",
    "--apply-chat-template": "--chat",
    "--log-samples": "--responses",
    "--output-path": "--out",
}
"""Options that people guess or know from lm-eval, whose spelling is too far from ours for a suggestion by likeness."""
NEAR = 0.77
"""Similarity (the ratio of :mod:`difflib`) from which a word counts as a misspelling of a known name."""
_STOPS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""Ctrl-C, and what a scheduler or a closed terminal sends before it kills a process."""
PATIENCE = 1.5
"""Seconds that a command gets after one of these to end cleanly."""


@contextmanager
def interrupts_end() -> Iterator[None]:
    """After Ctrl-C the block has :data:`PATIENCE` seconds to end; a second one ends the process at once (code 130).

    SIGTERM and SIGHUP do the same, so that the last replies are stored and the run is listed as stopped.
    """
    # Python runs signal handlers only between bytecodes, which may be minutes apart while a model computes. A thread
    # that reads the wakeup pipe notices even then. All scores are in the store at that time, so nothing is lost.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reader, writer = os.pipe()
    if hasattr(os, "set_blocking"):  # on Windows from Python 3.12 on; it is not needed there
        os.set_blocking(writer, False)

    deadline = threading.Timer(PATIENCE, _end_now)
    deadline.daemon = True

    def listen() -> None:
        left = 2
        while number := os.read(reader, 1):
            if number[0] in _STOPS:
                left -= 1
                if not left:
                    os._exit(130)
                deadline.start()
        os.close(reader)

    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    threading.Thread(target=listen, daemon=True).start()
    _keep_from_children()
    defaults = [number for number in _STOPS if signal.getsignal(number) is signal.SIG_DFL]  # nohup's is another
    for number in defaults:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number in defaults:
            signal.signal(number, signal.SIG_DFL)
        deadline.cancel()
        signal.set_wakeup_fd(before)
        os.close(writer)


def _end_now() -> None:
    """Record that the run was stopped, unless the store is busy, and end the process."""
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
    """Run the command that was typed; deliberate errors become one line and an exit code (:data:`EXIT_STATUS`)."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    # Threads that spin while they wait make small models twenty times slower if other processes need the cores.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    warnings.formatwarning = lambda message, *_: f"warning: {one_line(str(message))}\n"
    with naming_flags(), unfailing_streams() as lost_output:
        code = copy_context().run(_run, sys.argv[1:])  # in a context of its own: a command's permissions end with it
        if code in (0, *EXIT_STATUS.values()) and (lost := lost_output()):
            print(f"error: {lost}", file=sys.stderr)
            code = EXIT_STATUS[OutputError]
    if code:
        sys.exit(code)


def _run(words: Sequence[str]) -> int:
    """Run a command and print its error; returns the exit code."""
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
            words = "a word"  # not quoted back: it may be part of a secret that was typed without quotation marks
        print(f"error: {words}: one argument too many; names with spaces need quotation marks", file=sys.stderr)
        return 2
    except CycloptsError as error:
        if isinstance(error, UnknownOptionError):
            text = _unknown(error)
        elif isinstance(error, UnknownCommandError):
            text = _unknown_command(error)
        else:
            text = _argument_error(error) or str(error)
        print(f"error: {shortened(' '.join(without_secrets(text).split()), _LONGEST_ERROR)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    return 0


def _argument_error(error: CycloptsError) -> str:
    """The message on a missing argument or a value of the wrong type; empty for other errors."""
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        if "Did you mean" in str(error):  # a similar word was typed, which the library names
            return ""
        if error.keyword or error.argument.tokens:
            return f"{error.keyword or error.argument.name}: give a value after it"
        command = " ".join(error.command_chain or ())
        return f"{command} needs {error.argument.name}; unslant {command} --help shows what it is"
    kinds = {int: "a whole number", float: "a number"}
    if isinstance(error, CoercionError) and error.token is not None and error.target_type in kinds:
        where = f" from {error.token.source}" if error.token.source not in ("", "cli") else ""
        return f"{str(error.token.keyword).strip('[]')} {error.token.value!r}{where}: give {kinds[error.target_type]}"
    return ""


def _unknown(error: UnknownOptionError) -> str:
    """The message on an unknown option, with the one that was probably meant."""
    for word in sys.argv[1:]:
        if word.startswith("-") and os.path.isfile(word):
            return f"{word}: begins with a dash, as options do; type the file as ./{word}"
    option = (error.token.keyword or error.token.value).partition("=")[0]
    known = {name.lstrip("-"): name for argument in error.argument_collection for name in argument.names}
    typed, meant = option.lstrip("-"), MEANT.get(option.replace("_", "-"), "").lstrip("-")
    # the dashes, which all names share, would make --dry-run look like --runs
    near = [name for name in (meant,) if name in known] or get_close_matches(typed, known, 1, NEAR)
    if near := near or [name for name in known if len(name) > 2 and typed.startswith(name)]:
        return f"Unknown option: {option}. Did you mean {known[near[0]]}?"
    command = " ".join(("unslant", *(error.command_chain or ())))
    return f"Unknown option: {option}. {command} --help-all lists all options"


def _unknown_command(error: UnknownCommandError) -> str:
    """The message on an unknown command. The parser's own imports every command, and fails where one is broken."""
    (typed, *_), known = error.unused_tokens or [""], [name for name in error.app or () if not name.startswith("-")]
    if near := get_close_matches(typed, known, 1):
        return f'Unknown command "{typed}". Did you mean "{near[0]}"?'
    return f'Unknown command "{typed}". Available commands: {", ".join(known)}'


def call(words: Sequence[str], defaults: bool = True) -> None:
    """Run a command, as typed after ``unslant``; without ``defaults`` no file of settings is read."""
    if {*words} & {*SHORT, ALL}:
        from unslant.cli.help import print_help

        print_help(app, words)
        return
    config = None
    if defaults and (os.path.lexists(FILE) or any(word.partition("=")[0] == "--config" for word in words)):
        from unslant.cli.sources import Config  # few commands have one

        config, words = Config.of(words)
    seen = Seen(words)
    try:
        command, bound = parsed(words, *[config] if config else [], seen)
        COMMAND.set(seen.command)
        perform(command, bound, config=config.path if config else None)
    except InputError as error:
        if config and type(error) is InputError and (options := config.named_in(str(error))):
            raise InputError(f"{error} ({shown(config.path)} sets {', '.join(options)})") from error
        raise


def perform(command: Any, bound: Any, **inputs: Any) -> None:
    """Run a command; ``inputs`` are further files that it must not write to."""
    try:
        os.getcwd()
    except OSError as error:  # deleted since the shell entered it, or on a disk that is gone
        raise InputError(f"the working folder cannot be read ({error.strerror}); go to another one") from None
    check_files({**bound.arguments, **inputs})
    with offline() if bound.arguments.get("offline") else nullcontext():
        command(*bound.args, **bound.kwargs)


def parsed(words: Sequence[str], *sources: Any) -> tuple[Any, Any]:
    """The function and the arguments of a command; options that were not typed take their values from the sources."""
    app.config = (*sources, _whole_numbers)
    command, bound, *_ = app.parse_args(with_values(words), exit_on_error=False, print_error=False)
    bound.apply_defaults()
    return command, bound


def _whole_numbers(_: App, __: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Refuse 2.7 where a whole number is needed: the parser would round it."""
    for argument in arguments:
        for token in argument.tokens if int in (argument.hint, *get_args(argument.hint)) else ():
            if "." in token.value and not _WHOLE.fullmatch(token.value):
                raise CoercionError(token=token, target_type=int)


def with_values(words: Sequence[str]) -> list[str]:
    """Words for the parser, which treats every word that starts with a dash as an option.

    ``--json -`` becomes ``--json=-``; ``--ray`` without an address becomes ``--ray=auto``.
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


_LONGEST_ERROR = 2_000
_WHOLE = re.compile(r"[+-]?\d+\.0*")
_CLUSTER = re.compile(r"auto|local|ray://.+|[\w.-]+:\d+|\[[\da-fA-F:]+\]:\d+")
"""An address of a Ray cluster."""

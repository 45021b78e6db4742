"""Help: the options that most people use, and one example; ``--help-all`` has everything."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Sequence
from typing import Any

from cyclopts import App, Parameter
from cyclopts.help import HelpEntry, HelpPanel
from rich.console import Console, ConsoleOptions
from rich.text import Text

SHORT, ALL = ("--help", "-h"), "--help-all"
OWN = "own"
"""Marks options that the settings of a command declare themselves, rather than inherit."""
EXIT_CODES = (
    "Exit codes: 0 done, 2 bad input (one line says why), 3 more than half of the requests failed, 4 a condition of "
    "--fail-if holds, 5 not written, 130 stopped."
)
DEFAULTS = (
    "Defaults of options can be set in unslant.toml in the working directory, or another file named by --config FILE."
)
EVERYDAY = (
    "model", "more", "sets", "log", "method", "methods", "settings", "orders", "until", "limit", "chat", "html", "json",
    "details", "dry_run", "device", "reasoning",
)  # fmt: skip
"""Options in short help, before those that are the command's own; the rest follows if there is room."""
THEN = ("out", "responses", "quiet", "store")
MOST = 12
"""Options in short help."""
_WIDTH = 24
_NOT_LISTED = ("--help", "--version", "--install-completion")


def print_help(app: App, words: Sequence[str]) -> bool:
    """Print help where the words ask for it: of the command, or the group of commands, that they begin with."""
    if not {*words} & {*SHORT, ALL}:
        return False
    chain, apps, _ = app.parse_commands([word for word in words if word not in (*SHORT, ALL)])
    found = apps[-1]
    page = found.help_formatter = _Page(" ".join(["Usage: unslant", *chain, "COMMAND"]), str(found.help))
    if found.default_command is not None:
        parameters = list(inspect.signature(found.default_command).parameters.values())
        page.usage = " ".join(["Usage: unslant", *chain, *_usage(parameters)])
        if ALL not in words:
            _shorten(found, page, " ".join(chain), parameters)
    try:
        app.help_print(list(chain))
    finally:
        found.help_epilogue = page.epilogue or found.help_epilogue
    return True


def _shorten(found: App, page: _Page, command: str, parameters: Sequence[inspect.Parameter]) -> None:
    names = [one.name for one in parameters if one.kind is inspect.Parameter.KEYWORD_ONLY]
    page.about, _, _ = str(found.help).partition("\n\n")
    page.epilogue = str(found.help_epilogue)
    page.only = usual(parameters)
    left = len(names) - len(page.only)
    more = f"has {left} more options, and further examples" if left else "says more"
    found.help_epilogue = f"Example:\n{page.epilogue.splitlines()[1]}\n\nunslant {command} {ALL} {more}."


def usual(parameters: Sequence[inspect.Parameter]) -> frozenset[str]:
    """Options in short help, as typed: those that must be given, the :data:`EVERYDAY` ones, and a study's own."""
    options = [one for one in parameters if one.kind is inspect.Parameter.KEYWORD_ONLY]

    def rank(place: int) -> tuple[bool, int]:
        option, listed = options[place], [*EVERYDAY, OWN, *THEN]
        name = option.name if option.name in listed else OWN if OWN in option.annotation.__metadata__ else ""
        return option.default is not option.empty, listed.index(name) if name else len(listed)

    return frozenset(_name(options[place]) for place in sorted(range(len(options)), key=rank)[:MOST])


def _name(parameter: inspect.Parameter) -> str:
    """As it is typed, or for an argument shown."""
    marks = [one for one in parameter.annotation.__metadata__ if isinstance(one, Parameter)]
    given = [next(iter(one.name)) for one in marks if one.name]
    keyword = parameter.kind is inspect.Parameter.KEYWORD_ONLY
    name = parameter.name.rstrip("_").replace("_", "-")
    return given[0] if given else f"--{name}" if keyword else name.upper()


def _usage(parameters: Sequence[inspect.Parameter]) -> list[str]:
    words = ["[OPTIONS]"] if any(one.kind is inspect.Parameter.KEYWORD_ONLY for one in parameters) else []
    for one in parameters:
        name = _name(one)
        if one.kind is inspect.Parameter.VAR_POSITIONAL:
            words.append(f"{name}...")
        elif one.kind is inspect.Parameter.POSITIONAL_ONLY:
            words.append(name if one.default is one.empty else f"[{name}]")
        elif one.default is one.empty:
            words.insert(0, f"{name} PATH")
    return words


class _Page:
    """Writes what cyclopts has gathered, without frames; options in short help under one heading.

    Attributes:
        only: the options to show, as typed; all if empty.
    """

    def __init__(self, usage: str, about: str) -> None:
        self.usage, self.about, self.epilogue = usage, about, ""
        self.only: frozenset[str] = frozenset()
        self._options = False

    def render_usage(self, console: Console, options: ConsoleOptions, usage: Any) -> None:
        console.print(Text(f"{self.usage}\n"), soft_wrap=True)

    def render_description(self, console: Console, options: ConsoleOptions, description: Any) -> None:
        console.print(Text(self.about))

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        rows = [entry for entry in panel.entries if self._is_shown(entry)]
        if not rows:
            return
        arguments = rows[0].positional_label is not None
        if not (self.only and self._options):
            console.print(Text(f"\n{'Options' if self.only and not arguments else panel.title}:", style="bold"))
        self._options = self._options or not arguments
        for entry in rows:
            names = Text(f"  {_label(entry)}".ljust(_WIDTH), style="cyan")
            lines = textwrap.wrap(_meaning(entry), console.width - _WIDTH, break_on_hyphens=False)
            if len(names) >= _WIDTH and not names.plain.endswith("  "):
                console.print(names, soft_wrap=True)
                names = Text(" " * _WIDTH)
            for line in lines or [""]:
                console.print(names + Text(line), soft_wrap=True)
                names = Text(" " * _WIDTH)

    def _is_shown(self, entry: HelpEntry) -> bool:
        if entry.names and entry.names[0] in _NOT_LISTED:
            return False
        return not self.only or entry.positional_label is not None or entry.names[0] in self.only


def _label(entry: HelpEntry) -> str:
    if entry.positional_label:
        return entry.positional_label
    return " ".join([*entry.all_options, *([entry.metavar] if entry.metavar else [])])


def _meaning(entry: HelpEntry) -> str:
    about = getattr(entry.description, "primary_renderable", entry.description)
    notes = [f"[{', '.join(entry.choices)}]"] if entry.choices else []
    notes += [f"[default: {entry.default}]"] if entry.default else []
    return " ".join([str(about or ""), *notes, *["[required]"] * entry.required]).strip()

"""Help of a command: its usual options, or all of them (``--help-all``)."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Sequence
from typing import Any, Literal, get_args, get_origin

from cyclopts import App, Parameter
from cyclopts.help import HelpEntry, HelpPanel
from rich.console import Console, ConsoleOptions
from rich.text import Text

from unslant.cli.commands import ALL, OWN, SHORT

EVERYDAY = (
    "model", "more", "sets", "log", "method", "methods", "settings", "orders", "until", "limit", "chat", "html", "json",
    "details", "dry_run", "device", "reasoning",
)  # fmt: skip
"""Options that short help lists first, before the command's own; the rest follow if there is room."""
THEN = ("out", "responses", "quiet", "store")
MOST = 12
"""Options in short help, at most."""
_WIDTH = 24
_NOT_LISTED = ("--help", "--version", "--install-completion")


def print_help(app: App, words: Sequence[str]) -> None:
    """Print help of the command, or group of commands, that the words begin with."""
    chain, apps, _ = app.parse_commands([word for word in words if word not in (*SHORT, ALL)])
    last = apps[-1]
    about = str(last.help)
    if "{METHODS}" in about:
        from unslant.debiasing import METHODS

        about = about.replace("{METHODS}", ", ".join(METHODS))
    page = last.help_formatter = _Page(" ".join(["Usage: unslant", *chain, "COMMAND"]), about)
    if last.default_command is not None:
        parameters = list(inspect.signature(last.default_command).parameters.values())
        page.usage = " ".join(["Usage: unslant", *chain, *_usage(parameters)])
        if ALL not in words:
            _shorten(last, page, " ".join(chain), parameters)
    try:
        app.help_print(list(chain))
    finally:
        last.help_epilogue = page.epilogue or last.help_epilogue


def _shorten(app: App, page: _Page, command: str, parameters: Sequence[inspect.Parameter]) -> None:
    names = [one.name for one in parameters if one.kind is inspect.Parameter.KEYWORD_ONLY]
    page.about, _, _ = str(app.help).partition("\n\n")
    page.epilogue = str(app.help_epilogue)
    page.only = usual(parameters)
    left = len(names) - len(page.only)
    more = f"has {left} more options, and further examples" if left else "says more"
    app.help_epilogue = f"Example:\n{page.epilogue.splitlines()[1]}\n\nunslant {command} {ALL} {more}."


def usual(parameters: Sequence[inspect.Parameter]) -> frozenset[str]:
    """Options in short help, as typed: required ones, :data:`EVERYDAY` ones, and those of the study itself."""
    options = [one for one in parameters if one.kind is inspect.Parameter.KEYWORD_ONLY]

    names = [*EVERYDAY, OWN, *THEN]

    def rank(option: inspect.Parameter) -> tuple[bool, int]:
        name = option.name if option.name in names else OWN if OWN in option.annotation.__metadata__ else ""
        return option.default is not option.empty, names.index(name) if name else len(names)

    return frozenset(map(_name, sorted(options, key=rank)[:MOST]))


def _name(parameter: inspect.Parameter) -> str:
    """An option as typed, an argument as shown."""
    for mark in parameter.annotation.__metadata__:
        if isinstance(mark, Parameter) and mark.name:
            return str(next(iter(mark.name)))
    name = parameter.name.rstrip("_").replace("_", "-")
    return f"--{name}" if parameter.kind is inspect.Parameter.KEYWORD_ONLY else name.upper()


def _usage(parameters: Sequence[inspect.Parameter]) -> list[str]:
    words = ["[OPTIONS]"] if any(one.kind is inspect.Parameter.KEYWORD_ONLY for one in parameters) else []
    for one in parameters:
        name = _name(one)
        if one.kind is inspect.Parameter.VAR_POSITIONAL:
            words.append(f"{name}...")
        elif one.kind is inspect.Parameter.POSITIONAL_ONLY:
            words.append(name if one.default is one.empty else f"[{name}]")
        elif one.default is one.empty:
            choice = get_origin(get_args(one.annotation)[0]) is Literal
            words.insert(0, f"{name} {'CHOICE' if choice else 'PATH'}")
    return words


class _Page:
    """Prints the help that cyclopts has collected, without frames; short help has one heading for all options.

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
        listed = [one for one in panel.entries if not one.names or one.names[0] not in _NOT_LISTED]
        rows = [one for one in listed if not self.only or one.positional_label is not None or one.names[0] in self.only]
        if not rows:
            return
        arguments = rows[0].positional_label is not None
        if not (self.only and self._options):
            console.print(Text(f"\n{'Options' if self.only and not arguments else panel.title}:", style="bold"))
        self._options = self._options or not arguments
        for entry in rows:
            label = entry.positional_label or " ".join(filter(None, [*entry.all_options, entry.metavar]))
            names = Text(f"  {label}".ljust(_WIDTH), style="cyan")
            lines = textwrap.wrap(_meaning(entry), max(_WIDTH, console.width - _WIDTH), break_on_hyphens=False)
            if len(names) >= _WIDTH and not names.plain.endswith("  "):
                console.print(names, soft_wrap=True)
                names = Text(" " * _WIDTH)
            for line in lines or [""]:
                console.print(names + Text(line), soft_wrap=True)
                names = Text(" " * _WIDTH)


def _meaning(entry: HelpEntry) -> str:
    about = getattr(entry.description, "primary_renderable", entry.description)
    notes = [f"[{', '.join(filter(None, entry.choices))}]"] if entry.choices else []
    notes += [f"[default: {entry.default}]"] if entry.default else []
    return " ".join([str(about or ""), *notes, *["[required]"] * entry.required]).strip()

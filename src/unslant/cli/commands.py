"""Plain functions as commands of cyclopts, and their help.

A command is a function whose parameters are arguments, options, or dataclasses of options (``Annotated[..., Heading]``
gives their heading in help). Here the fields of these become parameters: nothing outside this room knows cyclopts, and
a command is imported only when it runs or shows its help.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache, wraps
from importlib.machinery import PathFinder
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from cyclopts import App, Group, Parameter, Token
from cyclopts.help import HelpEntry, HelpPanel
from rich.console import Console, ConsoleOptions
from rich.text import Text

from unslant.errors import InputError, for_the_caller, load_row, naming_flags
from unslant.flags import Flag, Heading, Without
from unslant.studies import study_at

_OPTIONS = Heading("Options", 1)
HELP_OF = "unslant {}COMMAND --help shows the usual options of a command, --help-all every option."
_METAVARS = {int: "N", float: "NUMBER", str: "TEXT"}


def register(app: App, commands: Mapping[str, str], group: Group | None = None) -> None:
    """Add commands in this order without importing them; their docstrings are their help, with examples at the end.

    Args:
        commands: name -> ``module:function``.
        group: the heading under which they are listed.
    """
    for place, (name, home) in enumerate(commands.items()):
        about, _, examples = _docstring(home).partition("\n\nExamples:\n")
        with naming_flags():  # Python's docstring is made of the same text
            about = for_the_caller(re.sub(r"(?<!\n)\n(?!\n)", " ", about))  # wrapped to the width of the terminal
        lazy = f"{__name__}:{home.replace(':', '.')}"  # cyclopts gets it from this module, see __getattr__
        listed: dict[str, Any] = {"sort_key": place} | ({"group": group} if group else {})
        epilogue = f"Examples:\n{examples}\n\n{DEFAULTS}\n\n{EXIT_CODES}"
        app.command(lazy, name=name, help=about, help_epilogue=epilogue, **listed)


def __getattr__(name: str) -> Any:
    module, _, function = name.rpartition(".")
    if not module or name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = load_row(f"{module}:{function}", "this command")
    if not inspect.isfunction(home):
        study = study_at(f"{module}:{function}", "this command")()
        return command(study.command, study.parameters())
    hints = get_type_hints(home, include_extras=True)
    return command(home, [p.replace(annotation=hints[p.name]) for p in inspect.signature(home).parameters.values()])


def command(function: Callable[..., Any], declared: Sequence[inspect.Parameter]) -> Callable[..., Any]:
    """The function with every field of its dataclasses as a parameter."""
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[type, tuple[str, ...]]] = {}
    for parameter in declared:
        kind, about = _split(parameter.annotation)
        if not is_dataclass(kind):
            parameters.append(parameter.replace(annotation=_annotation(kind, about, _OPTIONS)))
            continue
        assert isinstance(kind, type)
        heading = next((mark for mark in about if isinstance(mark, Heading)), _OPTIONS)
        left_out = frozenset[str]().union(*(mark.names for mark in about if isinstance(mark, Without)))
        flags = [flag for flag in _flags(kind, heading) if flag.name not in left_out]
        groups[parameter.name] = kind, tuple(flag.name for flag in flags)
        parameters += flags

    @wraps(function)
    def run(*arguments: Any, **options: Any) -> Any:
        values = dict(inspect.signature(run).bind(*arguments, **options).arguments)
        settings = {
            name: kind(**{key: values.pop(key) for key in keys if key in values})
            for name, (kind, keys) in groups.items()
        }
        first = [values.pop(name) for name in list(values) if name in positional]
        return function(*first, *values.pop(several, ()), **values, **settings)

    positional = [one.name for one in parameters if one.kind is inspect.Parameter.POSITIONAL_ONLY]
    several = next((one.name for one in parameters if one.kind is inspect.Parameter.VAR_POSITIONAL), "")
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    del run.__wrapped__  # inspect would read the signature of the wrapped function
    return run


def _split(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    """A type without ``Annotated``, and its annotations."""
    kind, *about = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
    return kind, tuple(about)


def _flags(kind: type, heading: Heading) -> list[inspect.Parameter]:
    hints, helps = get_type_hints(kind, include_extras=True), docstrings(kind)
    declared_here = vars(kind).get("__annotations__", {}) if heading is _OPTIONS else {}
    flags = []
    for f in fields(kind):
        if f.init:
            inner, about = _split(hints[f.name])
            about = (*about, OWN) if f.name in declared_here else about
            annotation = _annotation(inner, about, heading, helps.get(f.name, ""))
            default = f.default if f.default is not MISSING else inspect.Parameter.empty
            flags.append(
                inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            )
    return flags


def _annotation(kind: Any, about: Sequence[Any], heading: Heading, help: str = "") -> Any:
    flags = [one for one in about if isinstance(one, Flag)]
    words: dict[str, Any] = {"help": help} if help else {}
    members = (_split(part)[0] for part in get_args(kind) or (kind,))
    plain = next((one for one in members if one in _METAVARS), None)
    words |= {"metavar": _METAVARS[plain]} if plain else {}
    if heading is not _OPTIONS:
        words["group"] = Group(heading.title, sort_key=heading.place)
    for flag in flags:  # the outermost annotation comes last, and wins
        words |= {"name": flag.names} if flag.names else {}
        words |= {"help": flag.help} if flag.help else {}
        words |= {"metavar": flag.metavar} if flag.metavar else {}
        words |= {"converter": _by_commas} if flag.commas else {}
        words |= {"consume_multiple": 1} if flag.many else {}
    others = [one for one in about if not isinstance(one, Flag | Heading | Without)]
    return Annotated[kind, *others, Parameter(**words)]


def _by_commas(kind: Any, tokens: Sequence[Token]) -> tuple[Any, ...]:
    """The values of ``A,B,C``, typed any number of times, as one tuple."""
    parts = tuple(part.strip() for token in tokens for part in token.value.split(",") if part.strip())
    if float not in get_args(kind):
        return parts
    try:
        return tuple(map(float, parts))
    except ValueError as error:
        raise InputError(f"{tokens[0].keyword}: {error}; write 0.5, or several as 0,0.7,1") from None


def docstrings(kind: type) -> dict[str, str]:
    """Field of a dataclass -> the docstring below it, in the class that declares it last."""
    texts: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        texts |= _texts_of(base) if is_dataclass(base) else {}
    return texts


@cache  # commands share these classes, and to read the source of one takes milliseconds
def _texts_of(kind: type) -> dict[str, str]:
    """Field -> its docstring, of the fields that a class itself declares."""
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(body, ast.ClassDef)
    return {
        line.target.id: re.sub(r"\s*\n\s*", " ", ast.literal_eval(below.value))
        for line, below in pairwise(body.body)
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and isinstance(below, ast.Expr)
    }


def _docstring(home: str) -> str:
    module, _, function = home.partition(":")
    package, *names = module.split(".")
    spec = find_spec(package)
    for name in names:  # step by step, since find_spec of the whole name imports the packages around the module
        spec = spec and PathFinder.find_spec(f"{spec.name}.{name}", spec.submodule_search_locations)
    if spec is None or not spec.origin:
        return f"The package of {home} cannot be imported."
    for node in ast.parse(Path(spec.origin).read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == function:
            return ast.get_docstring(node) or ""
    return ""  # a package of others may define it in another module


SHORT, ALL = ("--help", "-h"), "--help-all"
OWN = "own"
"""Marks options that the settings of a command declare themselves rather than inherit."""
EXIT_CODES = (
    "Exit codes: 0 done, 2 bad input (one line says why), 3 most requests failed or no reply had an answer, 4 a "
    "condition of --fail-if holds, 5 not written, 130 stopped."
)
DEFAULTS = (
    "Defaults of options can be set in unslant.toml in the working directory, or another file named by --config FILE."
)
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


def print_help(app: App, words: Sequence[str]) -> bool:
    """Print help of the command, or group of commands, that the words begin with; False if they do not ask for help."""
    if not {*words} & {*SHORT, ALL}:
        return False
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
    return True


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

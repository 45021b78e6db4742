"""Plain functions as commands of cyclopts; what of a command may be recorded, and that no output overwrites an input.

A command is a function whose parameters are arguments, options, or dataclasses of options (``Annotated[..., Heading]``
gives their heading in help). Here the fields of these become parameters: nothing outside this room knows cyclopts, and
a command is imported only when it runs or shows its help.
"""

from __future__ import annotations

import ast
import inspect
import os
import re
import sys
import textwrap
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache, wraps
from importlib.machinery import PathFinder
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from cyclopts import App, Group, Parameter, Token
from cyclopts.argument import Argument, ArgumentCollection

from unslant.errors import InputError, for_the_caller, load_row, naming_flags
from unslant.flags import Flag, Heading, Without
from unslant.reach import NOT_REPEATED, OUTPUTS, WITHHELD, Command, Reach, recorded
from unslant.studies import study_at

_OPTIONS = Heading("Options", 1)
HELP_OF = "unslant {}COMMAND --help shows the usual options of a command, --help-all every option."
_METAVARS = {int: "N", float: "NUMBER", str: "TEXT"}
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


# The arguments of a command

_TYPED = "cli"


def reach_of(argument: Argument) -> Reach | None:
    """What an option reaches: as its declaration says, or :attr:`Reach.PLACE` if it is a path."""
    return _declared(argument.field_info.annotation)


def _declared(kind: Any) -> Reach | None:
    if isinstance(kind, Reach):
        return kind
    parts = (*get_args(kind), *getattr(kind, "__metadata__", ()))
    reaches = [reach for part in parts if (reach := _declared(part))]
    return reaches[-1] if reaches else Reach.PLACE if kind is Path else None  # the outermost annotation counts


def values_of(arguments: ArgumentCollection) -> Iterator[tuple[Argument, Token]]:
    """Every value with its argument: positional ones, then options in the order typed, or of the file."""
    pairs = [(argument, token) for argument in arguments if not argument.children for token in argument.tokens]
    # cyclopts numbers its tokens; tokens without a number keep the order of declaration
    yield from sorted(pairs, key=lambda pair: (pair[0].name.startswith("-"), getattr(pair[1], "_order", 0)))


def words_of(argument: Argument, token: Token, typed: Collection[str] = ()) -> list[str]:
    """A value as it may be recorded, without secrets, with its option by the first of its names, so that ``-m X`` and
    ``--model X`` are one command; joined to it by ``=`` if it was ``typed`` so."""
    name = argument.name
    if token.implicit_value is True:
        return [name]
    value = recorded(reach_of(argument), token.value)
    if not argument.name.startswith("-"):
        # A file whose name begins with a dash was typed after --; repeated without that, it would be an option.
        return [f"./{value}" if value.startswith("-") else value]
    alone = token.keyword in argument.names and f"{token.keyword}={token.value}" not in typed
    joined = value.startswith("-") or not alone
    return [f"{name}={value}"] if joined else [name, value]


class Seen:
    """The last of cyclopts' sources of values: it adds none, but notes the command as parsed.

    Args:
        words: as typed.

    Attributes:
        command: as it may be recorded, without secrets.
        typed: its repeatable words that the user typed.
    """

    def __init__(self, words: Collection[str]) -> None:
        self.command, self._words = Command(), frozenset(words)
        self.typed: tuple[str, ...] = ()

    def __call__(self, app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
        """Note the command; InputError on an empty value, as of an unset variable, and on a withheld secret."""
        words, repeatable, typed, names = list(commands), list(commands), list[str](), set[str]()
        for argument, token in values_of(arguments):
            reach, name = reach_of(argument), argument.field_info.name
            empty = token.source == _TYPED and not token.value and token.implicit_value is not True
            if empty and argument.name.startswith("-"):
                raise InputError(f"{argument.name} is empty: give a value, or leave it out")
            if reach is Reach.SECRET:
                continue
            if any("\ud800" <= character <= "\udfff" for character in token.value):  # no record of ours has them
                raise InputError(f"{argument.name} {token.value}: {_undecoded(token.value)}")
            if reach is not None and WITHHELD in token.value:
                raise InputError(
                    f"{argument.name}: possible secrets were left out when the command was recorded; type the "
                    "whole command again"
                )
            value = words_of(argument, token, self._words)
            words += value
            names |= {argument.name} if token.source == _TYPED else set()
            if name not in NOT_REPEATED:
                repeatable += value
                typed += value if token.source == _TYPED else []
        self.command, self.typed = Command(tuple(words), tuple(repeatable), frozenset(names)), tuple(typed)


def _undecoded(word: str) -> str:
    """Why Python could not read all bytes of a word as text, and what to do."""
    try:
        os.fsencode(word).decode()
    except UnicodeError:
        return "is not UTF-8 text; rename the file"
    return f"Python reads the command line as {sys.getfilesystemencoding()} here; set PYTHONUTF8=1"


def check_files(arguments: Mapping[str, Any]) -> None:
    """Refuse a command that would overwrite one of its inputs, or write twice to one file; called before any work.

    Args:
        arguments: of the command, by name.

    Raises:
        InputError: naming the option and the file.
    """
    _keep_off_the_store(arguments)
    reasons = {
        place: f"is also {_option(name)} and would be overwritten"
        for name, value in arguments.items()
        if name not in OUTPUTS
        for text in _texts(value)
        if (place := _place(text, False)) is not None
    }
    for name, path in _outputs(arguments):
        place = _place(path, True)
        if place in reasons:
            raise InputError(f"{_option(name)} {path}: {reasons[place]}; give another name")
        reasons[place] = f"is also where {_option(name)} is written"


def _keep_off_the_store(arguments: Mapping[str, Any]) -> None:
    """Refuse the run store and its log as input or output."""
    # Only SQLite may open them: closing any other descriptor drops the locks that this process holds on them.
    if "store" not in arguments:
        return
    from unslant.store import default_path
    from unslant.store.tables import JOURNALS, sibling

    path = Path(os.path.realpath(os.path.expanduser(arguments["store"] or default_path())))
    store = {_place(one, True) for one in (path, *(sibling(path, end) for end in JOURNALS))}
    for name, value in arguments.items():
        for text in () if name == "store" else _texts(value):
            if _place(text, True) in store:
                raise InputError(f"{_option(name)} {text}: is the run store; give another file name")


def _outputs(arguments: Mapping[str, Any]) -> Iterator[tuple[str, Path]]:
    """Every path that is written, including the files in the folder of ``--out``."""
    from unslant.experiment.outputs import FILES, STDOUT

    paths = {name: value for name, value in arguments.items() if name in OUTPUTS and isinstance(value, Path)}
    files = {name: path for name, path in paths.items() if path != STDOUT}
    yield from files.items()
    if "out" in files and {"json", "html"} <= arguments.keys():
        yield from (("out", files["out"] / file) for name, file in FILES.items() if name not in files)


def _place(path: str | Path, new: bool) -> Hashable:
    """A key that all names of a file or folder share; None for a missing file, unless it may be ``new``."""
    try:
        path = os.path.expanduser(path)
        status = os.stat(path)
    except (OSError, ValueError):
        return os.path.realpath(path) if new and "\0" not in str(path) else None
    return status.st_dev, status.st_ino


def _texts(value: object) -> Iterator[str]:
    """Possible file names in a value: the whole, parts between commas, what follows a ``=``, or each item of a list."""
    if isinstance(value, str):
        yield from {part for text in (value, *value.split(",")) for part in (text, text.partition("=")[2]) if part}
    elif isinstance(value, Path):
        yield str(value)
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _texts(one)


def _option(name: str) -> str:
    positional = {"model", "models", "questions", "file", "run", "runs", "merged", "shards"}
    return name.upper() if name in positional else f"--{name.replace('_', '-')}"

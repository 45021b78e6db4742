"""Commands as cyclopts takes them, made of plain functions when they are called.

A command is a function whose parameters are arguments, options, or dataclasses of options (``Annotated[..., Heading]``
says under which heading). Here their fields become parameters of their own: nothing else in the project knows cyclopts,
and a command is imported only when it runs or its help is asked for.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import wraps
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from cyclopts import App, Group, Parameter, Token

from unslant.cli.help import DEFAULTS, EXIT_CODES, OWN
from unslant.debiasing import METHODS
from unslant.errors import InputError
from unslant.flags import Flag, Heading, Without

_OPTIONS = Heading("Options", 1)
_METAVARS = {int: "N", float: "NUMBER", str: "TEXT"}


def register(app: App, commands: Mapping[str, str], group: Group | None = None) -> None:
    """Add commands without importing them, in this order; their help is the docstring, examples at the end.

    Args:
        commands: name -> ``module:function``.
        group: the heading under which they are listed.
    """
    for place, (name, home) in enumerate(commands.items()):
        about, _, examples = _docstring(home).replace("{METHODS}", ", ".join(METHODS)).partition("\n\nExamples:\n")
        about = re.sub(r"(?<!\n)\n(?!\n)", " ", about)  # rewrapped to the width of the terminal
        lazy = f"{__name__}:{home.replace(':', '.')}"  # cyclopts asks this module for it, see __getattr__
        listed: dict[str, Any] = {"sort_key": place} | ({"group": group} if group else {})
        epilogue = f"Examples:\n{examples}\n\n{DEFAULTS}\n\n{EXIT_CODES}"
        app.command(lazy, name=name, help=about, help_epilogue=epilogue, **listed)


def __getattr__(name: str) -> Any:
    module, _, function = name.rpartition(".")
    if not module or name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(module), function)
    return command(found().command if isinstance(found, type) else found)  # a study, or a function


def command(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with every field of its dataclasses as a parameter."""
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[type, tuple[str, ...]]] = {}
    hints = get_type_hints(function, include_extras=True)
    for parameter in inspect.signature(function).parameters.values():
        kind, about = _split(hints[parameter.name])
        if not is_dataclass(kind):
            parameters.append(parameter.replace(annotation=_annotation(kind, about, _OPTIONS)))
            continue
        assert isinstance(kind, type)
        heading = next((one for one in about if isinstance(one, Heading)), _OPTIONS)
        left_out = frozenset[str]().union(*(one.names for one in about if isinstance(one, Without)))
        own = [flag for flag in _flags(kind, heading) if flag.name not in left_out]
        groups[parameter.name] = kind, tuple(flag.name for flag in own)
        parameters += own

    @wraps(function)
    def run(*arguments: Any, **options: Any) -> Any:
        bound = inspect.signature(run).bind(*arguments, **options)
        given = dict(bound.arguments)
        made = {
            name: kind(**{key: given.pop(key) for key in keys if key in given}) for name, (kind, keys) in groups.items()
        }
        rest = [given.pop(name) for name in list(given) if name in positional]
        return function(*rest, *given.pop(several, ()), **given, **made)

    positional = [one.name for one in parameters if one.kind is inspect.Parameter.POSITIONAL_ONLY]
    several = next((one.name for one in parameters if one.kind is inspect.Parameter.VAR_POSITIONAL), "")
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    del run.__wrapped__  # its own signature counts
    return run


def _split(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    """A type, and what ``Annotated`` says of it."""
    if get_origin(annotation) is not Annotated:
        return annotation, ()
    kind, *about = get_args(annotation)
    inner, before = _split(kind)
    return inner, (*before, *about)


def _flags(kind: type, heading: Heading) -> list[inspect.Parameter]:
    hints, said = get_type_hints(kind, include_extras=True), docstrings(kind)
    own = vars(kind).get("__annotations__", {}) if heading is _OPTIONS else {}
    return [_flag(f, hints[f.name], said.get(f.name, ""), heading, f.name in own) for f in fields(kind) if f.init]


def _flag(f: Field[Any], hint: Any, said: str, heading: Heading, own: bool) -> inspect.Parameter:
    default = f.default if f.default is not MISSING else inspect.Parameter.empty
    inner, about = _split(hint)
    annotation = _annotation(inner, (*about, OWN) if own else about, heading, said)
    return inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _annotation(kind: Any, about: Sequence[Any], heading: Heading, said: str = "") -> Any:
    flags = [one for one in about if isinstance(one, Flag)]
    words: dict[str, Any] = {"help": said} if said else {}
    plain = next((one for one in get_args(kind) or (kind,) if one in _METAVARS), None)
    words |= {"metavar": _METAVARS[plain]} if plain else {}
    if heading is not _OPTIONS:
        words["group"] = Group(heading.title, sort_key=heading.place)
    for flag in flags:  # the outermost comes last, and wins
        words |= {"name": flag.names} if flag.names else {}
        words |= {"help": flag.help} if flag.help else {}
        words |= {"metavar": flag.metavar} if flag.metavar else {}
        words |= {"converter": _by_commas} if flag.commas else {}
        words |= {"consume_multiple": 1} if flag.many else {}
    others = [one for one in about if not isinstance(one, Flag | Heading | Without)]
    return Annotated[kind, *others, Parameter(**words)]


def _by_commas(kind: Any, tokens: Sequence[Token]) -> tuple[Any, ...]:
    """Values as in ``A,B,C``, given any number of times, as one tuple."""
    parts = tuple(part.strip() for token in tokens for part in token.value.split(",") if part.strip())
    if float not in get_args(kind):
        return parts
    try:
        return tuple(map(float, parts))
    except ValueError as error:
        raise InputError(f"{tokens[0].keyword}: {error}; write 0.5, or several as 0,0.7,1") from None


def docstrings(kind: type) -> dict[str, str]:
    """Field of a dataclass -> the docstring below it, of the class that declares it last."""
    said: dict[str, str] = {}
    for base in reversed(kind.__mro__[:-1]):
        if not is_dataclass(base):
            continue
        body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
        assert isinstance(body, ast.ClassDef)
        for line, below in zip(body.body, body.body[1:], strict=False):
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and isinstance(below, ast.Expr):
                text = ast.literal_eval(below.value)
                said[line.target.id] = re.sub(r"\s*\n\s*", " ", text)
    return said


def _docstring(home: str) -> str:
    module, _, function = home.partition(":")
    spec = find_spec(module)
    if spec is None or not spec.origin:
        return f"The package of {home} cannot be imported."
    source = Path(spec.origin).read_text("utf-8")
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == function:
            return ast.get_docstring(node) or ""
    raise LookupError(f"{home}: no such function")

"""Jinja2 for prompt templates and for the chat templates of models, in a sandbox that bounds time and memory too: a
template comes from anywhere.

Operations that repeat or multiply (loops, ``*``, ``~``, filters, methods, the output itself) are charged to a budget,
one unit a character and :data:`_STEP` a round of a loop. Features that a template does not need (blocks, includes, some
of Jinja2's filters) are removed. Operations that are charged too little, such as comparing long texts in every round of
a loop, end at :data:`_SECONDS` of processor time, which is checked every :data:`_CLOCK` units.

A chat template is a program from the model's folder. transformers runs it without a limit on time or memory. Here it
is rendered to the same text (``tests/prompts/test_chat_templates.py``) within bounds, so prompt templates too have
what transformers adds: ``break`` and ``continue``, its ``tojson``, ``raise_exception`` and ``strftime_now``.
"""

from __future__ import annotations

import json
import math
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import wraps
from string import Formatter
from typing import Any, cast

from jinja2 import Template, TemplateError, TemplateSyntaxError, Undefined, nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension, LoopControlExtension
from jinja2.filters import FILTERS, make_attrgetter
from jinja2.parser import Parser
from jinja2.runtime import Context, LoopContext, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Cycler, Joiner, Namespace, pass_environment
from jinja2.visitor import NodeTransformer

_BUDGET = 50_000_000
_SECONDS = 5.0
"""Processor time of one render; the slowest of real templates take a thousandth of it."""
_STEP = 100
_CLOCK = 2_000
"""Units between two readings of the clock, which can cost a tenth of a millisecond each, as much as a short render."""
_LONGEST_SOURCE = 100_000
_DEEPEST = 100
_MOST_BITS = 10_000
_LARGEST_ARGUMENT = 1_000
_LEFT_OUT = frozenset({"filesizeformat", "pprint", "random", "striptags", "urlize", "wordwrap", "xmlattr"})
"""Filters of Jinja2 that take time or space beyond the size of their arguments, or differ from call to call."""
_METHODS = frozenset(
    "capitalize casefold center copy count endswith expandtabs find get index isalnum isalpha isascii isdecimal "
    "isdigit islower isnumeric isspace isupper items join keys ljust lower lstrip partition removeprefix removesuffix "
    "replace rfind rindex rjust rpartition rsplit rstrip split splitlines startswith strip swapcase title upper values "
    "zfill cycle changed next reset".split()
)
_COMPARISONS = frozenset("in eq equalto == ne != lt lessthan < le <= gt greaterthan > ge >=".split())
_OWNERS = (str, list, tuple, dict, LoopContext, Cycler)
_MULTIPLY = frozenset({"replace", "indent", "join", "tojson"})
_REFUSED = (nodes.Block, nodes.Extends, nodes.Include, nodes.Import, nodes.FromImport)
LONGEST_FORMAT = re.compile(r"\d{4,}|\*")
"""Matches widths in formats that are larger than any template needs."""

_TOO_MUCH = "does too much: a template may only lay out its question"


class _Budget:
    """The rest of a render's budget: units, and processor time until ``end``, 0 until the clock is first read."""

    def __init__(self) -> None:
        self.left, self.next_reading, self.end = _BUDGET, _BUDGET - _CLOCK, 0.0


_budget: ContextVar[_Budget] = ContextVar("_budget")


def charge(units: int) -> None:
    """Take from the budget of the current render.

    Raises:
        SecurityError: if it is used up.
        LookupError: outside a render, so that Jinja2 computes nothing while it compiles.
    """
    budget = _budget.get()
    budget.left -= units
    if budget.left < budget.next_reading:
        now = time.thread_time()
        budget.end = budget.end or now + _SECONDS
        if budget.left < 0 or now > budget.end:
            raise SecurityError(_TOO_MUCH)
        budget.next_reading = max(0, budget.left - _CLOCK)


def _size(value: object) -> int:
    """Units of a value, with everything nested in it."""
    size, nested = 0, [value]
    while nested:
        item = nested.pop()
        if isinstance(item, dict):
            nested += [*item.keys(), *item.values()]
        elif isinstance(item, list | tuple):
            nested += item
        size += len(item) if isinstance(item, str) else _STEP * (len(item) if isinstance(item, range) else 1)
        if size > _BUDGET:
            raise SecurityError(_TOO_MUCH)
    return size


def _work(name: str, values: Iterable[object]) -> None:
    """Charge a filter or method by its arguments, the value it is applied to among them."""
    sizes = []
    for value in values:
        if isinstance(value, int) and abs(value) > _LARGEST_ARGUMENT:
            raise SecurityError(f"{name}: {value:g} is more than a template needs")
        sizes.append(max(1, abs(value) if isinstance(value, int) else _size(value)))
    charge(sum(sizes) + (math.prod(sizes) if name in _MULTIPLY else 1))


def _charged(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    hidden = 1 if hasattr(function, "jinja_pass_arg") else 0  # the environment or context, which Jinja2 hands over

    @wraps(function)
    def charged(*args: Any, **options: Any) -> Any:
        _work(name, (*args[hidden:], *options.values()))
        return function(*(each(value) if isinstance(value, Iterator) else value for value in args), **options)

    return charged


def _counted(value: object) -> object:
    charge(len(value) if isinstance(value, str) else _size(value))
    return value


def each(values: Iterable[Any]) -> Iterator[Any]:
    """The values, each charged as a round of a loop."""
    for value in values:
        charge(_STEP)
        yield value


def _concatenated(values: Iterable[object]) -> str:
    return "".join(str(_counted(value)) for value in values)


@pass_environment
def _joined(environment: Any, values: Iterable[Any], between: str = "", attribute: str | None = None) -> str:
    if attribute is not None:
        values = map(make_attrgetter(environment, attribute), values)
    parts = [part for value in values for part in (str(between), str(value))]
    return _concatenated(parts[1:])


def _formatted(text: str, values: object) -> str:
    parts = values if isinstance(values, tuple) else tuple(values.values()) if isinstance(values, dict) else (values,)
    if LONGEST_FORMAT.search(text):
        raise SecurityError("%: such widths are more than a template needs")
    charge(len(text) + text.count("%") * _size(parts))
    return text % values


class _Limiter(NodeTransformer):
    """Adds charges to a parsed template, and refuses nodes that cannot be charged."""

    def __init__(self, environment: Any) -> None:
        self.environment = environment
        self.depth = 0

    def visit(self, node: nodes.Node, *args: Any, **kwargs: Any) -> Any:
        if isinstance(node, _REFUSED):
            raise TemplateSyntaxError(f"{type(node).__name__.lower()} is not allowed in a template", node.lineno)
        self.depth += 1
        if self.depth > _DEEPEST:
            raise TemplateSyntaxError("nested too deeply", node.lineno)
        result = super().visit(node, *args, **kwargs)
        self.depth -= 1
        return result

    def visit_For(self, node: nodes.For) -> nodes.Node:
        self.generic_visit(node)
        node.iter = self._filter(node.iter, "_each", node.lineno)
        return node

    def visit_List(self, node: nodes.Expr) -> nodes.Node:
        self.generic_visit(node)
        return self._filter(node, "_counted", node.lineno)

    visit_Dict = visit_List

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Node:
        return self.visit_List(node) if node.ctx == "load" else self.generic_visit(node)

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return self._filter(nodes.List(node.nodes, lineno=node.lineno), "_concatenated", node.lineno)

    def _filter(self, value: nodes.Node, name: str, line: int) -> nodes.Filter:
        node = nodes.Filter(value, name, [], [], None, None, lineno=line)
        node.set_environment(self.environment)
        return node


class _Generation(Extension):
    """``{% generation %}``, which marks the assistant's words for training, and outputs them."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True), lineno=line)


class _Namespace(Namespace):
    """A namespace without names that begin with an underscore, by which Python's own attributes could be replaced."""

    def __init__(*args: Any, **named: Any) -> None:  # so that namespace(self=...) is a name like any other
        Namespace.__init__(args[0])
        for name, value in dict(*args[1:], **named).items():
            args[0][name] = value

    def __setitem__(self, name: str, value: Any) -> None:
        if str(name).startswith("_"):
            raise SecurityError(f"namespace: {name} begins with an underscore")
        super().__setitem__(name, value)


def _raise(message: object) -> None:
    raise TemplateError(str(message))


def _now(form: str) -> str:
    """The time as transformers writes it; ``SOURCE_DATE_EPOCH`` can set it, so that every day gives equal prompts."""
    if LONGEST_FORMAT.search(form):
        raise SecurityError("strftime_now: such widths are more than a template needs")
    charge(100 * len(form))
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    return (datetime.fromtimestamp(int(fixed), UTC) if fixed.isdecimal() else datetime.now()).strftime(form)


def _tojson(
    value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


class TemplateEnvironment(ImmutableSandboxedEnvironment):
    """The environment of templates; one that exceeds the budget raises ``SecurityError`` when rendered.

    Args:
        settings: of Jinja2, in place of those that chat templates have in transformers.
    """

    intercepted_binops = frozenset({"+", "*", "**", "%"})
    concat = staticmethod(_concatenated)
    called = (dict, Joiner, Cycler, _Namespace, _raise, _now)

    def __init__(self, **settings: Any) -> None:
        extensions = [_Generation, LoopControlExtension]
        super().__init__(trim_blocks=True, lstrip_blocks=True, optimized=False, extensions=extensions, **settings)
        self.template_class = _Template
        self.filters = {name: _charged(name, self.filters[name]) for name in FILTERS.keys() - _LEFT_OUT}
        self.tests |= {name: _charged(name, cast(Any, self.tests[name])) for name in _COMPARISONS}
        self.filters |= {"_each": each, "_counted": _counted, "_concatenated": _concatenated, "join": _joined}
        self.filters["format"] = lambda text, *values, **named: _formatted(str(text), named or values)
        self.filters["tojson"] = _charged("tojson", _tojson)
        self.globals |= {"raise_exception": _raise, "strftime_now": _now, "namespace": _Namespace}
        del self.globals["lipsum"]

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        if len(source) > _LONGEST_SOURCE:
            raise TemplateSyntaxError(f"has {len(source):,} characters; at most {_LONGEST_SOURCE:,} are read", 1)
        try:
            return cast(nodes.Template, _Limiter(self).visit(super()._parse(source, name, filename)))
        except RecursionError:
            raise TemplateSyntaxError("nested too deeply", 1) from None

    def compile(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().compile(*args, **kwargs)
        except TemplateSyntaxError:
            raise
        except Exception as error:  # Jinja2 turns some templates into code that Python refuses, with errors of any type
            raise TemplateSyntaxError(f"cannot be compiled: {error}", 1) from None

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        owner, name = getattr(__obj, "__self__", None), getattr(__obj, "__name__", "")
        text = getattr(getattr(__obj, "__wrapped__", None), "__self__", None)
        if isinstance(text, str):  # its method format, which the sandbox wraps
            forms = [form or "" for _, _, form, _ in Formatter().parse(text)]
            if any("{" in form or LONGEST_FORMAT.search(form) for form in forms):
                raise SecurityError("format: such widths are more than a template needs")
            charge((len(forms) + 1) * _size((text, *args, *kwargs.values())))
        elif isinstance(owner, _OWNERS) and name in _METHODS:
            _work(name, (owner, *args, *kwargs.values()))
        elif __obj is __self.globals.get("range"):
            charge(_STEP)
        elif __obj in __self.called or isinstance(__obj, Joiner | LoopContext | Macro | Undefined):
            if isinstance(__obj, LoopContext) and args:
                args = (each(args[0]), *args[1:])
            charge(_size((*args, *kwargs.values())))
        else:
            raise SecurityError(f"{name or 'that'}() is not allowed in a template")
        return super().call(__context, __obj, *args, **kwargs)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "%" and isinstance(left, str):
            return _formatted(left, right)
        if isinstance(left, int) and isinstance(right, int):
            bits = left.bit_length() * right if operator == "**" else left.bit_length() + right.bit_length()
            if bits > _MOST_BITS:
                raise SecurityError(f"{operator}: such numbers are more than a template needs")
        elif operator == "*":
            times = right if isinstance(right, int) else left if isinstance(left, int) else 1
            charge(max(0, times) * max(_size(left), _size(right)))
        else:
            charge(_size(left) + _size(right))
        return super().call_binop(context, operator, left, right)


class _Template(Template):
    def render(self, *args: Any, **kwargs: Any) -> str:
        token = _budget.set(_Budget())
        try:
            return super().render(*args, **kwargs)
        except RecursionError:  # of macros and loops
            raise SecurityError(_TOO_MUCH) from None
        finally:
            _budget.reset(token)

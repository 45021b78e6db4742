"""``--fail-if``: conditions on the numbers of a result, for continuous integration."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from unslant.errors import InputError, one_of
from unslant.metrics import METRICS
from unslant.metrics.registry import metric_at
from unslant.metrics.summary import Counts
from unslant.models import Cost
from unslant.reports.export import APART, numbers

OPERATORS = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt}
PARTS = ("value", "low", "high")
_WRITTEN = re.compile(r"\s*([^<>=]+?)\s*(<=|>=|<|>)\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)\s*", re.IGNORECASE)
_NO_RESULT = ("provenance", "settings", "loading", "identity")
Number = tuple[tuple[str, ...], Mapping[str, Any]]
"""Path in JSON, and the parts of an estimate, or only its value."""


@dataclass(frozen=True)
class Condition:
    """``NAME<NUMBER``: holds where the number of that name is below (<, <=, >, >=) another.

    Attributes:
        text: as written.
        name: path of the number in JSON, or a unique ending of it.
        part: what is compared: the value, or an end of its interval.
    """

    text: str
    name: str
    part: str
    sign: str
    limit: float

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Read a condition.

        Raises:
            InputError: if it is written otherwise, or no result can have a number of that name.
        """
        found = _WRITTEN.fullmatch(text)
        if not found:
            raise InputError(
                f'--fail-if {text!r}: write it as NAME<NUMBER (<, <=, >, >=), as in "expected_accuracy<0.6"'
            )
        before, dot, last = found[1].rpartition(".")
        name, part = (before, last) if dot and last in PARTS else (found[1], "value")
        own = name.rpartition(".")[2]
        simple = "." not in name or {"means", "by_subject"} & set(name.split("."))
        if simple and own not in (known := _known()) and not _named(name):
            raise InputError(f"--fail-if {text!r}: no number is called {own!r}: {_near(own, sorted(known))}")
        return cls(text, name, part, found[2], float(found[3]))

    def find(self, found: Sequence[Number]) -> Number:
        """The number it is about.

        Raises:
            InputError: if there is none of this name, or several.
        """
        wanted = tuple(self.name.split("."))
        named, singles = _named(self.name), [one for one in found if _single(one[0])]
        ending = [one for one in found if one[0][-len(wanted) :] == wanted]
        for fit in (
            [one for one in ending if one[0] == wanted],
            [one for one in ending if one in singles],
            ending,
            [one for one in singles if one[0][0] != "baseline" and metric_at(one[0]) in named],
        ):
            if len(fit) == 1:
                return fit[0]
            if fit:
                names = ", ".join(".".join(path) for path, _ in fit[:5])
                raise InputError(f"--fail-if {self.text!r}: {len(fit)} numbers are called so: {names}, ...; give more")
        known = [".".join(path) for path, _ in singles]
        known = list(dict.fromkeys([*known, *(path.rpartition(".")[2] for path in known)]))
        raise InputError(f"--fail-if {self.text!r}: the result has no such number: {_near(self.name, known)}")

    def failure(self, found: Sequence[Number]) -> str:
        """What is so, in one line; empty if the condition does not hold."""
        path, parts = self.find(found)
        name = ".".join(path) + (f".{self.part}" if self.part != "value" else "")
        if self.part not in parts:
            raise InputError(f"--fail-if {self.text!r}: {'.'.join(path)} has no interval")
        value = parts[self.part]
        if value is None:
            return f"--fail-if {self.text!r}: {name} is undefined" + (
                f" ({parts['note']})" if parts.get("note") else ""
            )
        if not OPERATORS[self.sign](float(value), self.limit):
            return ""
        ends = [parts.get(end) for end in ("low", "high")]
        interval = f" ({ends[0]:.4g} to {ends[1]:.4g}, N {parts['n']:,})" if None not in ends else ""
        return f"--fail-if {self.text!r}: {name} is {float(value):.4g}{interval if self.part == 'value' else ''}"


def conditions_of(texts: Sequence[str]) -> list[Condition]:
    """The conditions; InputError on one that is not well written."""
    return [Condition.parse(text) for text in texts]


def failed_conditions(texts: Sequence[str], values: Mapping[str, Any]) -> list[str]:
    """A line for each condition that holds, or whose number is undefined.

    Args:
        values: the result as for JSON.

    Raises:
        InputError: if a condition names no number of the result, or several.
    """
    found = list(numbers(values, _NO_RESULT))
    return [line for condition in conditions_of(texts) if (line := condition.failure(found))]


def _single(path: tuple[str, ...]) -> bool:
    """Whether JSON has this number once, not for each of many subjects, labels, methods; not what a part rests on."""
    return not {*APART, "variance_components"} & set(path) and not any(part.isdigit() for part in path)


def _known() -> set[str]:
    """Names that a number has without a prefix; others are looked up in the result."""
    counted = {f.name for kind in (Counts, Cost) for f in fields(kind)}
    return counted | {key.rpartition(".")[2] for key in METRICS}


def _named(name: str) -> list[Any]:
    """Records by their printed name, with its words in any order: ``mean_over_orders.accuracy``."""
    words = sorted(re.findall(r"\w+", name.lower().replace("_", " ")))
    return [record for record in METRICS.values() if sorted(re.findall(r"\w+", record.name.lower())) == words]


def _near(name: str, known: Sequence[str]) -> str:
    """:func:`one_of` without the list where it is long and something is near."""
    near = one_of(name, known)
    return near.partition("? ")[0] + "?" if near.startswith("did you mean") else f"{near[:300]}; see docs/metrics.md"

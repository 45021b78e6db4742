"""Tables written before presentations had fields: what their names mean."""

from __future__ import annotations

import re

import pyarrow as pa

_NAMES = (
    (re.compile(r"boat:(?P<run>\d{1,4})(?::(?P<item>.+))?"), "boat"),
    (re.compile(r"only:[A-Z+]+(?::(?P<item>.+))?"), "only"),  # the codes are in the column ``interventions``
    (re.compile(r"vanilla:(?P<item>.+)"), "vanilla"),
    (re.compile(r"nvr-(?P<item>.+)"), "nvr"),
)
_SUGGESTED = "suggested: "
_EXAMPLE = "example: "


def fields_of(name: str, setting: bool = False) -> tuple[str, int, str]:
    """Kind, run and item of a presentation by its earlier name, such as ``boat:3:2`` or ``nvr-A``.

    Args:
        setting: the name is that of an instruction setting, such as ``conformity-dense``.
    """
    if setting:
        return "setting", 0, name
    for pattern, kind in _NAMES:
        if found := pattern.fullmatch(name):
            parts = found.groupdict()
            return kind, int(parts.get("run") or 0), parts.get("item") or ""
    return name, 0, ""


def with_fields(table: pa.Table, setting: bool) -> pa.Table:
    """A table with the columns ``kind``, ``run``, ``item`` and ``suggested`` in place of ``presentation``."""
    names = table["presentation"].to_pylist()
    known = {name: fields_of(name, setting) for name in dict.fromkeys(names)}
    for i, column in enumerate(("kind", "run", "item")):
        table = table.append_column(column, pa.array([known[name][i] for name in names]))
    interventions = table["interventions"].to_pylist()
    suggested: list[list[int] | None] = [None] * len(names)
    if setting:
        suggested = list(map(_suggested, interventions, table["labels"].to_pylist(), table["contents"].to_pylist()))
        interventions = [[t for t in told if not t.startswith((_SUGGESTED, _EXAMPLE))] for told in interventions]
        place = table.column_names.index("interventions")
        table = table.set_column(place, "interventions", pa.array(interventions, pa.list_(pa.string())))
    return table.append_column("suggested", pa.array(suggested, pa.list_(pa.int16())))


def _suggested(told: list[str], labels: list[str], contents: list[int]) -> list[int] | None:
    """Content codes of the answer that the prompt suggests; -1 for "none"."""
    for text in told:
        if text.startswith(_SUGGESTED):
            found = text.removeprefix(_SUGGESTED).split(", ")
            return sorted(contents[labels.index(label)] if label in labels else -1 for label in found)
    return None

"""Text from outside made harmless, once for each target: spreadsheets, LaTeX, charts, the terminal.

HTML is escaped by Jinja2 itself (every template has ``autoescape``); JSON inside a page by :func:`island`.
"""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_FORMULA = "=+-@|%"
_BREAKS = "\n\r\t\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_UNSHOWN = frozenset({"Cc", "Cf", "Cs", "Co"})
"""Unicode categories: control, format (bidirectional overrides and the like), surrogate, private use."""
_LAST_LATIN = "\u017f"
_JOINERS = "\u200c\u200d"
TYPOGRAPHY = {"–": "--", "−": "$-$", "∞": r"$\infty$", "±": r"$\pm$", "\xa0": "~"}
"""Our own signs in LaTeX, once everything else has been escaped."""


def one_line(text: str) -> str:
    """Text for one line of a chart, a table or a terminal: no line ends, no control characters, nothing that turns the
    direction of what follows, no halves of characters."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(" " if c in _BREAKS else c for c in text if c in _BREAKS + _JOINERS or not _unshown(c))


def _unshown(character: str) -> bool:
    return unicodedata.category(character) in _UNSHOWN


def csv_cell(value: object) -> object:
    """A cell that no spreadsheet runs as a formula: text that begins like one gets an apostrophe; numbers stay."""
    if not isinstance(value, str):
        return value
    text = "".join(c for c in value if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cs"))
    start = unicodedata.normalize("NFKC", one_line(text).lstrip()[:1])
    return f"'{text}" if (start and start in _FORMULA) or text[:1] in ("\t", "\n") else text


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A CSV file of the rows, every text through :func:`csv_cell`."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerows([csv_cell(cell) for cell in row] for row in (header, *rows))
    return stream.getvalue()


def tex(text: str) -> str:
    """One line of LaTeX that typesets the text and does nothing else."""
    from tabulate import LATEX_ESCAPE_RULES

    plain = one_line(text).replace("\xa0", " ")
    escaped = (LATEX_ESCAPE_RULES.get(character, character) for character in plain)
    return "".join(TYPOGRAPHY.get(character, character) for character in escaped)


def tex_needs(packages: str, body: str) -> str:
    """A LaTeX comment on what typesetting the body takes."""
    beyond = sorted({character for character in body if not character.isascii()})
    needs = [rf"\usepackage{{{packages}}}"]
    if beyond:
        latin = r"\usepackage[T1]{fontenc}, or " if beyond[-1] <= _LAST_LATIN else ""
        needs.append(f"{latin}LuaLaTeX with a font that has {''.join(beyond)}")
    return f"% needs {'; '.join(needs)}\n"


def drawable(value: Any) -> Any:
    """The values of a chart with every text, key or value, on one line: drawing libraries abort on a NUL and leave a
    chart undrawn on U+2028."""
    if isinstance(value, str):
        return one_line(value)
    if isinstance(value, Mapping):
        return {one_line(str(key)): drawable(item) for key, item in value.items()}
    return [drawable(item) for item in value] if isinstance(value, list | tuple) else value


def island(data: object) -> str:
    """JSON that can be put in a ``script`` element with any texts in it."""
    written = json.dumps(data, ensure_ascii=False, allow_nan=False)
    for character in "<>&\u2028\u2029\0":
        written = written.replace(character, f"\\u{ord(character):04x}")
    return written


def file_name(text: str) -> str:
    """A name for a file made from text: letters, digits, dots, dashes; never hidden, empty or long."""
    kept = "".join(c if c.isalnum() or c in "-_." else "-" for c in one_line(text))
    return kept.lstrip(".")[:100] or "unnamed"

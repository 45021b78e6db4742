"""A report of one or more results: one HTML file that works offline and runs only its own code, figures, tables."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import warnings
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from unslant import __version__
from unslant.errors import missing, one_line
from unslant.metrics import Estimate
from unslant.reports.export import Drawing, drawing, save_figures, save_tables
from unslant.reports.figure import Chart, Panel, Table
from unslant.reports.numbers import Cell, How, interval, island, number, shared_n
from unslant.reports.page import Describes, Page
from unslant.reports.style import PAGE, PAPER
from unslant.responses.provenance import META_NAME
from unslant.writing import write_all, write_atomically

if TYPE_CHECKING:
    from jinja2 import Template


Item = TypeVar("Item", Panel, Chart, Table)
_SHORT = 16
"""Texts up to this length are not wrapped."""


@dataclass(frozen=True)
class Report:
    """One page per result, without empty panels; ids of panels, charts and tables are unique."""

    pages: tuple[Page, ...]

    @classmethod
    def of(cls, results: Sequence[Describes]) -> Report:
        """A report of ``results`` under the first headline."""
        times: Counter[tuple[type, str]] = Counter()
        pages = [result.page() for result in results]
        return cls(tuple(replace(p, panels=tuple(_unique(panel, times) for panel in p.sections)) for p in pages))

    def __repr__(self) -> str:
        return f"Report: {'; '.join(page.headline for page in self.pages)}; .to_html(FILE)"

    @property
    def panels(self) -> tuple[Panel, ...]:
        return tuple(panel for page in self.pages for panel in page.panels)

    @property
    def provenance(self) -> list[Mapping[str, Any]]:
        """How each result was made."""
        return [page.provenance for page in self.pages if page.provenance]

    def to_html(self, path: str | Path) -> None:
        """Write one HTML file that works offline."""
        write_atomically(path, render(self.pages))

    def save_figures(self, folder: str | Path) -> list[Path]:
        """See :func:`unslant.reports.export.save_figures`."""
        written: list[Path] = []

        def save(page: Page) -> None:
            charts = [chart for panel in page.panels for chart in panel.charts]
            written.extend(save_figures(charts, folder, self.provenance, replace(PAPER, compared=page.compared)))

        write_all(*(partial(save, page) for page in self.pages))
        return written

    def save_tables(self, folder: str | Path) -> list[Path]:
        """See :func:`unslant.reports.export.save_tables`."""
        return save_tables([table for panel in self.panels for table in panel.tables], folder, self.provenance)


def _unique(panel: Panel, times: Counter[tuple[type, str]]) -> Panel:
    """The panel with numbers appended to repeated ids, for distinct anchors and files."""

    def renamed(item: Item) -> Item:
        key = type(item), item.id
        times[key] += 1
        return item if times[key] == 1 else replace(item, id=f"{item.id}-{times[key]}")

    charts, tables = tuple(map(renamed, panel.charts)), tuple(map(renamed, panel.tables))
    return replace(renamed(panel), charts=charts, tables=tables)


def render(pages: Sequence[Page]) -> str:
    """HTML of one or more results, under the headline of the first."""
    from markupsafe import Markup

    if any(panel.charts for page in pages for panel in page.panels):
        try:
            _vega()
        except ImportError as error:
            note = f"Charts are left out: {missing(error, 'drawing them')}."
            warnings.warn(note, stacklevel=2)
            no_charts = ([replace(panel, charts=()) for panel in page.panels] for page in pages)
            pages = [replace(p, panels=ps, notes=(note, *p.notes)) for p, ps in zip(pages, no_charts, strict=True)]
    drawings = {
        chart.id: drawing(chart, replace(PAGE, compared=page.compared))
        for page in pages for panel in page.sections for chart in panel.charts
    }  # fmt: skip
    meanings: dict[str, str] = {}
    views = [[_panel_view(panel, drawings, meanings) for panel in page.sections] for page in pages]
    browser = next(filter(None, (page.questions() for page in pages)), None)
    data, n = browser.packed() if browser else ("", 0)
    scripts = {"theme": _text("theme.js"), "report": _text("report.js")}
    scripts["vega"] = _vega() if drawings else "window.vegaEmbed = () => {};"
    scripts["browser"] = _text("data.js") + _text("browser.js")
    # no code may end its HTML element
    scripts = {k: code.replace("</script", "<\\/script").replace("<!--", "<\\!--") for k, code in scripts.items()}
    style = _text("report.css") + _text("browser.css")
    names = ", ".join(page.name for page in pages if page.name)
    return _template("report.html.jinja").render(
        version=__version__,
        title=f"{names} · unslant" if names else "unslant",
        policy=_policy(scripts.values(), style),
        style=Markup(style),
        scripts={name: Markup(code) for name, code in scripts.items()},
        pages=[
            {"page": page, "panels": [view for view in of_page if not view["panel"].reference]}
            for page, of_page in zip(pages, views, strict=True)
        ],
        appendix=[view for of_page in views for view in of_page if view["panel"].reference],
        meanings=meanings,
        methods=list(dict.fromkeys(method for picture in drawings.values() for method in picture.methods)),
        charts=Markup(island({id: picture.spec for id, picture in drawings.items()})),
        meta_name=META_NAME,
        provenance=json.dumps([page.provenance for page in pages if page.provenance], sort_keys=True),
        browser=browser and {"explanation": browser.explanation_of(n), "data": Markup(data)},
    )


@cache
def _vega() -> str:
    import vl_convert

    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed"))


def _text(name: str) -> str:
    return resources.files("unslant.reports").joinpath("templates", name).read_text("utf-8")


def _template(name: str) -> Template:
    """A template, which escapes everything that it is given and knows the number format."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup, escape

    def cleaned(value: object) -> object:  # a name must not turn the direction of the numbers that follow it
        return re.sub(r"[^\n\t]+", lambda line: one_line(line[0]), value) if type(value) is str else value

    def prose(sentence: str) -> Markup:  # commands are between backticks, as in the terminal
        return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(cleaned(sentence)))))

    loader = PackageLoader("unslant.reports", "templates")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, finalize=cleaned)
    environment.filters["prose"] = prose
    return environment.get_template(name, globals={"number": number, "interval": interval})


def _policy(scripts: Iterable[str], style: str) -> str:
    """Forbid loading; allow only the page's own scripts and styles, by hash."""

    def allowed(texts: Iterable[str]) -> str:
        hashes = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts)
        return " ".join(f"'sha256-{digest}'" for digest in hashes)

    return (
        f"default-src 'none'; script-src {allowed(scripts)}; style-src {allowed([style])}; "
        "base-uri 'none'; form-action 'none'"
    )


def _panel_view(panel: Panel, drawings: Mapping[str, Drawing], meanings: dict[str, str]) -> dict[str, Any]:
    charts = [drawings[chart.id] for chart in panel.charts]
    return {"panel": panel, "charts": charts, "tables": [_table_view(table, meanings) for table in panel.tables]}


def _table_view(table: Table, meanings: dict[str, str] | None = None) -> dict[str, Any]:
    """A table as the templates take it; heads refer to the meanings of their metrics by id, and these are collected."""
    single, numeric = table.one_n, table.numeric

    def id_of(meaning: str) -> str:
        if not meaning or meanings is None:
            return ""
        id = f"means-{zlib.crc32(meaning.encode()):08x}"
        meanings[id] = meaning
        return id

    heads: list[dict[str, Any]] = [
        {"name": column.name, "explanation": column.explanation, "numeric": of_numbers}
        for column, of_numbers in zip(table.columns, numeric, strict=True)
    ]
    rows = [
        [_cell_view(cell, table.how(r, c), not single, numeric[c]) for c, cell in enumerate(row)]
        for r, row in enumerate(table.rows)
    ]
    if single:
        at = table.estimate_columns[-1] + 1
        heads.insert(at, {"name": "N", "explanation": "questions behind the row", "numeric": True})
        for cells, row in zip(rows, table.rows, strict=True):
            cells.insert(at, _cell_view(shared_n(row), 0, False, True))
    for head in heads:
        head["means"] = id_of(head["explanation"])
    if table.by_row and "meaning" not in [column.name for column in table.columns]:
        for cells, metric, before in zip(rows, table.by_row, (None, *table.by_row), strict=False):
            cells[0]["means"] = id_of(metric.meaning) if metric != before else ""
    return {"table": table, "heads": heads, "rows": rows, "sortable": len(rows) > 2}


def _cell_view(cell: Cell, how: How, with_n: bool, numeric: bool) -> dict[str, Any]:
    value = cell.value if isinstance(cell, Estimate) else cell
    estimate = cell if isinstance(cell, Estimate) and cell.defined else None
    sortable = isinstance(value, int | float) and value == value and abs(value) != float("inf")
    return {
        "text": number(cell, how),
        "means": "",
        "interval": interval(cell, how),
        "n": f"{estimate.n:,}" if estimate and with_n else "",
        "sort": value if sortable else None,
        "kind": "number" if numeric else "short" if isinstance(cell, str) and len(cell) <= _SHORT else "",
    }


def fragment(page: Page) -> str:
    """Headline, key numbers and the first table as HTML that needs nothing else; texts are escaped."""
    tables = [table for panel in page.sections if not panel.reference for table in panel.tables]
    first = next((table for table in tables if not table.folded), tables[0] if tables else None)
    return _template("notebook.html.jinja").render(page=page, item=first and _table_view(first))

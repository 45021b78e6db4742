"""The report as one HTML file that works offline and runs only its own code."""

from __future__ import annotations

import base64
import hashlib
import json
import warnings
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from unslant.extras import missing
from unslant.metrics import Estimate
from unslant.reports.browser import QuestionBrowser
from unslant.reports.escape import island
from unslant.reports.export import Drawing, drawing
from unslant.reports.figure import Table, shared_n
from unslant.reports.numbers import Cell, How, interval, number
from unslant.reports.panels import Page, Panel, Tile
from unslant.reports.style import PAGE
from unslant.responses.provenance import META_NAME
from unslant.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment

_SHORT = 16
"""Texts up to this length are not wrapped."""


def render(pages: Sequence[Page]) -> str:
    """HTML of one or more results, under the headline of the first."""
    from markupsafe import Markup

    if any(panel.charts for page in pages for panel in page.panels):
        try:
            _vega()
        except ImportError as error:
            note = f"Charts are left out: {missing(error, 'drawing them')}."
            warnings.warn(note, stacklevel=2)
            pages = [_without_charts(page, note) for page in pages]
    panels = [panel for page in pages for panel in page.sections]
    drawings = {
        chart.id: drawing(chart, replace(PAGE, compared=page.compared))
        for page in pages for panel in page.sections for chart in panel.charts
    }  # fmt: skip
    meanings: dict[str, str] = {}
    browser = next((page.questions for page in pages if page.questions), None)
    scripts = {"theme": _text("theme.js"), "report": _text("report.js")}
    scripts["vega"] = _vega() if drawings else "window.vegaEmbed = () => {};"
    scripts["browser"] = _text("data.js") + _text("browser.js")
    scripts = {name: _script(code) for name, code in scripts.items()}
    style = _text("report.css") + _text("browser.css")
    names = ", ".join(page.name for page in pages if page.name)
    return (
        environment()
        .get_template("report.html.jinja")
        .render(
            version=__version__,
            title=f"{names} · unslant" if names else "unslant",
            policy=_policy(scripts.values(), style),
            style=Markup(style),
            scripts={name: Markup(code) for name, code in scripts.items()},
            pages=[
                {
                    "page": page,
                    "tiles": [tile_view(tile) for tile in page.tiles],
                    "panels": [
                        _panel_view(panel, drawings, meanings) for panel in page.sections if not panel.reference
                    ],
                }
                for page in pages
            ],
            appendix=[_panel_view(panel, drawings, meanings) for panel in panels if panel.reference],
            meanings=meanings,
            methods=list(dict.fromkeys(method for drawn in drawings.values() for method in drawn.methods)),
            charts=Markup(island({id: drawn.spec for id, drawn in drawings.items()})),
            meta_name=META_NAME,
            provenance=json.dumps([page.provenance for page in pages if page.provenance], sort_keys=True),
            browser=_browser_view(browser) if browser else None,
        )
    )


def _without_charts(page: Page, note: str) -> Page:
    return replace(page, panels=tuple(replace(panel, charts=()) for panel in page.panels), notes=(note, *page.notes))


@cache
def _vega() -> str:
    import vl_convert

    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed"))


def _text(name: str) -> str:
    return resources.files("unslant.reports").joinpath("templates", name).read_text("utf-8")


def environment() -> Environment:
    """The templates of the page and of notebooks; they escape everything they are given."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("unslant.reports", "templates")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined)


def _script(code: str) -> str:
    """Code that cannot end its HTML element."""
    return code.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _policy(scripts: Iterable[str], style: str) -> str:
    """Forbid loading; allow only the page's own scripts and styles, by hash."""

    def allowed(texts: Iterable[str]) -> str:
        hashes = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts)
        return " ".join(f"'sha256-{digest}'" for digest in hashes)

    return (
        f"default-src 'none'; script-src {allowed(scripts)}; style-src {allowed([style])}; "
        "base-uri 'none'; form-action 'none'"
    )


def _browser_view(browser: QuestionBrowser) -> dict[str, Any]:
    from markupsafe import Markup

    packed, shown = browser.packed()
    return {"explanation": browser.explanation_of(shown), "data": Markup(packed)}


def tile_view(tile: Tile) -> dict[str, str]:
    """A tile as the templates take it."""
    metric, found = tile.metric, tile.estimate
    return {
        "name": (name := tile.own or metric.label)[:1].upper() + name[1:],
        "value": number(found, metric),
        "interval": interval(found, metric),
        "n": f"{found.n:,}",
        "meaning": metric.meaning,
    }


def _panel_view(panel: Panel, drawings: Mapping[str, Drawing], meanings: dict[str, str]) -> dict[str, Any]:
    charts = [drawings[chart.id] for chart in panel.charts]
    return {"panel": panel, "charts": charts, "tables": [_defined(table, meanings) for table in panel.tables]}


def _defined(table: Table, meanings: dict[str, str]) -> dict[str, Any]:
    """A table whose heads refer to what their metrics mean, by id; meanings are collected."""
    view = table_view(table)

    def id_of(meaning: str) -> str:
        id = f"means-{zlib.crc32(meaning.encode()):08x}" if meaning else ""
        meanings.update({id: meaning} if id else {})
        return id

    for head in view["heads"]:
        head["means"] = id_of(head["explanation"])
    if table.by_row and "meaning" not in [column.name for column in table.columns]:
        for cells, metric, before in zip(view["rows"], table.by_row, (None, *table.by_row), strict=False):
            cells[0]["means"] = id_of(metric.meaning) if metric != before else ""
    return view


def table_view(table: Table) -> dict[str, Any]:
    """A table as the templates take it."""
    single, numeric = table.one_n, table.numeric
    heads = [
        {"name": column.name, "explanation": column.explanation, "numeric": of_numbers, "means": ""}
        for column, of_numbers in zip(table.columns, numeric, strict=True)
    ]
    rows = [
        [_cell_view(cell, table.how(r, c), not single, numeric[c]) for c, cell in enumerate(row)]
        for r, row in enumerate(table.rows)
    ]
    if single:
        at = table.estimate_columns[-1] + 1
        heads.insert(at, {"name": "N", "explanation": "questions behind the row", "numeric": True, "means": ""})
        for cells, row in zip(rows, table.rows, strict=True):
            cells.insert(at, _cell_view(shared_n(row), 0, False, True))
    return {"table": table, "heads": heads, "rows": rows, "sortable": len(rows) > 2}


def _cell_view(cell: Cell, how: How, with_n: bool, numeric: bool) -> dict[str, Any]:
    value = cell.value if isinstance(cell, Estimate) else cell
    estimate = cell if isinstance(cell, Estimate) and cell.defined else None
    sortable = isinstance(value, int | float) and value == value and abs(value) != float("inf")
    return {
        "text": number(cell, how),
        "means": "",
        "interval": interval(estimate, how) if estimate else "",
        "n": f"{estimate.n:,}" if estimate and with_n else "",
        "sort": value if sortable else None,
        "kind": "number" if numeric else "short" if isinstance(cell, str) and len(cell) <= _SHORT else "",
    }


def fragment(page: Page) -> str:
    """Headline, key numbers and the first table as HTML that needs nothing else; texts are escaped."""
    tables = [table for panel in page.sections if not panel.reference for table in panel.tables]
    first = next((table for table in tables if not table.folded), tables[0] if tables else None)
    template = environment().get_template("notebook.html.jinja")
    return template.render(page=page, tiles=[*map(tile_view, page.tiles)], item=first and table_view(first))

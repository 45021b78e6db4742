"""The report as one HTML file: works offline, asks the network for nothing, and runs no code but its own."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import unslant
from unslant.metrics import Estimate
from unslant.reports.audit import audit_panels
from unslant.reports.browser import browser_data, packed
from unslant.reports.compare import compare_headline, compare_lead, compare_panels
from unslant.reports.panels import Cell, Panel, Table
from unslant.reports.rows import cost_line, notes, percent
from unslant.reports.runs import Run
from unslant.reports.style import PAGE, specification
from unslant.reports.tables import cell_text, estimate_columns, interval_text, one_n, shared_n
from unslant.reports.terminal import number

if TYPE_CHECKING:
    from jinja2 import Environment

_LAST = ("numbers",)
"""Panels that come after the questions, being for reference."""


_SHORT = 16
"""Texts up to this length need no room to be broken into lines."""


def panels_of(runs: Sequence[Run]) -> list[Panel]:
    """The panels of one audit, or of several side by side; none for no audit."""
    if not runs:
        return []
    return audit_panels(runs[0]) if len(runs) == 1 else compare_panels(runs)


def render(runs: Sequence[Run], panels: Sequence[Panel], headline: str = "") -> str:
    """The page.

    Args:
        runs: audits whose questions can be looked at one by one; may be empty.
        panels: what is shown, see :func:`panels_of`; panels of other studies follow those of the audit.
        headline: used where there is no audit.
    """
    shown = [panel for panel in panels if not panel.empty]
    drawings = {c.id: specification(c.draw(PAGE), PAGE) for panel in shown for c in panel.charts}
    scripts = {"theme": _text("theme.js"), "report": _text("report.js")}
    scripts["vega"] = _vega() if drawings else "window.vegaEmbed = () => {};"
    scripts["browser"] = _text("data.js") + _text("browser.js")
    scripts = {name: _script(code) for name, code in scripts.items()}
    style = _text("report.css") + _text("browser.css")
    nav = [{"id": panel.id, "title": panel.short or panel.title} for panel in shown if panel.id not in _LAST]
    nav += [{"id": "questions", "title": "Questions"}] if runs else []
    nav += [{"id": panel.id, "title": panel.short or panel.title} for panel in shown if panel.id in _LAST]
    from markupsafe import Markup

    return (
        _environment()
        .get_template("report.html.jinja")
        .render(
            version=unslant.__version__,
            title=f"{', '.join(run.name for run in runs)} · unslant" if runs else "unslant",
            policy=_policy(scripts.values(), style),
            style=Markup(style),
            scripts={name: Markup(code) for name, code in scripts.items()},
            nav=nav,
            panels=[_panel_view(panel) for panel in shown if panel.id not in _LAST],
            appendix=[_panel_view(panel) for panel in shown if panel.id in _LAST],
            about_runs=[_about(run) for run in runs],
            charts=_island(drawings),
            browser=Markup(packed(browser_data(runs))) if runs else None,
            **_hero(runs, headline),
        )
    )


@cache
def _vega() -> str:
    import vl_convert

    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed"))


def _text(name: str) -> str:
    return resources.files("unslant.reports").joinpath("templates", name).read_text("utf-8")


def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("unslant.reports", "templates")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined)


def _script(code: str) -> str:
    """Code that no parser of HTML can take for the end of its element."""
    return code.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _island(data: object) -> Any:
    """JSON that can stand in a ``script`` element whatever texts it holds."""
    from markupsafe import Markup

    return Markup(json.dumps(data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c"))


def _policy(scripts: Iterable[str], style: str) -> str:
    """Nothing may be loaded, and only the page's own scripts and styles are in force, known by their hashes."""

    def allowed(texts: Iterable[str]) -> str:
        hashes = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts)
        return " ".join(f"'sha256-{digest}'" for digest in hashes)

    return (
        f"default-src 'none'; script-src {allowed(scripts)}; style-src {allowed([style])}; "
        "base-uri 'none'; form-action 'none'"
    )


def _hero(runs: Sequence[Run], headline: str) -> dict[str, Any]:
    if not runs:
        return {"about": "", "headline": headline or "Report", "lead": "", "facts": []}
    if len(runs) > 1:
        return {
            "about": " · ".join(run.name for run in runs),
            "headline": compare_headline(runs),
            "lead": compare_lead(runs),
            "facts": [],
        }
    run = runs[0]
    means = run.metrics.means
    facts = (
        ("As reported", means.accuracy, "accuracy, options in the order of the file", 3),
        ("In every order", means.robust_accuracy, "what the order cannot change", 3),
        ("Mean over orders", means.expected_accuracy, "free of luck with the order", 3),
        ("Voted", means.vote_accuracy, "the corrected answer", 3),
        ("Consistency", means.consistency, "questions with one answer in every order", 3),
        ("PBM", means.pbm, "how far probabilities move with the order", 4),
    )
    return {
        "about": _asked(run),
        "headline": headline_words(run),
        "lead": _lead(run),
        "facts": [
            {
                "name": name,
                "value": cell_text(e, d),
                "interval": interval_text(e, d),
                "n": f"{e.n:,}",
                "meaning": meaning,
            }
            for name, e, meaning, d in facts
            if e.defined
        ],
    }


def headline_words(run: Run) -> str:
    """The outcome in a sentence or two."""
    means, preference = run.metrics.means, run.metrics.preference
    parts = []
    if means.accuracy.defined:
        robust = f", {number(means.robust_accuracy, 2)} whatever the order" if means.robust_accuracy.defined else ""
        parts.append(f"{number(means.accuracy, 2)} as reported{robust}.")
    if preference.unsure.defined:
        parts.append(f"{preference.phrase[:1].upper()}{preference.phrase[1:]}.")
    return " ".join(parts) or "Nothing could be measured."


def _asked(run: Run) -> str:
    orders = sorted({block.k for block in run.scores.blocks})
    shown = f", each in {orders[-1]} orders" if orders == orders[-1:] and orders else ""
    if len(orders) > 1:
        shown = f", each in {orders[0]} to {orders[-1]} orders"
    return f"{run.name} on {run.result.meta.get('questions', 'questions')}: {len(run.scores):,} questions{shown}"


def _lead(run: Run) -> str:
    means, over = run.metrics.means, run.metrics.over_orders
    parts = []
    if means.consistency.defined:
        parts.append(
            f"For {percent(1 - means.consistency.value)} of the questions, the answer changes with the order of options"
        )
    if over.worst.defined and "sampled" not in over.worst.note:
        parts.append(f"the whole set scores from {number(over.worst, 2)} to {number(over.best, 2)}, by order alone")
    if means.vote_accuracy.defined:
        parts.append(f"a vote over the orders scores {number(means.vote_accuracy, 2)}")
    return "; ".join(parts) + "." if parts else ""


def _about(run: Run) -> dict[str, Any]:
    meta = run.result.meta
    settings = meta.get("settings")
    rows = [("model", str(meta.get("model", run.name))), ("questions", str(meta.get("questions", "")))]
    rows += [("digest of the questions", str(meta["questions_digest"])[:16])] if "questions_digest" in meta else []
    rows += [(str(name), str(value)) for name, value in sorted(settings.items())] if isinstance(settings, dict) else []
    rows += [("engine", str(meta["engine"]))] if "engine" in meta else []
    cost = cost_line(run.result)
    return {
        "name": run.name,
        "settings": [(name, value) for name, value in rows if value],
        "notes": notes(run.result) + ([cost] if cost else []),
        "example": str(meta.get("example_prompt", "")),
    }


def _panel_view(panel: Panel) -> dict[str, Any]:
    return {
        "id": panel.id,
        "title": panel.title,
        "explanation": panel.explanation,
        "notes": panel.notes,
        "charts": panel.charts,
        "tables": [_table_view(table) for table in panel.tables],
    }


def _table_view(table: Table) -> dict[str, Any]:
    single, estimates = one_n(table), estimate_columns(table)
    numeric = [all(not isinstance(row[i], str) for row in table.rows) for i in range(len(table.columns))]
    heads = [
        {"name": column.name, "explanation": column.explanation, "numeric": number_column}
        for column, number_column in zip(table.columns, numeric, strict=True)
    ]
    at = estimates[-1] + 1 if single else len(heads)
    if single:
        heads.insert(at, {"name": "N", "explanation": "questions the row rests on", "numeric": True})
    rows = []
    for r, row in enumerate(table.rows):
        cells = [_cell_view(cell, table.digits(r, c), not single, numeric[c]) for c, cell in enumerate(row)]
        if single:
            cells.insert(at, _cell_view(shared_n(row), 0, False, True))
        rows.append(cells)
    return {
        "title": table.title,
        "explanation": table.explanation,
        "folded": table.folded,
        "heads": heads,
        "rows": rows,
        "sortable": len(rows) > 2,
    }


def _cell_view(cell: Cell, digits: int, with_n: bool, numeric: bool) -> dict[str, Any]:
    value = cell.value if isinstance(cell, Estimate) else cell
    estimate = cell if isinstance(cell, Estimate) and cell.defined else None
    sortable = isinstance(value, int | float) and value == value and abs(value) != float("inf")
    return {
        "text": cell_text(cell, digits),
        "interval": interval_text(estimate, digits) if estimate else "",
        "n": f"{estimate.n:,}" if estimate and with_n else "",
        "sort": value if sortable else None,
        "kind": "number" if numeric else "short" if isinstance(cell, str) and len(cell) <= _SHORT else "",
    }

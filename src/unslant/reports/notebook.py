"""A result in an interactive session: a few lines for the prompt, a piece of HTML for a notebook."""

from __future__ import annotations

from textwrap import shorten, wrap

from unslant.reports.escape import one_line
from unslant.reports.panels import Page

_WIDTH = 100
_LONGEST = 400


def outline(kind: str, page: Page) -> str:
    """Class, model, questions and headline in a few lines."""
    lines = [f"{kind}: {one_line(page.about)}", *map(one_line, page.caveats), one_line(page.headline)]
    return "\n".join(part for line in lines for part in wrap(shorten(line, _LONGEST, placeholder=" ..."), _WIDTH))


def fragment(page: Page) -> str:
    """Headline, key numbers and the first table as HTML that needs nothing else; texts are escaped."""
    from unslant.reports.html import environment, table_view, tile_view

    tables = [table for panel in page.sections if not panel.reference for table in panel.tables]
    first = next((table for table in tables if not table.folded), tables[0] if tables else None)
    template = environment().get_template("notebook.html.jinja")
    return template.render(page=page, tiles=[*map(tile_view, page.tiles)], item=first and table_view(first))

"""Executed notebooks: ``python -m docs.executed NAME.ipynb`` runs one in Jupyter's kernel and keeps what came out.

The site shows notebooks as pages (:func:`notebook_page`, called by docs/hooks.py); that needs no Jupyter.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def execute(path: Path) -> None:
    """Run all cells in a new kernel, and write their outputs into the file; an error in a cell is raised."""
    import nbformat
    from nbclient import NotebookClient

    found = nbformat.read(path, as_version=4)
    NotebookClient(found, timeout=600, kernel_name="python3", record_timing=False).execute()
    found.metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")


def cells(path: Path) -> list[dict[str, Any]]:
    """The cells of a notebook, with the text of each in one piece."""
    found = json.loads(path.read_text("utf-8"))["cells"]
    return [cell | {"source": "".join(cell["source"])} for cell in found]


def notebook_page(path: Path) -> str:
    """A notebook as a page in Markdown, with a link to the file."""
    parts = []
    for cell in cells(path):
        if cell["cell_type"] == "markdown":
            parts.append(cell["source"])
        else:
            shown = (output for output in cell["outputs"] if output["output_type"] != "display_data")  # progress
            parts += [f"```python\n{cell['source']}\n```", *map(_shown, shown)]
    first, *rest = parts
    return "\n\n".join([first, f"[The notebook]({path.name})", *rest]) + "\n"


def texts(output: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What an output holds, from the richest to plain text: type, and text."""
    held = output.get("data") or {"text/plain": output["text"]}
    for kind in ("text/html", "image/png", "text/plain"):
        if kind in held:
            yield kind, "".join(held[kind])


def _shown(output: dict[str, Any]) -> str:
    kind, text = next(texts(output))
    if kind == "text/html":
        return f"<div>\n{text}\n</div>"
    return f"![a chart](data:{kind};base64,{text.strip()})" if kind == "image/png" else f"```text\n{text}\n```"


if __name__ == "__main__":
    for name in sys.argv[1:]:
        execute(Path(name))

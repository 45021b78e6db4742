"""Counts the code blocks of the pages, and what is done with them: ``python -m docs.count``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from docs.conftest import BLOCK, NOTE, READERS

DOCS = Path(__file__).parent
PAGES = sorted(path for path in DOCS.rglob("*.md") if path.name != "intervention-examples.md")  # prompts, no code


class Block(NamedTuple):
    """A code block: its page, its language, and the notes before it."""

    page: str
    language: str
    notes: dict[str, str]

    @property
    def fate(self) -> str:
        """What the tests do with it."""
        if self.language == "text":
            return "text, no code"
        if "skip" in self.notes:
            return "skipped"
        if self.language in READERS:
            return "data, parsed"
        return "output, compared" if self.language == "output" else "run"


def code_blocks() -> Iterator[Block]:
    """Every block of every page."""
    for path in PAGES:
        for match in BLOCK.finditer(path.read_text("utf-8")):
            yield Block(path.relative_to(DOCS).as_posix(), match["language"], dict(NOTE.findall(match["notes"])))


def main() -> None:
    found = list(code_blocks())
    print(f"{len(found)} code blocks on {len({block.page for block in found})} pages")
    for fate, n in Counter(block.fate for block in found).most_common():
        print(f"{n:5} {fate}")
    print("Reasons to skip:")
    for reason, n in Counter(block.notes["skip"] for block in found if block.fate == "skipped").most_common():
        print(f"{n:5} {reason}")


if __name__ == "__main__":
    main()

"""``predictions/*.json`` of OpenCompass with circular evaluation: generated answers, the options in several orders.

``gold`` is ``ID--LETTER--PATTERN``: option i of the file stands under letter ``PATTERN[i]``. Perplexities of whole
prompts (``PPL``) are no scores of labels, and refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unslant.errors import InputError
from unslant.files import parse_json, read_text
from unslant.responses.importers.logged import Log, Logged, understood
from unslant.responses.importers.page_text import options_on_page
from unslant.responses.importers.registry import Head


def recognises(head: Head) -> bool:
    first = head.first.get("0")
    return isinstance(first, Mapping) and {"origin_prompt", "prediction"} <= set(first)


def read(path: Path, fields: Mapping[str, str]) -> list[Log]:
    pages = []
    for number, row in parse_json(read_text(path)).items():
        place = f"{path}, entry {number}"
        with understood(place, "prediction of OpenCompass"):
            if any(str(key).startswith("label: ") for key in row):
                raise InputError.at(
                    place,
                    "has perplexities of whole prompts (PPL), no scores of labels; give generated predictions",
                )
            pages.append(_page(row, place))
    return [Log(path.parent.name or path.stem, "OpenCompass", "words", tuple(pages), path.stem)]


def _page(row: Mapping[str, Any], place: str) -> Logged:
    prompt = row["origin_prompt"]
    text = prompt if isinstance(prompt, str) else "\n".join(str(part.get("prompt", "")) for part in prompt)
    parts = str(row["gold"]).split("--")
    if len(parts) != 3:
        raise ValueError(f"gold {row['gold']!r} tells no order; predictions of a circular evaluation are read")
    name, letter, pattern = parts
    labels = tuple(sorted(pattern))
    order = tuple(pattern.index(label) for label in labels)
    return Logged.of_reply(
        str(row["prediction"]),
        labels=labels,
        options=options_on_page(text, labels),
        id=name,
        answers=frozenset({labels.index(letter)}),
        place=place,
        question=text.strip().split("\n", 1)[0],
        order=order,
    )

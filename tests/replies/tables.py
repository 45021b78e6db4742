"""Labelled replies, and the comparison of what is read of them with what a careful reader takes them for."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from unslant.replies import VERDICTS, Extracted, extract_labels, extract_verdict

DATA = Path(__file__).parent / "data"


def rows(path: Path) -> list[dict[str, Any]]:
    """The records of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def read(row: dict[str, Any], reply: str) -> Extracted:
    """What is read of a reply to the question of a row."""
    labels = row.get("labels_shown", row.get("labels"))
    if row["kind"] == "judging" and tuple(row.get("labels_shown", VERDICTS)) == VERDICTS:
        return extract_verdict(reply)
    return extract_labels(reply, labels, row["options"])


def different(cases: Iterable[tuple[str, object, Extracted]]) -> list[str]:
    """The replies that are read as something else than their answer: labels, or None where they give none."""
    wrong = []
    for reply, answer, extracted in cases:
        labels = None if answer is None else frozenset(answer)  # type: ignore[call-overload]
        equal = extracted.status != "ok" if labels is None else (extracted.status, extracted.labels) == ("ok", labels)
        if not equal:
            wrong.append(f"{reply!r}: {answer!r} was read as {extracted}")
    return wrong

"""The texts of the questions, packed to travel in the metadata of a table of responses."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable

from unslant.questions.question import Question
from unslant.questions.question_set import canonical_line


def pack(questions: Iterable[Question]) -> bytes:
    """Canonical JSON lines, compressed, as ASCII: readers of Parquet in other languages refuse metadata that is not
    text. The same questions give the same bytes."""
    lines = "\n".join(canonical_line(question) for question in questions)
    return base64.b64encode(zlib.compress(lines.encode(), 9))


def unpack(packed: bytes) -> tuple[Question, ...]:
    """The inverse of :func:`pack`."""
    lines = zlib.decompress(base64.b64decode(packed)).decode().split("\n")
    return tuple(_question(json.loads(line)) for line in lines if line)


def _question(record: dict[str, object]) -> Question:
    values = dict(record)
    stem, answer, options, pinned = (values.pop(name) for name in ("question", "answer", "options", "pinned"))
    assert isinstance(options, list)
    assert isinstance(pinned, list)
    answers = frozenset(answer if isinstance(answer, list) else [answer])
    return Question(stem=str(stem), options=tuple(options), answers=answers, pinned=tuple(pinned), **values)  # type: ignore[arg-type]

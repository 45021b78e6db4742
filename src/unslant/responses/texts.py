"""The texts of the questions, packed to travel in the metadata of a table of responses."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable

from unslant.files import MAX_BYTES, parse_json
from unslant.questions.question import Question
from unslant.questions.question_set import canonical_line, question_of


def pack(questions: Iterable[Question]) -> bytes:
    """Canonical JSON lines, compressed, as ASCII: readers of Parquet in other languages refuse metadata that is not
    text. The same questions give the same bytes."""
    lines = "\n".join(canonical_line(question) for question in questions)
    return base64.b64encode(zlib.compress(lines.encode(), 9))


def unpack(packed: bytes) -> tuple[Question, ...]:
    """The inverse of :func:`pack`.

    Raises:
        ValueError: if it is not.
    """
    try:
        stream = zlib.decompressobj()
        content = stream.decompress(base64.b64decode(packed, validate=True), MAX_BYTES)
    except zlib.error as error:
        raise ValueError(f"its questions cannot be unpacked: {error}") from None
    if not stream.eof:
        raise ValueError("its questions cannot be unpacked: they are cut short, or too long")
    lines = content.decode().split("\n")
    return tuple(question_of(parse_json(line)) for line in lines if line)

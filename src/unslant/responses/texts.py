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
    return _packed("\n".join(canonical_line(question) for question in questions))


def joined(packed: Iterable[bytes]) -> bytes:
    """Several sets of packed questions as one, with the bytes that :func:`pack` gives all of them.

    Raises:
        ValueError: see :func:`unpack`.
    """
    lines = "\n".join(filter(None, map(_unpacked, packed)))
    return _packed(lines) if lines else b""


def _packed(lines: str) -> bytes:
    return base64.b64encode(zlib.compress(lines.encode(), 9))


def unpack(packed: bytes) -> tuple[Question, ...]:
    """The inverse of :func:`pack`.

    Raises:
        ValueError: if it is not.
    """
    return tuple(question_of(parse_json(line)) for line in _unpacked(packed).split("\n") if line)


def _unpacked(packed: bytes) -> str:
    try:
        stream = zlib.decompressobj()
        content = stream.decompress(base64.b64decode(packed, validate=True), MAX_BYTES) if packed else b""
    except zlib.error as error:
        raise ValueError(f"its questions cannot be unpacked: {error}") from None
    if packed and not stream.eof:
        raise ValueError("its questions cannot be unpacked: they are cut short, or too long")
    return content.decode()

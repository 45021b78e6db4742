"""A record as a source has it, with its place for messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, time
from decimal import Decimal
from typing import Any

from unslant.files import check_plain

_STEMS = {"question", "stem", "question_stem", "prompt", "paragraph", "passage"}


@dataclass(frozen=True, slots=True)
class Record:
    """One record as the source has it, or the reason why it could not be read.

    Attributes:
        place: source and line (or item, row), for messages.
        data: the record, see :func:`unslant.files.check_plain`; empty when it could not be read.
        problem: why it could not be read; empty when it could.
    """

    place: str
    data: Mapping[str, Any]
    problem: str = ""


def record_of(place: str, data: object) -> Record:
    """A record with plain values, or the reason why it is none."""
    if not isinstance(data, Mapping):
        return Record(place, {}, f"is {type_name(data)}, not a JSON object with question, options and answer")
    try:
        check_plain(data)
    except ValueError as error:
        return Record(place, {}, f"not usable: {error}")
    return Record(place, data)


def plain_record(place: str, data: Any) -> Record:
    """As :func:`record_of`, for rows of libraries: arrays and sets become lists, dates and decimals texts, pictures
    ``True``."""
    return record_of(place, _plain(data))


def _plain(value: Any) -> Any:
    if isinstance(value, date | time | Decimal):
        return str(value)
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value
    if isinstance(value, Mapping):
        return True if {"bytes", "path"} == value.keys() else {key: _plain(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(_plain, value), key=repr)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.tolist() if hasattr(value, "tolist") else value  # NumPy's scalars and arrays


def items_of(data: object) -> list[Any]:
    """The questions inside a JSON value: a list of them, one alone, lists by column, or an object that has them under a
    key such as "data", or by id.

    Raises:
        ValueError: in words, if it holds none or several lists of them.
    """
    if isinstance(data, list):
        return data
    if not isinstance(data, Mapping):
        raise ValueError(f"is {type_name(data)}; expected a list of questions, or an object that holds one")
    if data and all(isinstance(value, Mapping) for value in data.values()):
        return [value if "id" in value else {"id": key, **value} for key, value in data.items()]
    lists = {
        key: value for key, value in data.items() if isinstance(value, list) and value and isinstance(value[0], Mapping)
    }
    if lists and not _STEMS & data.keys():
        lists = {key: lists[key] for key in ("questions", "data") if key in lists} or lists
        if len(lists) > 1:
            raise ValueError(f"holds several lists of records, {', '.join(map(repr, lists))}: give one of them alone")
        return next(iter(lists.values()))
    if len(data) > 1 and all(isinstance(value, list) for value in data.values()):
        if len(set(map(len, data.values()))) > 1:
            raise ValueError(f"its lists, {', '.join(map(repr, data))}, are not of one length")
        return [dict(zip(data, row, strict=True)) for row in zip(*data.values(), strict=True)]
    return [data]


def type_name(value: object) -> str:
    """What a value is, in JSON's words: ``a list``, ``a text``, ``a number``."""
    names = {list: "a list", str: "a text", int: "a number", float: "a number", bool: "true/false", type(None): "null"}
    return names.get(type(value), type(value).__name__)

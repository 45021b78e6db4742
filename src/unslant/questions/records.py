"""Records, their places and cells, and the records in lists, data frames, Arrow tables and data sets."""

from __future__ import annotations

import ast
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, time
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

from unslant.errors import InputError, first_line
from unslant.files import check_plain, parse_json
from unslant.questions.question import JudgingQuestion, MathQuestion, Question, QuestionSet

MAX_RECORDS = 2_000_000
_STEMS = {"question", "stem", "question_stem", "question_text", "prompt", "paragraph", "passage"}
_PART = re.compile(
    r"(?:train|test|val|valid|validation|dev|eval|data|question|item|row|shot|few|example|exemplar|demo)s?(?![a-z])",
    re.I,
)
_PASSAGES = {"context", "article", "story", "narrative", "dialogue", "text"}
_TEXTS = ("text", "content", "contexts", "utterance", "sentences", "passage")
_IMAGE = re.compile(
    r"(?:\w+_)?(?:image|img|picture|photo|figure)s?(?:_(?:url|uri|path|file|filename|name|id|link|base64|bytes|\d+))?"
)
_NO_IMAGE = {"", "{}", "no", "false", "0", "none", "null", "nan", "n/a"}
SAID = {"false": False, "true": True, "wrong": False, "right": True, "incorrect": False, "correct": True}
"""Words, also names of classes, that say whether an option is right."""
_LITERAL = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_ITEM = rf"(?:{_LITERAL}|[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|True|False|None)"
_NUMPY_LIST = re.compile(rf"\[\s*{_ITEM}(?:\s+{_ITEM})+\s*\]", re.DOTALL)
_NUMPY_ARRAY = re.compile(rf"array\(|(?:,\s*dtype=(?:\w+|'[^']*'))?\)|({_LITERAL})", re.DOTALL)
_WHOLE = re.compile(r"\s*(-?\d{1,17})[.,]0+\s*")


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


class BadRecord(Exception):
    """A record that cannot become a question.

    Attributes:
        kind: short reason by which such records are counted.
        field: name of the field at fault; empty if none.
        whole_file: the whole file is read in the wrong way, which skipping this record would hide.
    """

    def __init__(self, kind: str, reason: str, field: str = "", whole_file: bool = False) -> None:
        super().__init__(reason)
        self.kind, self.field, self.whole_file = kind, field, whole_file


def values_in(record: Record, columns: Mapping[str, str]) -> dict[str, Any]:
    """The values of a record by field; a list for a field of several columns (``scores=score_A,score_B``)."""
    data = record.data
    return {
        field: data[name] if name in data else [data.get(part.strip()) for part in name.split(",")]
        for field, name in columns.items()
    }


def record_of(place: str, data: object) -> Record:
    """A record with plain values, or the reason why it cannot be one."""
    if not isinstance(data, Mapping):
        return Record(place, {}, f"is {type_name(data)}, not a JSON object with question, options and answer")
    try:
        check_plain(data)
    except ValueError as error:
        return Record(place, {}, f"not usable: {error}")
    return Record(place, data)


def plain_record(place: str, data: Any, classes: Mapping[str, list[Any]] | None = None) -> Record:
    """As :func:`record_of`, for rows of libraries: arrays and sets become lists, dates and decimals texts, members of
    enumerations their values, pictures ``True``, and numbers of ``classes`` (:func:`class_names`) their names."""
    data = _plain(data)
    for path, names in (classes or {}).items():
        data = _named(data, path.split("\x1f"), names)
    return record_of(place, data)


def _named(value: Any, path: list[str], names: list[Any]) -> Any:
    """The value with the numbers under a path of keys as names of classes, also in lists."""
    if isinstance(value, list):
        return [_named(item, path, names) for item in value]
    if path and isinstance(value, Mapping) and path[0] in value:
        return {**value, path[0]: _named(value[path[0]], path[1:], names)}
    return names[value] if not path and isinstance(value, int) and 0 <= value < len(names) else value


def _plain(value: Any) -> Any:
    if value is None or type(value) in (str, int, float):  # nearly every cell
        return value
    if isinstance(value, Enum):  # also of texts: written into a prompt, it would be Kind.NAME
        return _plain(value.value)
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


@lru_cache(1024)
def usual_name(column: str) -> str:
    """A column's name in the form used for comparison: lower case, with underscores (also for ``camelCase``)."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", column.strip())
    return re.sub(r"[ _-]+", "_", words.lower()).removeprefix("question.")


def image_in(data: Mapping[str, Any]) -> str:
    """The column that holds an image, a path to one, or a yes; empty if none does."""
    cells = ((name, value) for name, value in data.items() if _IMAGE.fullmatch(usual_name(name)))
    parts = ((name, part) for name, value in cells for part in (value if isinstance(value, list | tuple) else [value]))
    return next((name for name, part in parts if str(part).strip().casefold() not in _NO_IMAGE), "")


def is_missing(value: Any) -> bool:
    """Null, NaN or blank text."""
    if isinstance(value, str):
        return not value.strip()
    return value is None or (isinstance(value, float) and math.isnan(value))


def whole_number(text: str) -> str:
    """A whole number without decimals ("1.0" or "1,0"), because spreadsheets write it with them; other texts as is."""
    match = _WHOLE.fullmatch(text)
    return match[1] if match else text


def text_of(value: Any) -> str:
    """A value as text: empty for a missing one, lines for a list, the text in an object, after who says it."""
    if isinstance(value, list | tuple):
        return "\n".join(text_of(item) for item in value)
    if isinstance(value, Mapping) and (key := next((key for key in _TEXTS if key in value), "")):
        speaker = value.get("speaker") or value.get("role")
        return f"{speaker}: " * bool(speaker) + text_of(value[key])
    return "" if value is None or value != value else str(value)


def parse_list(text: str) -> list[Any] | None:
    """A list written as text, in JSON or Python form; None if the text is not a list."""
    return value if isinstance(value := parse_written(text), list) else None


def parse_written(text: str) -> list[Any] | dict[Any, Any] | None:
    """A list or an object written as text, in JSON or Python form, or with arrays as NumPy prints them; None for other
    texts.

    Examples:
        >>> parse_written("['grass' 'blood']")
        ['grass', 'blood']
        >>> parse_written("{'text': array(['grass', 'blood'], dtype=object)}")
        {'text': ['grass', 'blood']}
    """
    for parse in (parse_json, _of_python) if text.strip().startswith(("[", "(", "{")) else ():
        try:
            value: Any = parse(text.strip())
            check_plain(value)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(value, list | tuple | dict):
            return value if isinstance(value, dict) else list(value)
    return None


def _of_python(text: str) -> Any:
    # Python would join the texts of ['a' 'b'], so that the array would become a list of one text.
    if _NUMPY_LIST.fullmatch(text):
        return ast.literal_eval(re.sub(_ITEM, lambda item: f"{item[0]},", text, flags=re.DOTALL))
    plain = _NUMPY_ARRAY.sub(lambda part: part[1] or "", text) if "array(" in text else text
    spans = [literal.span() for literal in re.finditer(_LITERAL, plain, re.DOTALL)]
    if any(plain[end:start].isspace() for (_, end), (start, _) in pairwise(spans)):
        raise ValueError("texts without a comma between them, also elsewhere than in an array of texts")
    return ast.literal_eval(plain)


def items_of(data: object) -> list[Any]:
    """The questions inside a JSON value: a list of them, a single one, lists by column or by subject, or an object that
    has them under a key such as "data", or by id.

    Raises:
        ValueError: saying so, if it holds no list of questions, or several.
    """
    if isinstance(data, list):
        return [
            dict(zip(("context", "questions", "id"), item, strict=True)) if _is_dream(item) else item for item in data
        ]
    if not isinstance(data, Mapping):
        raise ValueError(f"is {type_name(data)}; expected a list of questions, or an object that holds one")
    if "unslant" in data and "study" in data:
        raise ValueError(f"is a result of unslant ({data['study']}), not questions; give the file with the questions")
    if data and all(isinstance(value, Mapping) for value in data.values()):
        rows = next(iter(data.values()))
        if rows and _STEMS & set(data) and all(value.keys() == rows.keys() for value in data.values()):
            return [{key: value[row] for key, value in data.items()} for row in rows]  # by column, as pandas writes it
        return [value if "id" in value else {"id": key, **value} for key, value in data.items()]
    rows = data.get("rows")
    if isinstance(rows, list) and rows and all(isinstance(row, Mapping) and "row_idx" in row for row in rows):
        if cut := next((row for row in rows if row.get("truncated_cells")), None):  # of the Hub's data set server
            raise ValueError(f"row {cut['row_idx']} is cut off in {cut['truncated_cells']}; load the data set: hub:ID")
        return [row.get("row") for row in rows]
    lists = {
        key: value for key, value in data.items() if isinstance(value, list) and value and isinstance(value[0], Mapping)
    }
    about = "questions" in lists and any(isinstance(value, str) and name in _PASSAGES for name, value in data.items())
    stems = _STEMS & data.keys()
    if len(lists) == 1 and stems == {"prompt"} and _of_subject("", *lists.values()):
        stems = set()  # the prompt of a run, next to its questions
    if lists and not about and not stems:
        lists = {key: lists[key] for key in ("questions", "data") if key in lists} or lists
        if len(lists) > 1 and all(_of_subject(key, items) for key, items in lists.items()):
            return [  # every list may count its questions from 1
                {"subject": key, **item} | ({"id": f"{key}/{item['id']}"} if "id" in item else {})
                for key, items in lists.items()
                for item in items
            ]
        if len(lists) > 1:
            raise ValueError(
                f"holds several lists of records, {', '.join(map(repr, lists))}: give only one of them, or all in one "
                "list, each record with its name as 'subject'"
            )
        return next(iter(lists.values()))
    if len(data) > 1 and all(isinstance(value, list) for value in data.values()):
        if len(set(map(len, data.values()))) > 1:
            raise ValueError(f"its lists, {', '.join(map(repr, data))}, have different lengths")
        return [dict(zip(data, row, strict=True)) for row in zip(*data.values(), strict=True)]
    return [data]


def _is_dream(item: Any) -> bool:
    """Whether this is a dialogue, its questions and its id, in a list, as the files of DREAM have it."""
    return isinstance(item, list) and [type(part) for part in item] == [list, list, str]


def _of_subject(name: str, items: list[Any]) -> bool:
    """Whether a list among several holds the questions of one subject, not a part of the file such as "test"."""
    stems = all(isinstance(item, Mapping) and _STEMS & set(map(usual_name, item)) for item in items)
    return stems and not _PART.match(name)


def type_name(value: object) -> str:
    """The type of a value in JSON's words: ``a list``, ``a text``, ``a number``."""
    names = {list: "a list", str: "a text", int: "a number", float: "a number", bool: "true/false", type(None): "null"}
    return names.get(type(value), type(value).__name__)


def class_names(schema: Any) -> dict[str, list[Any]]:
    """The names of the classes that the library ``datasets`` stores as numbers, by the path of keys to them in a schema
    of Arrow (with U+001F between); False and True for names that say so."""
    written = (schema.metadata or {}).get(b"huggingface")
    features = parse_json(written.decode()).get("info", {}).get("features") if written else None
    classes: dict[str, list[Any]] = {}
    todo = [*(features or {}).items()]
    for path, feature in todo:
        while (feature and isinstance(feature, list)) or (isinstance(feature, Mapping) and "feature" in feature):
            feature = feature[0] if isinstance(feature, list) else feature["feature"]  # that of the items of a list
        kind = feature.get("_type", "") if isinstance(feature, Mapping) else "unknown"
        names = feature["names"] if kind == "ClassLabel" else None
        todo += [] if kind else [(f"{path}\x1f{key}", inner) for key, inner in feature.items()]
        stem = names[0].rstrip("01") if names else ""
        # Names such as choice1, choice2 say no more than the number of the class, which counts from 0.
        if names and not any(names == [f"{stem}{k + base}" for k in range(len(names))] for base in (0, 1)):
            said = [SAID.get(name.lower()) for name in names]
            classes[path] = names if None in said else said
    return classes


def row_record(batch: Any, i: int, place: str, classes: Mapping[str, list[Any]]) -> Record:
    """Row ``i`` of a pyarrow batch, with the names of its classes (:func:`class_names`)."""
    try:
        return plain_record(place, batch.slice(i, 1).to_pylist()[0], classes)
    except Exception as error:  # text that is not UTF-8, dates beyond year 9999, and anything else in a cell
        return Record(place, {}, f"cannot be read: {first_line(error)}")


MADE = (Question, JudgingQuestion, MathQuestion)
"""Types of ready-made questions, which need no reading."""
_GIVE = "give a file, a name, a list of dicts or Question, a pandas or polars DataFrame, a pyarrow Table or a Dataset"


def settled(source: Any) -> Any:
    """The source, with iterators, which could be read only once, as lists."""
    if isinstance(source, str | Path | Mapping | list | tuple | QuestionSet) or not isinstance(source, Iterable):
        return source
    return source if hasattr(source, "cast_column") or hasattr(source, "__arrow_c_stream__") else list(source)


def object_records(source: Any) -> list[Record]:
    """The records of a list or other iterable of mappings, a mapping (as a JSON object), a data frame, an Arrow table
    (anything with Arrow's stream interface) or a data set of the library ``datasets``.

    Raises:
        InputError: on other types, or if it is empty or holds more than 2,000,000 records.
    """
    records = list(islice(_records(source), MAX_RECORDS + 1))
    if len(records) > MAX_RECORDS:
        raise InputError(f"{type(source).__name__} holds more than {MAX_RECORDS:,} records; split it")
    if not records:
        raise InputError(f"{type(source).__name__} holds no questions")
    return records


def _records(source: Any) -> Iterator[Record]:
    name = type(source).__name__
    if isinstance(source, Mapping):
        splits = [str(key) for key, value in source.items() if hasattr(value, "cast_column")]
        if len(splits) > 1:
            raise InputError(f"{name} holds the splits {', '.join(splits)}; give one of them: [{splits[0]!r}]")
        try:
            source = source[splits[0]] if splits else items_of(dict(source))
        except ValueError as error:
            raise InputError(f"{name} {error}") from None
    if hasattr(source, "cast_column"):
        yield from dataset_records(source, name)
    elif hasattr(source, "__arrow_c_stream__"):
        yield from _table_records(source, name)
    elif hasattr(source, "collect") and hasattr(source, "lazy"):
        raise InputError(f"{name} is not computed yet; give its .collect()")
    elif isinstance(source, Iterable) and not isinstance(source, str | bytes):
        for number, item in enumerate(source, 1):
            yield plain_record(f"{name}, item {number}", item)
    else:
        raise InputError(f"questions of type {name}: {_GIVE}")


def dataset_records(rows: Any, origin: str) -> Iterator[Record]:
    """The rows of a data set of the library ``datasets``; pictures are not decoded."""
    from datasets import Image

    for name, feature in (rows.features or {}).items():
        if isinstance(feature, Image):
            rows = rows.cast_column(name, Image(decode=False))  # pictures are only tested for presence
    classes = class_names(rows.features.arrow_schema) if rows.features else {}
    for number, row in enumerate(rows, 1):
        yield plain_record(f"{origin}, row {number}", row, classes)


def _table_records(source: Any, name: str) -> Iterator[Record]:
    import pyarrow as pa

    try:
        table = pa.RecordBatchReader.from_stream(source).read_all()
    except (pa.ArrowException, TypeError, ValueError) as error:  # pandas allows columns with values of several types
        if not (hasattr(source, "to_dict") and hasattr(source, "columns")):
            raise InputError(f"{name}: cannot be read: {first_line(error)}") from None
        names = Counter(map(str, source.columns))
        if twice := [column for column, n in names.items() if n > 1]:
            raise InputError(f"{name}: two columns have the name {twice[0]!r}; rename one") from None
        for number, row in enumerate(source.to_dict("records"), 1):
            yield plain_record(f"{name}, row {number}", row)
        return
    classes = class_names(table.schema)
    rows = ((batch, i) for batch in table.to_batches(max_chunksize=1024) for i in range(batch.num_rows))
    for number, (batch, i) in enumerate(rows, 1):
        yield row_record(batch, i, f"{name}, row {number}", classes)

"""Which column holds which field, and reading one record's fields."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from sys import intern
from typing import Any

from unslant.errors import InputError, one_of, shown
from unslant.questions.answer_forms import RawAnswer
from unslant.questions.numbering import is_scheme, names_on, split_options, strip_numbering, without_options
from unslant.questions.pinned import find_pinned, pinned_in
from unslant.questions.question import MAX_OPTIONS, MIN_OPTIONS
from unslant.questions.records import SAID, BadRecord, Record, image_in, is_missing, parse_written, text_of, usual_name

CHOICE_FIELDS: Mapping[str, tuple[str, ...]] = {
    name: tuple(aliases.split())
    for name, aliases in {
        "id": "id question_id qid uid uuid example_id sample_id record_id guid idx index original_id",
        "question": "question_stem question stem query question_text problem problem_text prompt conclusion goal ctx "
        "sentence startphrase",
        "options": "options choices answer_choices answer_options candidates alternatives endings mc1_targets "
        "mc2_targets",
        "answer": "answer answerkey answer_key answer_idx answer_index answer_letter correct_answer correctanswer "
        "correct_option correctoption correct_option_index correct_index correct_idx correct_letter correct_ans "
        "correct_answers correct_choice correct_answer_id correct_answer_index correct_answer_num gold gold_answer "
        "gold_letter gold_label ground_truth groundtruth groundtruth_answer standard_answer expected_answer target "
        "ideal cop correct label",
        "context": "context contexts passage passage_text flores_passage paragraph paragraph_text story article "
        "narrative dialogue premise premises facts",
        "subject": "subject subject_name category topic topic_name domain subdomain discipline activity_label",
        "source": "source dataset_source",
        "labels": "labels choice_labels",
        "pinned": "pinned",
    }.items()
}
"""Field -> usual column names, in order of preference."""
LAST_RESORT = {
    "question": "text q mcq input inputs".split(),
    "options": "answers target_scores multiple_choice_targets choice option".split(),
    "answer": "answer_text right_answer gold_index final_decision targets answers".split(),
    "context": "text para document background background_description scenario situation puzzle code hint "
    "support".split(),
}
"""Names that often mean something else; they are read only where no other column has the field."""
_FAMILY = re.compile(
    r"(?i)(?P<stem>option|choice|opt|op|ending|sol|mc_answer|answer|ans|)[ _]?"
    r"[(\[]?(?P<key>[a-z]|\d{1,2})[)\].:]?(?: \(optional\))?"
)
_RELATIONS = {"cause": "What was the cause of this?", "effect": "What happened as a result?"}
"""What COPA means by the word that it has for a question."""
_NAME, _BREAK = re.compile(r"[\w.:/#-]*"), re.compile(r"(?i)<br ?/?>")
_SEEN = 500
"""Records whose keys are searched for columns, since optional ones may be absent from the first records."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A record read field by field, except its answer, whose reading depends on the whole file.

    Its options may have been numbered, cut from the end of the question's text, or padded with several "N/A".
    """

    record: Record
    answer: RawAnswer
    numbered: bool
    cut: bool
    padded: bool
    fields: Mapping[str, Any]
    """The fields of :class:`Question` except the answers."""


def passage_of(record: Mapping[str, Any]) -> str:
    """The passage in a harness's record of a question, under one of its usual names; empty if there is none."""
    texts = (record.get(name) for name in CHOICE_FIELDS["context"])
    return intern(next((text for text in texts if isinstance(text, str) and text.strip()), ""))


def column_names(records: Sequence[Record]) -> list[str]:
    """Keys of the first records, in order of appearance; keys of an object under "question" as ``question.stem``."""
    names: dict[str, None] = {}
    for record in records[:_SEEN]:
        for key, value in record.data.items():
            if isinstance(value, Mapping) and key == "question":
                names.update(dict.fromkeys(f"{key}.{inner}" for inner in value))
            else:
                names[key] = None
    return list(names)


def find_fields(
    columns: Sequence[str],
    mapping: Mapping[str, str],
    origin: str,
    usual: Mapping[str, Sequence[str]] = CHOICE_FIELDS,
    needed: Sequence[str] = ("question", "options"),
    records: Sequence[Record] = (),
) -> dict[str, str]:
    """Field -> column, from the user's mapping and the usual names; several option columns are joined by commas.

    Args:
        mapping: field -> column, or several columns ``"opa,opb,opc"`` for options, question or context; ``""`` leaves a
            field out.
        usual: all fields, and their usual column names.
        records: a column that is empty in all of them gives way to another with a usual name.

    Raises:
        InputError: on an unknown field, a column that does not exist, or a needed field that cannot be found.
    """
    for field in mapping:
        if field not in usual:
            raise InputError(f"unknown field {field!r} in the field mapping: {one_of(field, usual)}")
    found = find_columns(columns, {}, usual)
    names = {field: mapping[field] if field in mapping else _filled(found[field], records) for field in usual}
    if usual is CHOICE_FIELDS:
        if "options" not in mapping and not names["options"]:
            names["options"] = ",".join(option_columns(columns))
        for field, others in find_columns(columns, {}, LAST_RESORT).items():
            free = [column for column in others if column not in names.values()]
            if field == "context":
                free = [column for column in free if is_passage(records, column, names["question"])]
            if free and field not in mapping and not names[field]:
                names[field] = free[0]
        if "options" not in mapping and not names["options"] and names["question"]:
            ends = [split_options(text_of(lookup(one.data, names["question"]))) for one in records]
            names["options"] = names["question"] if 2 * sum(map(bool, ends)) > len(ends) else ""
    tops = {column.split(".")[0] for column in columns}
    for field, name in mapping.items():
        for part in [name] if name in columns else [part.strip() for part in name.split(",")]:
            if part and part not in columns and part.split(".")[0] not in tops:
                raise InputError.at(origin, f"column {part!r} does not exist: {one_of(part, columns)}", field=field)
    if {"question_id", "contents", "elicitation"} <= {*columns}:
        reason = f"holds responses that unslant recorded: unslant report {shown(origin)} draws them, --log reads them"
        raise InputError.at(origin, reason)
    for field in needed:
        if not names.get(field):
            raise InputError.at(
                origin,
                f"no column was found for it among {', '.join(columns[:50]) or 'none'}{', ...' * (len(columns) > 50)}; "
                f"name it: --fields {field}="
                + ("COLUMN, or a column for each, --fields options=COLUMN,COLUMN" if field == "options" else "COLUMN"),
                field=field,
            )
    return {field: name for field, name in names.items() if name}


def _filled(columns: Sequence[str], records: Sequence[Record]) -> str:
    """The first column with a value in any record, as AGIEval has its answers in ``label`` and an empty ``answer``."""
    filled = (c for c in columns if any(not is_missing(lookup(record.data, c)) for record in records))
    return next(filled, next(iter(columns), ""))


def is_passage(records: Sequence[Record], column: str, question: str) -> bool:
    """Whether most texts of a column are more than names or numbers, and do not repeat the question."""
    pairs = [(text_of(lookup(one.data, question)).strip(), text_of(lookup(one.data, column))) for one in records]
    pairs = [(stem, text) for stem, text in pairs if text.strip()]
    return 2 * sum(stem not in text and not _NAME.fullmatch(text) for stem, text in pairs) >= len(pairs)


def find_columns(
    names: Iterable[str], fields: Mapping[str, str], usual: Mapping[str, Sequence[str]]
) -> dict[str, tuple[str, ...]]:
    """Field -> its columns among ``names``, the preferred one first: that in ``fields``, else all usual ones.

    In ``fields``, several columns by commas are one (options); in capitals or with spaces, names are the usual ones.
    """
    present: dict[str, str] = {}
    for name in names:
        present[name] = name
        present.setdefault(usual_name(name), name)
    columns = {
        key: tuple(dict.fromkeys(present[name] for name in aliases if name in present))
        for key, aliases in usual.items()
    }
    tops = {name.split(".")[0] for name in present}
    for key, name in fields.items():
        there = name in present or all(part.strip().split(".")[0] in tops for part in name.split(","))
        columns[key] = (name,) if name and there else ()
    return columns


def option_columns(columns: Sequence[str]) -> list[str]:
    """Columns with one option each: ``A``..``D``, ``option 1``.., ``opa``.., ``choice_a``.., in order of their key."""
    families: dict[tuple[str, bool], dict[str, str]] = {}
    for column in columns:
        match = _FAMILY.fullmatch(column.strip())
        if match and not (match["stem"] == "" and match["key"].isdigit()):
            family = families.setdefault((match["stem"].lower(), match["key"].isdigit()), {})
            family[match["key"].lower()] = column
    for family in sorted(families.values(), key=len, reverse=True):
        keys = sorted(family, key=lambda key: (len(key), key))
        if keys[0] in {"a", "0", "1"} and len(keys) >= 2:
            return [family[key] for key in keys]
    return []


def lookup(data: Mapping[str, Any], path: str) -> Any:
    """Value under ``path``, where ``choices.text`` is the key ``text`` inside ``choices``; None if there is none."""
    if path in data:
        return data[path]
    value: Any = data
    for key in path.split("."):
        if not isinstance(value, Mapping) or key not in value:
            return None
        value = value[key]
    return value


def _texts_of(data: Mapping[str, Any], path: str) -> str:
    """The text of one column, or of several separated by commas, one a line."""
    parts = [path] if "," not in path or path in data else path.split(",")
    return "\n".join(filter(None, (text_of(lookup(data, part.strip())) for part in parts)))


@dataclass(frozen=True, slots=True)
class RecordFields:
    """A record, by field; ``names`` are the columns (:func:`find_fields`).

    Raises:
        BadRecord: if it could not be read.
    """

    record: Record
    names: Mapping[str, str]

    def __post_init__(self) -> None:
        if self.record.problem:
            raise BadRecord("not a record", self.record.problem)

    def value(self, field: str) -> Any:
        return lookup(self.record.data, self.names[field]) if field in self.names else None

    def text(self, field: str) -> str:
        return text_of(self.value(field))

    def needed(self, field: str) -> str:
        """The text; a record without one is bad."""
        text = self.text(field)
        if not text.strip():
            raise BadRecord(f"{field} missing", "is missing or empty", field)
        return text


def draft(record: Record, number: int, names: Mapping[str, str], name: str, strip: bool, detect_pinned: bool) -> Draft:
    """Read one record's fields.

    Raises:
        BadRecord: if the question or its options cannot be used.
    """
    row, data = RecordFields(record, names), record.data
    if image := image_in(data):
        raise BadRecord("needs an image", f"comes with an image ({image}), and only its text could be asked")
    stem = _texts_of(data, names["question"])
    stem = _RELATIONS.get(stem.strip(), stem) if strip and "context" in names else stem
    padded, cut = False, names["options"] == names["question"]
    if not cut:
        options, labels, gold = options_in(data, names["options"])
        if options.count("N/A") > 1 and {*options[(n := options.index("N/A")) :]} == {"N/A"}:  # MMLU-Pro
            options, labels, padded = options[:n], labels[:n], True
    elif written := split_options(stem):
        (stem, options), labels, gold = written, (), None
    else:
        raise BadRecord("options missing", "its text does not end with options A., B., C., ...", "options")
    if not MIN_OPTIONS <= len(options) <= MAX_OPTIONS:
        kind = "fewer than 2 options" if len(options) < MIN_OPTIONS else f"more than {MAX_OPTIONS} options"
        hint = "; open questions are loaded with load_math" if not options and data.get("answer_text") else ""
        raise BadRecord(kind, f"{len(options)} given, {MIN_OPTIONS} to {MAX_OPTIONS} are allowed{hint}", "options")
    labels = labels or _labels(row.value("labels"), len(options)) or names_on(options)
    texts = strip_numbering(options) if strip else options
    if strip and not cut and (rest := without_options(stem, texts)) is not None:
        stem, cut = rest, True  # there, they would keep their order and letters
    if not stem.strip():
        raise BadRecord("empty question", "is missing or empty", "question")
    if gold in ([0], [1]) and len(options) == 2 and not is_missing(row.value("answer")):
        listed = lookup(data, names["options"])
        if "label" in (listed[0] if isinstance(listed, list | tuple) else listed):  # not marks, as the answer names one
            labels, gold = ("1", "0") if gold == [0] else ("0", "1"), None
    value = gold if gold is not None else row.value("answer")
    context = _texts_of(data, names["context"]) if "context" in names else ""
    pinned = pinned_in(row.value("pinned"), len(options))
    if pinned is None:
        pinned = find_pinned(texts, f"{context}\n{stem}") if detect_pinned else ()
    authors = data.get("authors") or ()  # a column of this name may hold anything
    named = isinstance(authors, list) and len(authors) == len(options) and all(isinstance(one, str) for one in authors)
    return Draft(
        record,
        RawAnswer(value, options, texts, labels, record.place, gold is not None, names["options"]),
        numbered=texts != options,
        cut=cut,
        padded=padded,
        fields={
            "id": row.text("id").strip() or f"{name}/{number}",
            "stem": stem,
            "options": texts,
            "context": context,
            "subject": row.text("subject"),
            "source": row.text("source") or name,
            "pinned": pinned,
            "authors": tuple(authors) if named else (),
        },
    )


def options_in(data: Mapping[str, Any], name: str) -> tuple[tuple[str, ...], tuple[str, ...], list[int] | None]:
    """Option texts, their labels (or none), and the right indices if they come with the options.

    Raises:
        BadRecord: if they are missing, or are not options.
    """
    value = lookup(data, name)
    if value is None and "," in name:
        cells = [lookup(data, part.strip()) for part in name.split(",")]
        while cells and is_missing(cells[-1]):  # questions with fewer options than the file has columns
            cells.pop()
        return _texts(cells), (), None
    if isinstance(value, str):
        lines = [line for line in _BREAK.sub("\n", value).splitlines() if line.strip()]
        written = lines if strip_numbering(lines) != tuple(lines) else parse_written(value)
        if written is None and "|" not in value:
            if (parts := split_options(value)) and not parts[0]:
                return parts[1], (), None
            reason = (
                f"is one text, {value[:60]!r}; write a list in JSON, texts with | between them, lines with A., B., C., "
                "or a column for each"
            )
            raise BadRecord("options not a list", reason, "options")
        value = value.split("|") if written is None else written
    if isinstance(value, Mapping):
        return _mapped(value, scored="score" in name or "target" in name)
    if not isinstance(value, list | tuple):
        raise BadRecord("options missing", "is missing; expected a list of options", "options")
    if value and all(isinstance(item, Mapping) for item in value):
        return _option_objects(value)
    return _texts(value), (), None


def _texts(values: Sequence[Any]) -> tuple[str, ...]:
    for position, value in enumerate(values, 1):
        if value is None or value != value:
            reason = f"option {position} is null or NaN; was it the text 'None' or 'NA' before a spreadsheet tool?"
            raise BadRecord("option is null", reason, "options")
        if isinstance(value, Mapping | list | tuple):
            raise BadRecord("option not a text", f"option {position} is {type(value).__name__}, not a text", "options")
    return tuple(str(value) for value in values)


def _flags(values: Any) -> list[int] | None:
    """Indices of the right ones in a list of 0/1 (or false/true, -1/1, 0/100); None if it is not such a list."""
    if not isinstance(values, list | tuple) or not values or any(not isinstance(one, int | float) for one in values):
        return None
    right = {value for value in values if value > 0}
    marks = right <= {1} or (len(right) == 1 and len({*values}) == 2)
    return [i for i, value in enumerate(values) if value in right] if marks else None


def _mapped(value: Mapping[str, Any], scored: bool) -> tuple[tuple[str, ...], tuple[str, ...], list[int] | None]:
    texts = next((value[key] for key in ("text", "choices", "texts") if isinstance(value.get(key), list | tuple)), None)
    if texts is not None:
        labels = next((value[key] for key in ("label", "labels") if isinstance(value.get(key), list | tuple)), ())
        options = _texts(texts)
        gold = _flags(labels)
        return options, () if gold is not None else _labels(labels, len(options)), gold
    gold = _flags(list(value.values()))
    labelled = not scored and (is_scheme(list(value)) or all(map(_FAMILY.fullmatch, value)))  # {"A": 1, "B": 0}
    if gold is not None and not labelled:
        return tuple(value), (), gold
    if not labelled and all(isinstance(one, int | float) for one in value.values()):
        scores = ", ".join(map(str, value.values()))
        raise BadRecord("options scored", f"scores options {scores[:60]}; give right ones 1 and others 0", "options")
    n = max((i for i, text in enumerate(value.values(), 1) if not is_missing(text)), default=0)  # as of columns
    by_label = {str(key): text for key, text in [*value.items()][:n] if text is not None}
    return _texts(list(by_label.values())), tuple(by_label), None


def _option_objects(values: Sequence[Any]) -> tuple[tuple[str, ...], tuple[str, ...], list[int] | None]:
    values = [{usual_name(str(key)): item for key, item in value.items()} for value in values]
    keys = [key for key in "text option content answer value name txt label".split() if key in values[0]]
    if not keys:
        raise BadRecord("option not a text", f"options have no text, only {', '.join(values[0])}", "options")
    # Not the letters in {"value": "A", "label": "blood"}.
    key = next((key for key in keys if not is_scheme([str(value.get(key)) for value in values])), keys[0])
    options = _texts([value.get(key) for value in values])
    for name in ("is_answer", "is_correct", "correct", "label", "points", "fraction"):
        marks = [SAID.get(str(value.get(name)).lower() * (name != "label"), value.get(name)) for value in values]
        # Some files mark only the right options.
        gold = _flags([False if mark is None and any(marks) else mark for mark in marks])
        if gold is not None:
            return options, (), gold
    names = [name for name in ("label", "key", "id", "letter", "value") if name in values[0] and name != key]
    labels = [value.get(names[0]) for value in values] if names else ()
    return options, _labels(labels, len(options)), None


def _labels(value: Any, n: int) -> tuple[str, ...]:
    of_all = isinstance(value, list | tuple) and len(value) == n
    return tuple(str(label).strip() for label in value) if of_all else ()

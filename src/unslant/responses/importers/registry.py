"""Find the importer of a file, by its content."""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from unslant.errors import InputError, first_line, load_row, with_plugins
from unslant.files import MAX_BYTES, decoded, files_within, parse_json, read_bytes
from unslant.questions.formats import all_readable, format_of, header_of, suffix_of, whole_records, wrong_json
from unslant.questions.question import Question
from unslant.questions.records import Record, object_records
from unslant.responses import Responses
from unslant.responses.importers.joining import joined
from unslant.responses.importers.logged import Log, understood

_MEMORY = "memory"


@dataclass(frozen=True)
class Head:
    """The beginning of a file, by which importers recognise their format.

    Attributes:
        names: columns of a table, keys of the first JSON object (of a file that is one object: its own), or members of
            a zip.
        first: that JSON object; empty for other files.
        fields: column or key of each field that the user named (``--fields``).
        kind: type of the file, see :func:`~unslant.questions.formats.format_of`; ``memory`` for a table in memory.
        records: the rows of a table in memory.
        skip_bad: leave out rows of a table of pages whose question cannot be read (``--skip-bad``), and count them.
        unpacked: the questions of tables of ours that were read before, by their packed form; those of this one are
            added.
    """

    path: Path
    names: frozenset[str]
    first: Mapping[str, Any]
    fields: Mapping[str, str] = field(default_factory=dict)
    kind: str = ""
    records: tuple[Record, ...] = ()
    skip_bad: bool = False
    unpacked: dict[bytes, tuple[Question, ...]] = field(default_factory=dict)

    @property
    def is_responses(self) -> bool:
        """Whether it is a table of responses that unslant wrote."""
        return {"question_id", "contents", "elicitation", "status"} <= self.names

    def rows(self, columns: Collection[str] = ()) -> Iterator[Record]:
        """The records; see :func:`~unslant.questions.formats.whole_records`."""
        return all_readable(self.records) if self.kind == _MEMORY else whole_records(self.path, columns)

    @classmethod
    def of_table(cls, table: Any, name: str) -> Head:
        """The head of a list of mappings, a data frame, an Arrow table or a data set."""
        records = tuple(object_records(table))
        return cls(Path(name), frozenset(records[0].data), records[0].data, kind=_MEMORY, records=records)

    @classmethod
    def of(cls, path: Path) -> Head:
        """The head of a file; InputError if it cannot be read at all."""
        content = read_bytes(path)
        if not content.strip(b"\xef\xbb\xbf \t\r\n"):
            raise InputError.at(path, "the file is empty")
        if suffix_of(path) not in (".xlsx", ".xlsm") and zipfile.is_zipfile(io.BytesIO(content)):
            return cls(path, _members(content, path), {})
        if (kind := format_of(path)) not in ("json", "jsonl"):
            return cls(path, frozenset(header_of(path)), {}, kind=kind)
        first_line_of_file = next((line for line in io.BytesIO(content) if line.strip(b"\xef\xbb\xbf \t\r\n")), b"")
        try:
            value = parse_json(decoded(first_line_of_file, path))
        except (ValueError, InputError):  # not JSON lines: the whole file may be one value
            try:
                value = parse_json(decoded(content, path))
            except ValueError as error:
                raise InputError.at(path, wrong_json(error), line=getattr(error, "lineno", None)) from None
        if value in ([], {}, None):
            raise InputError.at(path, "holds no records")
        first = value[0] if isinstance(value, list) else value
        first = first if isinstance(first, dict) else {}
        return cls(path, frozenset(first), first, kind=kind)


@dataclass(frozen=True)
class Importer:
    """One format.

    Attributes:
        what: display name.
        recognises: whether a file is of this format.
        read: the :class:`Log` s of a file (one for each model), or the table of responses that it is.
        instead: for a file of the same harness that holds no answers, which file to give; empty for other files.
    """

    what: str
    recognises: Callable[[Head], bool]
    read: Callable[[Head], list[Log] | Responses]
    instead: Callable[[Head], str] = lambda head: ""


def _members(content: bytes, path: Path) -> frozenset[str]:
    """Names in a zip; InputError if it is damaged, or unpacks to more than fits in memory."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(member.file_size for member in archive.infolist()) > MAX_BYTES:
                raise InputError.at(path, f"unpacks to more than {MAX_BYTES >> 20:,} MiB; log fewer samples a file")
            return frozenset(archive.namelist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise InputError.at(path, f"is not a readable zip: {first_line(error)}") from None


GROUP = "unslant.importers"
"""Entry points by which other packages add formats, with rows like ours."""
_HERE, _TABLE = "unslant.responses.importers", "table"
IMPORTERS: dict[str, str] = {
    "lm-eval": f"{_HERE}.lm_eval:IMPORTER",
    "inspect": f"{_HERE}.inspect_log:IMPORTER",
    "lighteval": f"{_HERE}.lighteval:IMPORTER",
    "opencompass": f"{_HERE}.opencompass:IMPORTER",
    "helm": f"{_HERE}.helm:IMPORTER",
    "every-eval": f"{_HERE}.every_eval:IMPORTER",
    "judgements": f"{_HERE}.judgments:IMPORTER",
    _TABLE: f"{_HERE}.tables:IMPORTER",
}
"""Name -> ``module:object`` of an :class:`Importer`. A new format is a file and a row."""


def importers(*, tables: bool = True) -> Iterator[Importer]:
    """Every format, in the order in which they are tried: ours, those of other packages, and last any table.

    Args:
        tables: include the format of tables.
    """
    rows = with_plugins(IMPORTERS, GROUP)
    names = [name for name in rows if tables or name != _TABLE]
    # Tables come last, since nearly any log would pass for a table of pages. Formats are imported one by one, so that a
    # package that cannot be imported does not keep the others from being read.
    for name in sorted(names, key=lambda name: (name == _TABLE, name not in IMPORTERS)):
        importer: Importer = load_row(rows[name], f"the log format {name}")
        yield importer


def read_log(head: Head) -> list[Log] | Responses:
    """The logs in a file, read by the first format that recognises it.

    Raises:
        InputError: if its format is unknown, or it cannot be used.
    """
    importer = next((one for one in importers() if one.recognises(head)), None)
    if importer is None:
        if instead := next(filter(None, (one.instead(head) for one in importers())), ""):
            raise InputError.at(head.path, f"holds the scores of a run and no answers: {instead}")
        formats, names = "; ".join(one.what for one in importers()), ", ".join(sorted(head.names)[:12])
        reason = f"is not in a known format; it has {names or 'no fields'}, and these are known: {formats} "
        reason += "(--fields NAME=COLUMN names columns)"
        raise InputError.at(head.path, reason)
    with understood(head.path, f"file of this format ({importer.what})"):
        return importer.read(head)


_LOG_SUFFIXES = (".jsonl", ".json", ".eval", ".parquet")


def log_files(path: Path) -> list[Path]:
    """The file, or the logs in a folder and its subfolders: files of all known formats except tables of your own.

    Where it holds none, those are the tables that unslant wrote there (``--out``).

    Raises:
        InputError: if a folder holds none, or a file in it cannot be read.
    """
    if not os.path.isdir(path):
        return [path]
    heads = [Head.of(file) for file in files_within(path) if suffix_of(file) in _LOG_SUFFIXES]
    logs = [head.path for head in heads if any(one.recognises(head) for one in importers(tables=False))]
    logs = logs or [head.path for head in heads if head.is_responses]
    if not logs:
        raise InputError.at(path, "is a folder without a log of a known format; give a table of your own by its file")
    return logs


def load_logs(logs: Sequence[Any], fields: Mapping[str, str] | None = None, skip_bad: bool = False) -> list[Responses]:
    """Tables of responses from logs of any known format, one for each model, in the order of the files.

    A table that unslant wrote is taken as it is. Other files of one model are joined: the same questions in several
    orders make an order set. Scores of labels, scores of option texts and replies are tables of their own.

    Args:
        logs: files, folders with logs (:func:`log_files`), or tables in memory (:meth:`Head.of_table`).
        fields: field -> column or key, for the generic table.
        skip_bad: leave out, and count, rows of such a table whose question cannot be read.

    Raises:
        InputError: if a file's format is unknown, or it cannot be used.
    """
    tables: list[Responses] = []
    by_model: dict[tuple[str, ...], list[tuple[Log, str]]] = {}
    unpacked: dict[bytes, tuple[Question, ...]] = {}  # a board has a table for each model
    for head in (head for k, log in enumerate(logs, 1) for head in _heads(log, f"log {k}" if len(logs) > 1 else "log")):
        if isinstance(head, Responses):
            tables.append(head)
            continue
        content = read_log(replace(head, fields=fields or {}, skip_bad=skip_bad, unpacked=unpacked))
        if isinstance(content, Responses):
            tables.append(content)
            continue
        about = {}
        if head.kind != _MEMORY:
            about = {"file": head.path.name, "sha256": hashlib.sha256(read_bytes(head.path)).hexdigest()[:16]}
        for log in content:
            whole = replace(log, about={**log.about, **about})
            by_model.setdefault((log.study, log.model, log.scores), []).append((whole, log.task or head.path.stem))
    groups = (zip(*group, strict=True) for group in by_model.values())
    return [*tables, *(joined(of_model, ", ".join(dict.fromkeys(names))) for of_model, names in groups)]


def _heads(log: Any, name: str) -> Iterator[Head | Responses]:
    """The heads of the files that a log names, or of a table in memory, under this name; responses as they are."""
    if isinstance(log, str | Path):
        yield from map(Head.of, log_files(Path(log)))
    else:
        yield log if isinstance(log, Responses) else Head.of_table(log, name)

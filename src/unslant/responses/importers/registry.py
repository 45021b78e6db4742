"""Which importer reads a file, known by its content."""

from __future__ import annotations

import csv
import hashlib
import io
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from unslant.errors import InputError, first_line
from unslant.extras import load_row, with_plugins
from unslant.files import MAX_BYTES, decoded, files_within, is_folder, parse_json, read_bytes, read_parquet
from unslant.questions.formats import format_of
from unslant.responses.importers.joining import joined
from unslant.responses.importers.logged import Log, understood
from unslant.responses.table import Responses


@dataclass(frozen=True)
class Head:
    """By what a format is known.

    Attributes:
        names: columns of a table, keys of the first JSON object (of a file that is one object: its own), or members of
            a zip.
        first: that JSON object; empty for others.
        fields: names that the user gave for columns or keys, by field.
    """

    path: Path
    names: frozenset[str]
    first: Mapping[str, Any]
    fields: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, path: Path) -> Head:
        """Raises InputError if it cannot be read at all."""
        content = read_bytes(path)
        if zipfile.is_zipfile(io.BytesIO(content)):
            return cls(path, _members(content, path), {})
        kind = format_of(path)
        if kind == "parquet":
            return cls(path, frozenset(read_parquet(path).column_names), {})
        if kind in ("csv", "tsv"):
            lines = io.TextIOWrapper(io.BytesIO(content), "utf-8-sig", newline="")
            rows = csv.reader((line for line in lines), delimiter="\t" if kind == "tsv" else ",")
            try:
                return cls(path, frozenset(next((row for row in rows if any(map(str.strip, row))), [])), {})
            except UnicodeDecodeError:
                decoded(content, path)
                raise
            except csv.Error as error:
                raise InputError.at(path, f"has no header that can be read: {error}") from None
        return cls.of_json(path, content)

    @classmethod
    def of_json(cls, path: Path, content: bytes) -> Head:
        """By the first line, if that is JSON; else by the whole."""
        first_one = next((line for line in io.BytesIO(content) if line.strip(b"\xef\xbb\xbf \t\r\n")), b"")
        try:
            found = parse_json(decoded(first_one, path))
        except (ValueError, InputError):
            try:
                found = parse_json(decoded(content, path))
            except ValueError as error:
                raise InputError.at(path, f"is not valid JSON: {error}") from None
        first = found[0] if isinstance(found, list) and found else found
        return cls(path, frozenset(first), first) if isinstance(first, dict) else cls(path, frozenset(), {})


@dataclass(frozen=True)
class Importer:
    """One format.

    Attributes:
        what: its name for people.
        recognises: whether a file is of this format.
        read: its :class:`Log` s (one for each model), or a table of responses as it is.
        instead: what to give in place of another file of the same harness that holds no answers; empty for others.
    """

    what: str
    recognises: Callable[[Head], bool]
    read: Callable[[Head], list[Log] | Responses]
    instead: Callable[[Head], str] = lambda head: ""


def _members(content: bytes, path: Path) -> frozenset[str]:
    """Names in a zip; InputError if it is damaged, or expands to more than fits in memory."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(member.file_size for member in archive.infolist()) > MAX_BYTES:
                raise InputError.at(path, f"unpacks to more than {MAX_BYTES >> 20:,} MiB; log fewer samples a file")
            return frozenset(archive.namelist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise InputError.at(path, f"is not a readable zip: {first_line(error)}") from None


GROUP = "unslant.importers"
"""Entry points by which other packages add formats; their rows are like ours."""
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

    Nearly any log would pass for a table of pages. Formats are imported one by one, so that a package that cannot be
    imported does not keep the others from being read.

    Args:
        tables: with the format of tables.
    """
    rows = with_plugins(IMPORTERS, GROUP)
    names = [name for name in rows if tables or name != _TABLE]
    for name in sorted(names, key=lambda name: (name == _TABLE, name not in IMPORTERS)):
        importer: Importer = load_row(rows[name], f"the log format {name}")
        yield importer


def read_log(head: Head) -> list[Log] | Responses:
    """What the first format that recognises a file reads in it.

    Raises:
        InputError: if it is of no known format, or cannot be used.
    """
    importer = next((one for one in importers() if one.recognises(head)), None)
    if importer is None:
        if instead := next(filter(None, (one.instead(head) for one in importers())), ""):
            raise InputError.at(head.path, f"holds the scores of a run and no answers: {instead}")
        known = "; ".join(one.what for one in importers())
        reason = f"is of no known format; known are {known} (--fields NAME=COLUMN names columns)"
        raise InputError.at(head.path, reason)
    with understood(head.path, f"file of this format ({importer.what})"):
        return importer.read(head)


_LOG_SUFFIXES = (".jsonl", ".json", ".eval", ".parquet")


def log_files(path: Path) -> list[Path]:
    """The file, or the logs in a folder and the folders within: files of all known formats but tables of your own.

    Raises:
        InputError: if a folder holds none, or a file in it cannot be read.
    """
    if not is_folder(path):
        return [path]
    inside = (one for one in files_within(path) if one.suffix in _LOG_SUFFIXES)
    found = []
    for one in inside:
        head = Head.of(one)
        if any(importer.recognises(head) for importer in importers(tables=False)):
            found.append(one)
    if not found:
        raise InputError.at(path, "is a folder without a log of a known format; give a table of your own by its file")
    return found


def load_logs(paths: Sequence[str | Path], fields: Mapping[str, str] | None = None) -> list[Responses]:
    """Tables of responses from logs of any known format, one for each model, in the order of the files.

    A table that unslant wrote is taken as it is. Other files of one model are joined: the same questions in several
    orders make an order set. Scores of labels, scores of option texts and replies are tables of their own.

    Args:
        paths: files, or folders with logs (:func:`log_files`).
        fields: field -> column or key, for the generic table.

    Raises:
        InputError: if a file is of no known format, or cannot be used.
    """
    own: list[Responses] = []
    logs: dict[tuple[str, ...], list[Log]] = {}
    names: dict[tuple[str, ...], list[str]] = {}
    for path in (file for given in paths for file in log_files(Path(given))):
        found = read_log(replace(Head.of(path), fields=fields or {}))
        if isinstance(found, Responses):
            own.append(found)
            continue
        digest = hashlib.sha256(read_bytes(path)).hexdigest()[:16]
        for log in found:
            key = log.study, log.model, log.scores
            logs.setdefault(key, []).append(replace(log, about={**log.about, "file": path.name, "sha256": digest}))
            names.setdefault(key, []).append(log.task or path.stem)
    return [*own, *(joined(found, ", ".join(dict.fromkeys(names[key]))) for key, found in logs.items())]

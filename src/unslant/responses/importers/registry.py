"""Which importer reads a file, told by its content."""

from __future__ import annotations

import csv
import hashlib
import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from unslant.errors import InputError, first_line
from unslant.files import MAX_BYTES, decoded, parse_json, read_bytes, read_parquet
from unslant.questions.formats import format_of
from unslant.responses.importers.joining import joined
from unslant.responses.importers.logged import Log, understood
from unslant.responses.table import Responses


@dataclass(frozen=True)
class Head:
    """What a file is told by.

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
                raise InputError.at(path, f"is no JSON: {error}") from None
        first = found[0] if isinstance(found, list) and found else found
        return cls(path, frozenset(first), first) if isinstance(first, dict) else cls(path, frozenset(), {})


@dataclass(frozen=True)
class Importer:
    """One format.

    Attributes:
        what: its name for people.
        module: has ``recognises(head)``, whether a file is of this format, and ``read(path, fields)``, its
            :class:`Log` s (one for each model), or a table of responses as it is.
    """

    what: str
    module: str

    def recognises(self, head: Head) -> bool:
        return bool(import_module(self.module).recognises(head))

    def read(self, path: Path, fields: Mapping[str, str]) -> list[Log] | Responses:
        with understood(path, f"file of this format ({self.what})"):
            found: list[Log] | Responses = import_module(self.module).read(path, fields)
        return found


def _members(content: bytes, path: Path) -> frozenset[str]:
    """Names in a zip; InputError if it is damaged, or stands for more than can be held."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(member.file_size for member in archive.infolist()) > MAX_BYTES:
                raise InputError.at(path, f"unpacks to more than {MAX_BYTES >> 20:,} MiB; log fewer samples a file")
            return frozenset(archive.namelist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise InputError.at(path, f"is no zip that can be read: {first_line(error)}") from None


_HERE = "unslant.responses.importers"
IMPORTERS: dict[str, Importer] = {
    "unslant": Importer("a table that unslant wrote", f"{_HERE}.own_table"),
    "lm-eval": Importer(
        "samples_*.jsonl of lm-eval (--log_samples), also of the Open LLM Leaderboard", f"{_HERE}.lm_eval"
    ),
    "inspect": Importer("a log of inspect (.eval or .json)", f"{_HERE}.inspect_log"),
    "lighteval": Importer(
        "details_*.parquet of lighteval, also of the first Open LLM Leaderboard", f"{_HERE}.lighteval"
    ),
    "opencompass": Importer("predictions of OpenCompass", f"{_HERE}.opencompass"),
    "helm": Importer("scenario_state.json of HELM", f"{_HERE}.helm"),
    "label-scores": Importer(
        "published label scores: columns lp_A, lp_B, ..., or label and logprob", f"{_HERE}.label_scores"
    ),
    "generic": Importer("a row per page: id, answer, labels, order, logprobs or chosen or reply", f"{_HERE}.generic"),
}
"""Name -> format, tried in turn. A new one is a file and a row."""


def load_logs(paths: Sequence[str | Path], fields: Mapping[str, str] | None = None) -> list[Responses]:
    """Tables of responses from logs of any known format, one for each model, in the order of the files.

    A table that unslant wrote is taken as it is. Other files of one model are joined: the same questions in several
    orders make an order set. Scores of labels, scores of option texts and replies are tables of their own.

    Args:
        fields: field -> column or key, for the generic table.

    Raises:
        InputError: if a file is of no known format, or cannot be used.
    """
    own: list[Responses] = []
    logs: dict[tuple[str, str], list[Log]] = {}
    names: dict[tuple[str, str], list[str]] = {}
    for path in map(Path, paths):
        head = replace(Head.of(path), fields=fields or {})
        importer = next((one for one in IMPORTERS.values() if one.recognises(head)), None)
        if importer is None:
            known = "; ".join(one.what for one in IMPORTERS.values())
            raise InputError.at(path, f"is of no known format; known are {known} (--field NAME=COLUMN names columns)")
        found = importer.read(path, fields or {})
        if isinstance(found, Responses):
            own.append(found)
            continue
        digest = hashlib.sha256(read_bytes(path)).hexdigest()[:16]
        for log in found:
            key = log.model, log.scores
            logs.setdefault(key, []).append(replace(log, about={**log.about, "file": path.name, "sha256": digest}))
            names.setdefault(key, []).append(log.task or path.stem)
    return [*own, *(joined(found, ", ".join(dict.fromkeys(names[key]))) for key, found in logs.items())]

"""Recorded replies in a file, a line each, and what the patterns read in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field

from unslant.checked import TableRow, checked
from unslant.errors import InputError
from unslant.presentations.labels import ALPHABETS, labels_for
from unslant.questions.formats import whole_records
from unslant.replies.choice import extract_labels
from unslant.replies.reading import VERDICTS, Extracted
from unslant.replies.verdict import extract_verdict


def _distinct(labels: tuple[str, ...]) -> tuple[str, ...]:
    if not all(labels) or len(set(labels)) < len(labels):
        raise ValueError("empty or repeated")
    return labels


class _Line(TableRow):
    model_config = ConfigDict(extra="ignore")

    id: str
    question: str = Field("", description="a text")
    options: tuple[str, ...] = Field((), description="a list of texts")
    labels: Annotated[tuple[str, ...], AfterValidator(_distinct)] = Field((), description="a list of different texts")
    kind: Literal["choice", "judging"] = Field("choice", description="choice or judging")
    reply: str | None = Field(description="a text, or null where none came")


@dataclass(frozen=True, slots=True)
class RecordedReply:
    """One line of the file.

    Attributes:
        data: the line as it stands.
        reply: the reply; None where none came.
        labels: every label that is an answer, as shown; the verdicts for judging.
        read: what the patterns read; of status ``error`` where no reply came.
    """

    data: dict[str, Any]
    reply: str | None
    labels: tuple[str, ...]
    read: Extracted


def read_replies(path: str | Path) -> Iterator[RecordedReply]:
    """Read the answers in recorded replies.

    Args:
        path: JSON lines (or any table that question files may be). A line has ``id``, ``reply``, ``question``,
            ``options``, ``labels`` (A, B, ... by default; ``labels_shown`` goes before it) and ``kind``, ``choice`` (by
            default) or ``judging``; other fields are left alone.

    Raises:
        InputError: naming file, line and field.
    """
    for record in whole_records(Path(path)):
        data, name = dict(record.data), "labels_shown" if "labels_shown" in record.data else "labels"
        line = checked(_Line, {**data, "labels": data.get(name, ())}, record.place)
        labels = line.labels or (VERDICTS if line.kind == "judging" else labels_for(ALPHABETS["A"], len(line.options)))
        if line.kind == "judging" and set(labels) != set(VERDICTS):
            raise InputError.at(record.place, f"judging replies answer with {', '.join(VERDICTS)}", field=name)
        if not labels:
            raise InputError.at(record.place, "is empty; give the options, or the labels", field="options")
        if len(labels) < len(line.options):
            reason = f"holds {len(labels)} for {len(line.options)} options; give one for each"
            raise InputError.at(record.place, reason, field=name)
        if line.reply is None:
            read = Extracted("error", rule="no reply")
        elif line.kind == "judging":
            labels, read = VERDICTS, extract_verdict(line.reply)
        else:
            read = extract_labels(line.reply, labels, line.options)
        yield RecordedReply(data, line.reply, labels, read)

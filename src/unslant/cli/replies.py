"""``unslant replies``: read the answers out of replies that were recorded elsewhere."""

from __future__ import annotations

import gzip
import json as jsons
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

from cyclopts import Parameter

import unslant.experiment as o
from unslant.errors import MostlyFailedError
from unslant.flags import check_unused
from unslant.reach import Reach

if TYPE_CHECKING:
    from unslant.experiment.reply_judge import ReplyJudge
    from unslant.replies import Extracted, RecordedReply


def replies(
    file: Annotated[Path, Parameter(help="Recorded replies, JSON lines (also .gz).")],
    /,
    *,
    out: Annotated[Path, Parameter(help="File to write, JSON lines (.gz: compressed).")],
    judge: Annotated[
        str | None, Parameter(help="Model that reads the replies in which no answer was found."), Reach.MODEL
    ] = None,
    json: Annotated[Path | None, Parameter(help="Write all numbers, with N and interval, to a file.")] = None,
    quiet: o.Quiet = False,
    models: o.ChatModels = o.ModelOptions(),
    store: o.Stores = o.StoreOptions(),
) -> None:
    """Read answers out of recorded replies.

    Each line of FILE has id, reply and the question asked: question, options, labels (default A, B, ...; or
    labels_shown), kind (choice or judging) and finish_reason (length: the reply was cut; content_filter: it was
    withheld). Each line of OUT adds status, read (the labels answered; empty if the reply says that no option is
    right), rule (how it was read) and readings (the answers an unread reply could mean; for a conflict, by label and by
    text). Model options apply to the judge, whose replies are stored.

    Examples:
      unslant replies replies.jsonl --out read.jsonl
      unslant replies replies.jsonl --out read.jsonl --judge inspect:openai/gpt-4o-mini --json counts.json
    """
    from functools import partial

    from unslant.experiment.job import requests_of
    from unslant.experiment.outputs import STDOUT, check_file, write_json
    from unslant.experiment.page_parts import mostly_failed
    from unslant.experiment.reply_judge import CERTAIN, ReplyJudge
    from unslant.experiment.running import recording
    from unslant.models.open import address_of, open_chat
    from unslant.replies import read_replies
    from unslant.replies.judge import needs_judge
    from unslant.writing import write_all, write_atomically

    check_file(out, json if json != STDOUT else None)
    if judge:
        address_of(judge, models, ("generate",))
    else:
        check_unused("no model is asked without --judge", models, store, but=("no_store",))
    rows = list(read_replies(file))
    reader: ReplyJudge | None = None
    checks = []
    if judge:
        with recording(store, quiet) as record:
            model = record.loader(judge, partial(open_chat, judge, models, CERTAIN))()
            spent = {f"the judge {model.name}": (model, model.cost.copy())}
            reader = ReplyJudge(model, record.progress)
            unread = [i for i, row in enumerate(rows) if needs_judge(row.read)]
            answers = reader.read([(rows[i].reply or "", rows[i].labels, rows[i].options) for i in unread])
            checks.append(record.check_kept)
        for i, answer in zip(unread, answers, strict=True):
            rows[i] = replace(rows[i], read=answer or rows[i].read)
    readings = [row.read for row in rows]
    text = "".join(f"{jsons.dumps(_line(row), ensure_ascii=False)}\n" for row in rows).encode()
    for note in reader.notes if reader else ():
        print(note, file=sys.stderr)
    if not quiet:
        _show(readings, sys.stderr if json == STDOUT else sys.stdout)
    write_all(
        partial(write_atomically, out, gzip.compress(text, mtime=0) if out.suffix == ".gz" else text),
        *([partial(write_json, _numbers(readings, reader), json)] if json else ()),
        *checks,
    )
    if not quiet:
        print(f"written to {out}", file=sys.stderr if json == STDOUT else sys.stdout)
    if reader and (failure := mostly_failed(requests_of(spent))):
        raise MostlyFailedError(failure)


def _line(row: RecordedReply) -> dict[str, Any]:
    labels = [label for label in row.labels if label in row.read.labels]
    between = [sorted(reading, key=row.labels.index) for reading in row.read.readings]
    return {**row.data, "status": row.read.status, "read": labels, "rule": row.read.rule, "readings": between}


def _counts(readings: Sequence[Extracted]) -> list[tuple[str, str, int]]:
    """Status, rule and number of replies, by status, then the most frequent rule first."""
    from unslant.responses import REPLY_STATUSES

    rows = [(*key, n) for key, n in Counter((one.status, one.rule) for one in readings).items()]
    return sorted(rows, key=lambda row: (REPLY_STATUSES.index(row[0]), -row[2], row[1]))


def _numbers(readings: Sequence[Extracted], judge: ReplyJudge | None) -> dict[str, Any]:
    """The summary for JSON: shares of all replies, with their intervals."""
    import numpy as np

    import unslant
    from unslant.metrics import Bootstrap
    from unslant.responses import REPLY_STATUSES

    counts, n = Counter(one.status for one in readings), len(readings)
    statuses, bootstrap = {}, Bootstrap(n)
    for status in REPLY_STATUSES:
        share = bootstrap.mean(np.array([float(one.status == status) for one in readings]))
        statuses[status] = {"count": counts[status], "share": share.value, "low": share.low, "high": share.high, "n": n}
    return {
        "unslant": unslant.__version__,
        "n": n,
        "statuses": statuses,
        "rules": [{"status": status, "rule": rule, "count": count} for status, rule, count in _counts(readings)],
        "judge": judge
        and {
            "right": judge.report.right,
            "n": judge.report.n,
            "used": judge.report.passed,
            "without_reply": judge.failed,
        },
    }


def _show(readings: Sequence[Extracted], stream: TextIO) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("status", "rule", box=None, pad_edge=False)
    table.add_column("replies", justify="right")
    table.add_column("share", justify="right")
    for status, rule, n in _counts(readings):
        table.add_row(status, rule, f"{n:,}", f"{n / len(readings):.1%}")
    Console(file=stream, width=100).print(table)

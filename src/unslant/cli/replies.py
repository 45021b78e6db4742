"""``unslant replies``: read the answers out of replies that were recorded elsewhere."""

from __future__ import annotations

import gzip
import json as jsons
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from unslant.studies import options as o

if TYPE_CHECKING:
    from unslant.models.chat import ChatModel
    from unslant.responses import Extracted
    from unslant.responses.judge import JudgeCase, JudgeReport
    from unslant.responses.reply_lines import RecordedReply


def replies(
    file: Annotated[Path, Parameter(help="Recorded replies, JSON lines (also .gz).")],
    /,
    *,
    out: Annotated[Path, Parameter(help="File to write, JSON lines (.gz: compressed).")],
    judge: Annotated[
        str | None,
        Parameter(help="Model that reads replies without a recognized answer, such as inspect:PROVIDER/NAME."),
    ] = None,
    json: Annotated[Path | None, Parameter(help="Write every number, with N and interval, to this JSON file.")] = None,
    quiet: o.Quiet = False,
    models: o.Models = o.ModelOptions(),
) -> None:
    """Read the answers out of recorded replies.

    A line of FILE holds id, reply, and what was asked: question, options, labels (A, B, ... unless given; or
    labels_shown) and kind, choice or judging. The line of OUT adds status, read (the labels answered; empty where no
    option is said to be right) and rule (what it was read by). The options of the model are those of the judge.

    Examples:
      unslant replies replies.jsonl --out read.jsonl
      unslant replies replies.jsonl --out read.jsonl --judge inspect:openai/gpt-4o-mini --json counts.json
    """
    from unslant.errors import InputError
    from unslant.models.open import address_of, open_chat
    from unslant.models.options import GenerateOptions
    from unslant.responses.judge import MAX_TOKENS
    from unslant.responses.reply_lines import read_replies
    from unslant.studies.outputs import check_file

    written = [path for path in (out, json) if path]
    check_file(*written)
    places = [path.resolve() for path in (file, *written)]
    if len(set(places)) < len(places):
        raise InputError("FILE, --out and --json: give different files; none of them is written over another")
    if judge:
        address_of(judge, models, ("generate",))
    found = list(read_replies(file))
    report: JudgeReport | None = None
    failed = 0
    if judge:
        opened = open_chat(judge, models, GenerateOptions(temperature=0.0, max_tokens=MAX_TOKENS))
        report, failed = _ask_judge(opened, found)
    read = [one.read for one in found]
    text = "".join(f"{jsons.dumps(_line(one), ensure_ascii=False)}\n" for one in found).encode()
    out.write_bytes(gzip.compress(text, mtime=0) if out.suffix == ".gz" else text)
    if json:
        json.write_text(jsons.dumps(_numbers(read, report, failed), indent=2) + "\n", "utf-8")
    if report and not report.passed:
        print(f"judge {judge} is not used: it read {report.right} of {report.n} replies right", file=sys.stderr)
    if failed:
        print(f"the judge gave no reply to {failed:,} requests; these replies stay unparsed", file=sys.stderr)
    if not quiet:
        _show(read)
        print(f"written to {out}")


def _line(one: RecordedReply) -> dict[str, Any]:
    labels = [label for label in one.labels if label in one.read.labels]
    return {**one.data, "status": one.read.status, "read": labels, "rule": one.read.rule}


def _ask_judge(model: ChatModel, found: list[RecordedReply]) -> tuple[JudgeReport, int]:
    """Have the judge read what the patterns left open, in place; its validation, and how many requests failed."""
    from unslant.prompts import Message, Prompt
    from unslant.responses.judge import VALIDATION, judge_prompt, needs_judge, read_judgement, validate

    def said(cases: Sequence[JudgeCase | RecordedReply]) -> list[str | None]:
        texts = [judge_prompt(case.reply or "", case.labels) for case in cases]
        replies = {
            one.index: one.text for one in model.generate([Prompt("", (), (Message("user", text),)) for text in texts])
        }
        return [replies.get(i) for i in range(len(cases))]

    report = validate([text or "" for text in said(VALIDATION)])
    wanted = [i for i, one in enumerate(found) if needs_judge(one.read)] if report.passed else []
    judgements = said([found[i] for i in wanted]) if wanted else []
    for i, judgement in zip(wanted, judgements, strict=True):
        if judgement is not None:
            found[i] = replace(found[i], read=read_judgement(judgement, found[i].labels))
    return report, judgements.count(None)


def _counts(read: Sequence[Extracted]) -> list[tuple[str, str, int]]:
    """Status, rule and number of replies: the statuses in their order, the most frequent rule first."""
    from unslant.responses import REPLY_STATUSES

    found = Counter((one.status, one.rule) for one in read)
    return sorted(
        ((*key, n) for key, n in found.items()), key=lambda row: (REPLY_STATUSES.index(row[0]), -row[2], row[1])
    )


def _numbers(read: Sequence[Extracted], report: JudgeReport | None, failed: int) -> dict[str, Any]:
    """The summary for JSON; shares are of all replies, with a Wilson interval."""
    import unslant
    from unslant.metrics.estimate import wilson
    from unslant.responses import REPLY_STATUSES

    statuses = Counter(one.status for one in read)
    n = len(read)
    estimates = {status: wilson(statuses[status] / n, n) for status in REPLY_STATUSES}
    return {
        "unslant": unslant.__version__,
        "n": n,
        "statuses": {
            status: {"count": statuses[status], "share": one.value, "low": one.low, "high": one.high, "n": n}
            for status, one in estimates.items()
        },
        "rules": [{"status": status, "rule": rule, "count": count} for status, rule, count in _counts(read)],
        "judge": None
        if report is None
        else {"right": report.right, "n": report.n, "used": report.passed, "without_reply": failed},
    }


def _show(read: Sequence[Extracted]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("status", "rule", box=None, pad_edge=False)
    table.add_column("replies", justify="right")
    table.add_column("share", justify="right")
    for status, rule, n in _counts(read):
        table.add_row(status, rule, f"{n:,}", f"{n / len(read):.1%}")
    Console(width=100).print(table)

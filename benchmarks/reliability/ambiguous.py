"""Files that can be read in two ways: the reading is right, or refused, or the other one is named."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.reliability import Options, Row
from unslant.errors import InputError
from unslant.questions import load_questions

PER_CASE = 0.2
"""Attempts of each class for one of ``--cases``."""
POOLS: tuple[tuple[Any, ...], ...] = (
    ("p", "q", "r", "s", "t"),
    ("A", "B", "C", "D", "E"),
    ("0", "1", "2", "3", "4"),
    ("1", "2", "3", "4", "5"),
    ("red", "blue", "a", "1", "B) x"),
    (10, 20, 2, 3, 1),
    ("A) foo", "B) bar", "C) x", "D) y", "E) z"),
)
LABELS = ("ABCDE", "12345", "BADCE", "vwxyz")


def answers_misread(rng: random.Random) -> str:
    """Questions with answers in a random encoding; what is wrong, if they are read otherwise and nothing says so."""
    pool, encoding = rng.choice(POOLS), rng.choice(("index0", "index1", "letter", "text", "marked", "label"))
    as_numbers = rng.random() < 0.5
    # A file that names labels and has answers among them has said how it is to be read.
    labels = rng.choice(LABELS) if encoding == "label" else rng.choice(("", "", "vwxyz"))
    records, gold = [], []
    for i in range(rng.randint(1, rng.choice((3, 8, 40)))):
        n = rng.randint(2, 5)
        options, right = rng.sample(pool, n), rng.randrange(n)
        written: dict[str, Any] = {
            "index0": right, "index1": right + 1, "letter": "ABCDE"[right], "text": options[right],
            "marked": f"{'ABCDE'[right]}) {options[right]}", "label": labels[right : right + 1],
        }  # fmt: skip
        answer = written[encoding]
        if isinstance(answer, int) and not as_numbers:
            answer = str(answer)
        elif encoding == "label" and as_numbers and answer.isdigit():
            answer = int(answer)
        record = {"question": f"Which is {i}?", "options": options, "answer": answer}
        records.append(record | ({"labels": list(labels[:n])} if labels else {}))
        gold.append(str(options[right]))
    try:
        found = load_questions(records, strip_numbering=False)
    except InputError:
        return ""
    read = [{question.options[i] for i in question.answers} for question in found]
    if found.report.doubts or all(own in one for own, one in zip(gold, read, strict=True)):
        return ""
    return f"{encoding}: {json.dumps(records[:3])} read as {found.report.answers}"


def log_misread(rng: random.Random) -> str:
    """A table of pages of which one redundant column is changed; what is wrong, if that is read without a word."""
    from unslant.responses.importers import load_logs

    rows = []
    for q in range(rng.randint(1, 4)):
        n = rng.randint(2, 5)
        right = rng.randrange(n)
        for _ in range(rng.randint(2, 4)):
            order = rng.sample(range(n), n)
            scores = [round(-rng.uniform(0.1, 5), 3) for _ in range(n)]
            best = scores.index(max(scores))
            place = order.index(right)
            rows.append({"id": f"q{q}", "question": f"Which is {q}?", "options": [f"text {q} {i}" for i in order],
                         "order": order, "answer": "ABCDE"[place], "gold": place, "logprobs": scores,
                         "pred": "ABCDE"[best]})  # fmt: skip
    kind = rng.choice(("none", "order", "options", "answer", "gold", "pred", "question"))
    victim = rng.choice(rows[1:])
    n = len(victim["order"])
    turned = rng.randrange(1, n)
    first = next(row for row in rows if row["id"] == victim["id"])
    if first is victim:  # what nothing was said of before contradicts nothing
        return ""
    if kind in ("order", "options"):
        victim[kind] = victim[kind][turned:] + victim[kind][:turned]
    elif kind in ("answer", "pred"):
        victim[kind] = "ABCDE"[("ABCDE".index(victim[kind]) + turned) % n]
    elif kind == "gold":
        victim["gold"] = (victim["gold"] + turned) % n
    elif kind == "question":
        victim["question"] = "Which is another?"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.jsonl"
        path.write_text("\n".join(map(json.dumps, rows)))
        try:
            load_logs([path])
        except InputError as error:
            named = f"line {rows.index(victim) + 1}" in str(error)
            return f"{kind}: refused as {error}" if kind == "none" or not named else ""
    return "" if kind == "none" else f"{kind}: read, {json.dumps(victim)}"


def left_out_unsaid(rng: random.Random) -> str:
    """A file some of whose records are bad, read without them; what is wrong, if that is not counted by reason."""
    bad: dict[str, dict[str, Any]] = {
        "no answer": {"question": "Which?", "options": ["x", "y"]},
        "no options": {"question": "Which?", "answer": 0},
        "an answer that is none": {"question": "Which?", "options": ["x", "y"], "answer": "z"},
        "one option": {"question": "Which?", "options": ["x"], "answer": 0},
        "no text": {"options": ["x", "y"], "answer": 0},
    }
    good = [{"question": f"Which is {i}?", "options": ["x", "y", "z"], "answer": "xyz"[i % 3]} for i in range(20)]
    wrong = [dict(rng.choice(list(bad.values()))) for _ in range(rng.randrange(1, 15))]
    records = rng.sample([*good, *wrong], len(good) + len(wrong))
    try:
        load_questions(records)
        return f"read without a word: {json.dumps(records)}"
    except InputError:
        found = load_questions(records, skip_bad=True)
    said = f"{len(wrong)} of {len(records)} records left out ("
    first = found.report.caveats[0] if found.report.caveats else ""
    if said not in first or found.report.n_skipped != len(wrong) or sum(found.report.skipped.values()) != len(wrong):
        return f"{len(wrong)} of {len(records)} bad, and it says {first!r}"
    unnamed = [reason for reason, n in found.report.skipped.items() if f"{n} {reason}" not in first]
    return f"hidden: {unnamed}" if unnamed else ""


CLASSES: dict[str, Callable[[random.Random], str]] = {
    "answers of questions, in random encodings": answers_misread,
    "logs with a column that contradicts another": log_misread,
    "records left out": left_out_unsaid,
}


NOTES = {"records left out": "each counted by its reason, in the first caveat"}


def rows(options: Options) -> Iterator[Row]:
    """A row a class."""
    for name, attempt in CLASSES.items():
        if not options.wants("ambiguous", name):
            continue
        row = Row("ambiguous", name, note=NOTES.get(name, "right, refused, or the other reading named"))
        for i in range(max(1, int(options.cases * PER_CASE))):
            row.attempts += 1
            if wrong := attempt(random.Random(f"{options.seed}/{name}/{i}")):
                row.fail(f"{options.seed}/{name}/{i}: {wrong}")
        yield row

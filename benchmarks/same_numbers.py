"""Whether a change of the code changed a number: every command on the bundled models, before and after.

    python -m benchmarks.same_numbers write before    # on the old code: PYTHONPATH=old/src
    python -m benchmarks.same_numbers write after
    python -m benchmarks.same_numbers compare before after

``write`` runs each row of :data:`RUNS` in this process, without the store and on one core, and keeps the JSON it
writes; it takes a few minutes. ``compare`` prints each number that differs, keys that are gone or new, keys that only
changed their name (a key is taken for renamed where an old and a new one hold the same values in every file), and
texts that differ. It exits with 1 if a number differs or is gone.

Models are deterministic on one machine, so numbers should agree to rounding: write both folders on the same one.
"""

from __future__ import annotations

import argparse
import csv
import difflib
import hashlib
import json
import math
import os
import re
import shutil
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from unittest.mock import patch

RUNS: dict[str, str] = {
    "audit": "audit --limit 60 --responses {tables}/audit.parquet --json {json}",
    "audit-fair": "audit fair embedded --limit 40 --responses {tables}/fair.parquet --json {json}",
    "audit-last": "audit prefers-last embedded-skewed --limit 40 --orders cyclic --json {json}",
    "audit-memorised": "audit memorised embedded --limit 40 --orders reverse --json {json}",
    "audit-half-taught": "audit half-taught embedded --limit 30 --orders 4 --shots 2 --labels 1 --json {json}",
    "audit-given": "audit prefers-a --limit 60 --orders given --json {json}",
    "audit-all": "audit prefers-a {inputs}/three.jsonl --orders all --labels a --seed 3 --json {json}",
    "audit-until": "audit --until 0.1 --responses {tables}/until.parquet --json {json}",
    "audit-until-log": "audit --log {tables}/until.parquet --json {json}",
    "audit-log": "audit --log {tables}/audit.parquet --json {json}",
    "audit-logs": "audit --log {tables}/audit.parquet {tables}/fair.parquet --json {json}",
    "audit-table": "audit --log {inputs}/logged.jsonl --json {json}",
    "audit-baseline": "audit --log {tables}/audit.parquet --baseline {tables}/fair.parquet --json {json}",
    "audit-words": "audit words embedded --elicit generate --limit 8 --orders 3 --repeats 2 --repeat-sample 4 "
    "--responses {tables}/words.parquet --json {json}",
    "audit-words-adaptive": "audit words embedded --elicit generate --limit 8 --adaptive --calibrate 0.5 --json {json}",
    "audit-words-log": "audit --log {tables}/words.parquet --json {json}",
    "audit-decisions": "audit {decisions} embedded --limit 30 --orders cyclic --json {json}",
    "shard-1": "audit fair embedded --limit 30 --shard 1/2 --responses {tables}/s1.parquet",
    "shard-2": "audit fair embedded --limit 30 --shard 2/2 --responses {tables}/s2.parquet",
    "merge": "merge {tables}/merged.parquet {tables}/s1.parquet {tables}/s2.parquet --json {json}",
    "base-rate": "study base-rate prefers-a embedded --limit 40 --responses {tables}/rates.parquet --json {json}",
    "base-rate-log": "study base-rate --log {tables}/rates.parquet --json {json}",
    "unbiased": "study unbiased fair embedded --limit 30 --runs 2 --shots 0 --responses {tables}/u1.parquet "
    "--json {json}",
    "unbiased-memorised": "study unbiased memorised embedded --limit 30 --runs 2 --shots 0 "
    "--responses {tables}/u2.parquet --json {json}",
    "unbiased-compare": "study unbiased --log {tables}/u1.parquet {tables}/u2.parquet --json {json}",
    "contamination": "study contamination fair embedded --limit 24 --runs 1 --epochs 2 --shots 0 --json {json}",
    "contamination-against": "study contamination fair embedded --against memorised --limit 30 --runs 1 --shots 0 "
    "--json {json}",
    "instruction-boundary": "study instruction-boundary words embedded --limit 6 --settings all,disturbing "
    "--responses {tables}/boundary.parquet --json {json}",
    "instruction-boundary-log": "study instruction-boundary --log {tables}/boundary.parquet --json {json}",
    "probe": "study probe fair,prefers-a embedded --limit 12 --responses {tables}/probe.parquet --json {json}",
    "annotation-sheet": "study annotation-sheet embedded --items 30 --out {inputs}/sheet.csv",
    "annotation-agreement": "study annotation-agreement {inputs}/ann.csv {inputs}/bob.csv --json {json}",
    "debias-vote": "debias prefers-a embedded --limit 20 --method vote --out {jsonl}",
    "debias-pride": "debias prefers-a embedded --limit 20 --method pride:alpha=0.2 --out {jsonl}",
    "debias-gray-box": "debias prefers-a embedded --limit 20 --method gray-box --out {jsonl}",
    "debias-log": "debias --log {tables}/audit.parquet --method vote --out {jsonl}",
    "debias-words": "debias words embedded --elicit generate --limit 6 --method adaptive --out {jsonl}",
    "study-debias": "study debias prefers-a embedded --limit 30 --orders cyclic "
    "--methods vote,adaptive-fast,pride,gray-box,gray-box-calibrated,bnp,aoi,set-based --json {json}",
    "leaderboard": "leaderboard -m fair -m prefers-a --sets embedded --sets embedded-skewed --limit 24 --orders cyclic "
    "--json {json}",
    "questions-check": "questions check embedded --json {json}",
    "replies": "replies {inputs}/said.jsonl --out {jsonl} --json {json}",
}
"""Name -> the command.

``{inputs}`` are made by :func:`_prepare`, ``{tables}`` are for later commands, ``{decisions}`` is a decision endpoint.
"""
NOT_THE_NUMBERS = re.compile(
    r"(^|\.)(date|versions|platform|\w*seconds|identity|models\.\d+\.digest|command|"
    r"tokens_per_second|took|speed|fingerprint|revision|unslant)(\.|$)"
)
"""Keys of where, when and how a run was made: left out."""
TOLERANCE = 1e-9
"""Relative, and absolute near 0: what sums in another order may change."""


class _Decides(BaseHTTPRequestHandler):
    """A System One endpoint that likes some options, by a hash of their text, and the first."""

    def do_GET(self) -> None:
        self._send({"data": [{"id": "liking"}]})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        ((name, question),) = asked["questions"].items()
        pulls = {
            text: math.exp(int(hashlib.sha256(text.encode()).hexdigest()[:4], 16) / 2**15 + (place == 0))
            for place, text in enumerate(question["criteria"])
        }
        probabilities = {text: pull / sum(pulls.values()) for text, pull in pulls.items()}
        best = max(probabilities, key=lambda text: probabilities[text])
        answer = {"type": "choice", "choice": best, "confidence": probabilities[best], "probabilities": probabilities}
        usage = {"input_tokens": 80, "output_tokens": 0}
        self._send({"model": asked["model"], "answers": {name: answer}, "usage": usage})

    def _send(self, reply: dict[str, Any]) -> None:
        body = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def _endpoint() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Decides)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/systemone#liking"
    finally:
        server.shutdown()


def _prepare(folder: Path) -> None:
    """Files that commands read: a log of answers as a table, recorded replies."""
    pages = [
        {"id": f"q{i}", "labels": list("ABCD"), "answer": "ABCD"[i % 4], "chosen": "ABCD"[i % 4 if i % 3 else 0]}
        for i in range(40)
    ]
    three = [
        {"id": f"q{i}", "question": f"{i} + {i % 4}?", "options": [str(i + j) for j in range(3)], "answer": i % 3}
        for i in range(12)
    ]
    said = ("B", "The answer is C.", "I think it is 3, so D", "None of them", "I cannot say", "(A) is wrong; (B) right")
    asked = {"question": "What is 1 plus 1?", "options": ["1", "2", "4", "3"]}
    replies = [{"id": f"r{i}", "reply": text, **asked} for i, text in enumerate(said)]
    for name, records in (("logged", pages), ("three", three), ("said", replies)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))


def _fill_sheets(folder: Path) -> None:
    """Two people's verdicts on the sheet, in the column that it leaves empty."""
    with (folder / "sheet.csv").open(newline="", encoding="utf-8-sig") as source:
        reader = csv.DictReader(source)
        columns, rows = list(reader.fieldnames or ()), list(reader)
    blank = next(name for name in columns if all(not row[name] for row in rows))
    for person, every in (("ann", 7), ("bob", 5)):
        with (folder / f"{person}.csv").open("w", newline="") as out:
            writer = csv.DictWriter(out, columns)
            writer.writeheader()
            writer.writerows({**row, blank: "no" if i % every == 0 else "yes"} for i, row in enumerate(rows))


def write(folder: Path, only: list[str]) -> int:
    """Run every command, or those named; 1 if one of them failed."""
    from unslant.cli import main  # of the code that PYTHONPATH names; below, so that compare needs none

    inputs, tables = folder / "inputs", folder / "tables"
    for made in (inputs, tables):
        made.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(folder / "homes", ignore_errors=True)
    _prepare(inputs)
    failed: list[str] = []
    with _endpoint() as decisions:
        for name, command in RUNS.items():
            if only and name not in only:
                continue
            os.environ["UNSLANT_HOME"] = str((folder / "homes" / name).resolve())  # nothing stored by another command
            if name == "annotation-agreement":
                _fill_sheets(inputs)
            places = {"json": folder / f"{name}.json", "jsonl": folder / f"{name}.jsonl"}
            words = [
                word.format(inputs=inputs, tables=tables, decisions=decisions, **places) for word in command.split()
            ]
            began = time.monotonic()
            with patch("sys.argv", ["unslant", *words, "--quiet"]):
                try:
                    main()
                    code = 0
                except SystemExit as stopped:
                    code = stopped.code if isinstance(stopped.code, int) else int(bool(stopped.code))
            print(
                f"{name}: {'done' if not code else f'exit code {code}'} in {time.monotonic() - began:.1f} s", flush=True
            )
            failed += [name] if code else []
    print(f"{len(failed)} failed: {', '.join(failed)}" if failed else "all done")
    return int(bool(failed))


def numbers(folder: Path) -> dict[str, dict[str, Any]]:
    """File -> key, with dots -> number or text."""
    made: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.glob("*.json*")):
        text = path.read_text("utf-8")
        data = json.loads(text) if path.suffix == ".json" else [json.loads(line) for line in text.splitlines()]
        leaves = dict(_leaves(data, ""))
        made[path.name] = {
            key: _neutral(value, folder) for key, value in leaves.items() if not NOT_THE_NUMBERS.search(key)
        }
    return made


def _leaves(data: Any, key: str) -> Iterator[tuple[str, Any]]:
    if isinstance(data, dict | list):
        pairs = data.items() if isinstance(data, dict) else enumerate(data)
        for name, value in pairs:
            yield from _leaves(value, f"{key}.{name}" if key else str(name))
    else:
        yield key, data


def _neutral(value: Any, folder: Path) -> Any:
    """A text without the folder and the port, which differ from run to run."""
    if not isinstance(value, str):
        return value
    return re.sub(r"127\.0\.0\.1:\d+", "HOST", value.replace(str(folder), "FOLDER"))


def same(a: Any, b: Any) -> bool:
    """Whether two values agree; numbers to :data:`TOLERANCE`."""
    if _is_number(a) and _is_number(b):
        return math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return bool(a == b)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def compare(before: Path, after: Path) -> int:
    """Print how two folders differ; 1 if a number changed or is gone."""
    old, new = numbers(before), numbers(after)
    gone_files, new_files = sorted(old.keys() - new.keys()), sorted(new.keys() - old.keys())
    shared = sorted(old.keys() & new.keys())
    differ: list[tuple[str, str, Any, Any]] = []
    texts: list[tuple[str, str, Any, Any]] = []
    compared = 0
    for file in shared:
        for key in old[file].keys() & new[file].keys():
            a, b = old[file][key], new[file][key]
            compared += 1
            if not same(a, b):
                is_text = isinstance(a, str) and isinstance(b, str)
                (texts if is_text else differ).append((file, key, a, b))
    renamed, gone, added = _renamed(*({file: side[file] for file in shared} for side in (old, new)))
    _show("files gone", gone_files)
    _show("files new", new_files)
    _show("numbers that differ", [f"{file} {key}: {a!r} -> {b!r}" for file, key, a, b in sorted(differ, key=str)])
    _show("keys renamed", [f"{a} -> {b} ({n} files)" for a, b, n in renamed])
    _show("keys gone", gone)
    _show("keys new", added)
    _show("texts that differ", [f"{file} {key}:\n    {a}\n    {b}" for file, key, a, b in sorted(texts, key=str)])
    kept = sum(len(old[file]) for file in shared)
    print(f"{len(shared)} files: {compared} of {kept} values compared, {len(differ)} differ, {len(texts)} texts differ")
    return int(bool(differ or gone or gone_files))


def _renamed(
    old: dict[str, dict[str, Any]], new: dict[str, dict[str, Any]]
) -> tuple[list[tuple[str, str, int]], list[str], list[str]]:
    """Renamed keys with the number of files, and the keys that are gone and new with an example."""
    gone, added = _only_in(old, new), _only_in(new, old)
    by_values = defaultdict(list)
    for key, values in added.items():
        by_values[_signature(values)].append(key)
    renamed = []
    for key in list(gone):
        candidates = by_values[_signature(gone[key])]
        if best := difflib.get_close_matches(key, candidates, 1, 0.0):
            renamed.append((key, best[0], len(gone.pop(key))))
            candidates.remove(best[0])
            added.pop(best[0])
    texts = [
        [f"{key} = {next(iter(v.values()))!r} ({len(v)} files)" for key, v in part.items()] for part in (gone, added)
    ]
    return renamed, texts[0], texts[1]


def _only_in(side: dict[str, dict[str, Any]], other: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Key -> file -> value, where the other side has no such key."""
    made: dict[str, dict[str, Any]] = defaultdict(dict)
    for file, values in side.items():
        for key in values.keys() - other[file].keys():
            made[key][file] = values[key]
    return dict(sorted(made.items()))


def _signature(values: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(sorted((file, f"{v:.9g}" if _is_number(v) else repr(v)) for file, v in values.items()))


def _show(title: str, lines: list[str]) -> None:
    if lines:
        print(f"{title} ({len(lines)}):", *(f"  {line}" for line in lines), sep="\n")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.same_numbers", description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    writes = actions.add_parser("write", help="run every command and keep its JSON")
    writes.add_argument("folder", type=Path)
    writes.add_argument("--only", nargs="*", default=[], choices=sorted(RUNS), metavar="NAME")
    compares = actions.add_parser("compare", help="print what differs between two folders")
    compares.add_argument("before", type=Path)
    compares.add_argument("after", type=Path)
    given = parser.parse_args()
    return write(given.folder, given.only) if given.action == "write" else compare(given.before, given.after)


if __name__ == "__main__":
    sys.exit(main())

"""Damaged files for every reader: questions, responses, recorded scores, logs, templates, tables of people's scores."""

from __future__ import annotations

import gzip
import io
import os
import random
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.reliability import Options, Row
from benchmarks.reliability.fuzz import Reader, attack
from benchmarks.reliability.logs import LOGS
from benchmarks.reliability.others import OTHERS
from benchmarks.reliability.records import Records, records_file
from benchmarks.reliability.tables import TABLES
from tests.questions.test_bombs import ENTITIES, SHARED, row, workbook
from unslant.errors import UnslantError
from unslant.questions import load_judging, load_math, load_questions
from unslant.responses.importers import load_logs

QUESTIONS: tuple[Records, ...] = (
    [
        {"id": f"q{i}", "question": f"Which is {i}?", "answer": i % 2,
         "options": ["one", "two", "all of the above", "A and B"][: 2 + i % 3],
         "context": "Facts.", "subject": "arithmetic", "source": "made", "pinned": []}
        for i in range(6)
    ],
    [{"question": f"Q{i}?", "A": "red", "B": "blue", "C": "none", "answer": "AB"[i % 2]} for i in range(5)],
    [{"question": {"stem": f"Q{i}?"}, "id": i, "answerKey": "B",
      "choices": {"text": ["x", "y", "z"], "label": ["A", "B", "C"]}} for i in range(4)],
    [{"query": f"Q{i}?", "options": [{"text": "x", "isAnswer": 1}, {"text": "y", "isAnswer": 0}], "label": "x"}
     for i in range(4)],
    [{"idx": {"paragraph": i // 2, "question": 0, "answer": i}, "paragraph": "P", "question": "Q?", "answer": f"a{i}",
      "label": i % 2} for i in range(6)],
    [{"id": i, "paragraph": {"text": "P", "questions": [{"question": "Q?", "idx": 0, "answers": [
        {"text": "a", "isAnswer": True}, {"text": "b", "isAnswer": False}]}]}} for i in range(3)],
    [{"question": f"Q{i}?", "mc1_targets": {"right": 1, "wrong": 0, "other": 0}} for i in range(4)],
    [{"question": f"Q{i}?", "options": "['1. a', '2. b']", "answer": "option 2: b"} for i in range(4)],
    [{"prompt": f"Q{i}?", "response_a": "one", "response_b": "two", "winner": winner}
     for i, winner in enumerate(("a", "b", "tie"))],
)  # fmt: skip
MATHS: tuple[Records, ...] = (
    [{"question": f"{i} + 1?", "answer": f"It is so. #### {i + 1}", "subject": "sums"} for i in range(5)],
    [{"id": i, "problem": "1 + 1?", "solution": "...", "answer_text": "2"} for i in range(5)],
)
JUDGING: tuple[Records, ...] = (
    [{"id": i, "premises": ["All x.", "Some y."], "conclusion": "z.", "label": "True"} for i in range(5)],
    [{"question": "Based on the above, is the following statement true, false, or unknown? z", "context": "c",
      "choices": ["True", "False", "Unknown"], "answer": "A"} for i in range(5)],
)  # fmt: skip


def use_questions(path: Path) -> None:
    """Load a question file, as an error and with bad records skipped, and do with the questions what a run does."""
    from unslant.presentations import orders_for, parse_labels, present
    from unslant.prompts import Cloze, Writer, load_template

    for skip_bad in (True, False):
        found = load_questions(path, skip_bad=skip_bad, seed=1)
        _ = found.digest, found.report.lines()
        elicitation = Cloze(Writer(load_template("plain")))
        for question in found.questions[:3]:
            order = orders_for(question, "2", 0)[-1]
            for prompt in elicitation.prompts(present(question, order, parse_labels("A"))):
                tokenizer().encode(prompt.text)


@cache
def tokenizer() -> Any:
    """The reference models' tokenizer, which takes no text that is not Unicode."""
    from tokenizers import Tokenizer

    from unslant.reference import reference_path

    return Tokenizer.from_file(str(reference_path("fair") / "tokenizer.json"))


def use_loaded(load: Callable[..., Any]) -> Callable[[Path], None]:
    def use(path: Path) -> None:
        for skip_bad in (True, False):
            found = load(path, skip_bad=skip_bad)
            _ = found.digest, found.report.lines()

    return use


def _of_records(name: str, layouts: tuple[Records, ...], kind: str, use: Callable[[Path], object]) -> Reader:
    return Reader(name, lambda rng: records_file(rng, "damaged", layouts, kind), use)


def bomb(rng: random.Random) -> tuple[str, bytes]:
    """A small file that stands for far more than it holds: a workbook, a packed text, a log in a zip."""
    kind = rng.randrange(10)
    if kind > 7:
        content = rng.choice((b"{}\n", b"[{}]\n", b"1,2\n", b" ", b"[", b"\n"))
        name = f"bomb.{rng.choice(('jsonl', 'json', 'csv', 'tsv'))}.gz"
        return name, gzip.compress(content * rng.randrange(30_000_000, 100_000_000), 1)
    n = rng.randrange(300_000, 1_500_000)
    if kind == 7:
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for member in ("header.json", "samples/1_epoch_1.json", "summaries.json"):
                archive.writestr(member, rng.choice(('{"samples": [', " ", "[", '{"a":')) * n * rng.randrange(1, 20))
        return "bomb.eval", stream.getvalue()
    made: dict[str, Any] = (
        {"rows": row(10**9 + n, "x")},
        {"rows": "<row/>" * n},
        {"rows": "<row>" + "<c/>" * n + "</row>"},
        {"rows": "", "strings": "<si><t/></si>" * n},
        {"rows": SHARED, "strings": f"<si><t>{'a' * n}</t></si>"},
        {"rows": "<row/>" * (n // 4), "sheets": rng.randrange(200, 2000)},
        {"rows": row(2, "&j;"), "before": ENTITIES},
    )[kind]
    with tempfile.TemporaryDirectory() as folder:
        return "bomb.xlsx", workbook(Path(folder) / "bomb.xlsx", **made).read_bytes()


def use_bomb(path: Path) -> None:
    """Read it as questions, or as a log."""
    load_logs([path]) if path.suffix == ".eval" else load_questions(path)


_ALL = (
    Reader("bombs", bomb, use_bomb, share=0.01),
    *(
        _of_records(f"questions {k}", QUESTIONS, k, use_questions)
        for k in ("jsonl", "json", "csv", "tsv", "xlsx", "parquet")
    ),
    *(_of_records(f"maths {k}", MATHS, k, use_loaded(load_math)) for k in ("jsonl", "csv", "parquet")),
    *(_of_records(f"judging {k}", JUDGING, k, use_loaded(load_judging)) for k in ("jsonl", "csv", "parquet")),
    *TABLES,
    *OTHERS,
    *LOGS,
)
READERS = {reader.name: reader for reader in _ALL}


def odd_names(options: Options) -> Row:
    """Names that no file can have, and things that are no files, for every reader."""
    row = Row("readers", "names that are no files")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.mkfifo(folder / "pipe")
        (folder / "loop").symlink_to(folder / "loop")
        odd = ["x" * 300, "y" * 9000, "a\0b", "\udcff", "none/x", "/dev/zero", "/dev/full", "/proc/self/mem", "/", "."]
        odd += [str(folder / other) for other in ("pipe", "loop", "none")]
        for reader in READERS.values():
            for path in (f"{name}{suffix}" for name in odd for suffix in ("", ".jsonl", ".csv", ".parquet", ".toml")):
                row.attempts += 1
                try:
                    reader.read(Path(path))
                    row.fail(f"{reader.name}, {path[:80]!r}: read")
                except UnslantError as error:
                    if "\n" in str(error) or len(str(error)) > 20_000:
                        row.fail(f"{reader.name}, {path[:80]!r}: {str(error)[:80]!r}")
                except Exception as error:
                    row.fail(f"{reader.name}, {path[:80]!r}: {type(error).__name__} {str(error)[:80]!r}")
    return row


def rows(options: Options) -> Iterator[Row]:
    if options.wants("readers", "names that are no files"):
        yield odd_names(options)
    wanted = [reader for reader in READERS.values() if options.wants("readers", reader.name)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from pool.map(lambda reader: attack("readers", reader, options), wanted)

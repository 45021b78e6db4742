"""Files that broke a reader once: each is refused with its place, or read for what it is, in little time and memory."""

from __future__ import annotations

import gzip
import io
import itertools
import json
import os
import resource
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from unslant.errors import InputError
from unslant.questions import Question, load_questions
from unslant.questions.pinned import find_pinned

GOOD: dict[str, Any] = {"id": "q", "question": "Which?", "options": ["a", "b"], "answer": 0}


def lines(*records: dict[str, Any]) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("q.jsonl", lines(GOOD) + b"[" * 100_000, r"q.jsonl, line 2: not usable JSON: nested too deeply"),
        ("q.json", b"[" * 100_000, r"q.json: not usable JSON: nested too deeply"),
        ("q.jsonl", lines(GOOD) + b'{"a": %s}' % (b"[" * 50 + b"]" * 50), r"line 2: not usable: nested more than"),
        ("q.jsonl", b'{"answer": %s}' % (b"9" * 5000), r"line 1: not usable JSON: holds a number of more than 4300"),
        ("q.jsonl", b'{"answer": %s}' % (b"9" * 50), r"line 1: not usable: 'answer': holds a number of more than 40"),
        ("q.jsonl", lines(GOOD | {"context": "\ud800"}), r"line 1: not usable: 'context': not Unicode text: \\ud800"),
        ("q.jsonl", lines(GOOD | {"answer": "9" * 5000}), r'line 1, field "answer": '),
        ("q.jsonl", lines(GOOD | {"idx": {"paragraph": [], "question": {}}, "paragraph": "p", "label": 1}), "q"),
        ("q.json", json.dumps([GOOD, [GOOD]]).encode(), r"item 2: is a list"),
        ("q.csv", b"question,A,B,answer\nx,y,z,A\n\xff,y,z,A\n", r"line 3: not UTF-8 text"),
        ("q.jsonl", "\ufeff".encode("utf-16") + b"{}", r"line 1: UTF-16 text; save the file as UTF-8"),
        ("q.jsonl", b"\n \n\n", r"the file is empty"),
        ("q.jsonl.gz", gzip.compress(lines(GOOD), mtime=0)[:-9], r"not a whole gzip file"),
        ("q.jsonl.gz", gzip.compress(b"{}\n" * 30_000_000, mtime=0), r"unpacks to more than \d+ MiB"),
        ("q.parquet", b"PAR1" + b"\0" * 100 + b"PAR1", r"not a Parquet file that can be read"),
    ],
    ids=itertools.count(),  # not the contents
)  # fmt: skip
def test_what_cannot_be_read_is_refused_with_its_place(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        load_questions(path)
    assert str(path) in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < 2_000


LONG = ("A) " * 250_000, "(a) " * 200_000, "a and b, " * 80_000, "[" * 700_000, "[" + "-" * 700_000)


@pytest.mark.thorough
@pytest.mark.parametrize("text", LONG, ids=lambda text: text[:9])
@pytest.mark.parametrize("where", ["question", "options", "answer"])
def test_long_texts_take_no_more_than_their_length(tmp_path: Path, text: str, where: str) -> None:
    value = [text, text.replace("A", "B")] if where == "options" else text
    path = tmp_path / "q.jsonl"
    path.write_bytes(lines(GOOD | {where: value}, GOOD | {"id": "other"}))
    found = load_questions(path, skip_bad=True)
    assert {question.id for question in found} >= {"other"}


def test_an_option_of_many_thousand_characters_speaks_of_no_other() -> None:
    assert find_pinned(("a", "b", "both a and b" + ", so it is said" * 1000)) == ()


def parquet(columns: dict[str, Any]) -> bytes:
    stream = io.BytesIO()
    pq.write_table(pa.table(columns), stream)
    return stream.getvalue()


def test_cells_of_parquet_that_python_cannot_hold_are_named(tmp_path: Path) -> None:
    text = b"ok\xff\xfe"
    offsets = pa.array([0, 2, 4], pa.int32()).buffers()[1]
    bad = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(text)])
    far = pa.array([0, 2**31 - 1], pa.int32()).cast(pa.date32())
    asked = {"question": ["Which?", "Who?"], "options": [["a", "b"]] * 2, "answer": [0, 1]}
    for column, reason in ((bad, "can't decode byte 0xff"), (far, "must have magnitude")):
        path = tmp_path / "q.parquet"
        path.write_bytes(parquet(asked | {"context": column}))
        with pytest.raises(InputError, match=rf"q.parquet, row 2: cannot be read: .*{reason}"):
            load_questions(path)
        assert len(load_questions(path, skip_bad=True)) == 1
    path.write_bytes(parquet(asked | {"context": pa.array([1, 2], pa.int32()).cast(pa.date32())}))
    assert load_questions(path)[0].context == "1970-01-02"


@pytest.mark.thorough
def test_few_bytes_of_parquet_cannot_fill_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "q.parquet"
    one_row = pa.ListArray.from_arrays(pa.array([0, 30_000_000], pa.int32()), pa.repeat(1, 30_000_000))
    path.write_bytes(parquet({"question": one_row}))
    assert path.stat().st_size < 10_000
    with pytest.raises(InputError, match="holds more than 20,000,000 values"):
        load_questions(path)


@pytest.mark.parametrize("name", ["n" * 300 + ".jsonl", "a\0b.jsonl", "x/" * 5000 + ".jsonl", "\udcff.jsonl"])
def test_names_that_no_file_can_have(name: str) -> None:
    with pytest.raises(InputError) as caught:
        load_questions(name)
    str(caught.value).encode()
    assert len(str(caught.value)) < 20_000


def test_a_file_whose_name_is_no_text_is_read(tmp_path: Path) -> None:
    path = os.path.join(os.fsencode(tmp_path), b"\xff.jsonl")
    Path(os.fsdecode(path)).write_bytes(lines({k: v for k, v in GOOD.items() if k != "id"}))
    found = load_questions(Path(os.fsdecode(path)))
    assert found[0].id == r"\udcff/0"
    assert len(found.digest) == 64


@pytest.mark.parametrize("field", ["id", "stem", "context", "subject", "source"])
def test_questions_made_by_a_program_hold_text(field: str) -> None:
    with pytest.raises(ValueError, match=f"{field}: not Unicode text"):
        Question(**{"id": "q", "stem": "s", "options": ("a", "b"), "answers": frozenset(), field: "x\ud800"})
    with pytest.raises(ValueError, match="options: not Unicode text"):
        Question("q", "s", ("a", "\udfff"), frozenset())


def test_peak_of_this_file_is_bounded() -> None:
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 3 << 20  # kB

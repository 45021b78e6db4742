"""Logs in memory are read as the file of the same rows is, and nothing that is no log is taken for one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pandas as pd
import pyarrow as pa
import pytest

import unslant
from unslant.errors import InputError
from unslant.responses.importers import load_logs

ROWS: list[dict[str, Any]] = [
    {"id": f"q{i}", "question": f"Which is {i}?", "options": [f"a{i}", f"b{i}", f"c{i}"], "answer": "ABC"[i % 3],
     "logprobs": [-0.5, -1.0 - i, -2.0]} for i in range(6)
]  # fmt: skip


@pytest.mark.parametrize(
    "table",
    [
        *(list, tuple, pd.DataFrame, pa.Table.from_pylist, datasets.Dataset.from_list),
        lambda rows: [pd.DataFrame(rows)],
        lambda rows: {key: [row[key] for row in rows] for key in rows[0]},
        lambda rows: datasets.DatasetDict({"test": datasets.Dataset.from_list(rows)}),
    ],
)
def test_tables_in_memory_are_read_as_files_are(tmp_path: Path, table: Callable[[Any], Any]) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)))
    of_file, in_memory = unslant.audit(log=path), unslant.audit(log=table(ROWS))
    assert in_memory.headline == of_file.headline
    assert in_memory.responses.table.equals(of_file.responses.table)
    again = unslant.audit(log=in_memory.responses)
    assert again.headline == of_file.headline


def test_several_tables_and_the_functions_that_read_them() -> None:
    other = [{**row, "model": "another"} for row in ROWS]
    both = unslant.audit(log=[pd.DataFrame(ROWS), pd.DataFrame(other)])
    assert list(both.runs) == ["log 1", "another"]
    assert len(unslant.leaderboard(log=[pd.DataFrame(ROWS), pd.DataFrame(other)]).models) == 2
    assert len(unslant.debias(log=pd.DataFrame(ROWS), method="none").outcomes) == 6
    pair = {"question": "Which?", "response_A": "x", "response_B": "y", "decision": "A", "order": "AB"}
    assert unslant.study.judge(log=[pair, {**pair, "order": "BA"}]).run.study == "judge"


def test_samples_of_lm_eval_in_memory() -> None:
    """As ``lm_eval.simple_evaluate(..., log_samples=True)["samples"][task]``, which has tuples and numbers."""
    sample = {
        "doc_id": 0, "doc": {"question": "Which?", "choices": ["red", "blue"]}, "target": 1,
        "arguments": [("Which?", " red"), ("Which?", " blue")], "resps": [[(-1.5, False)], [(-0.5, True)]],
        "filtered_resps": [(-1.5, False), (-0.5, True)], "filter": "none", "metrics": ["acc"], "acc": 1.0,
    }  # fmt: skip
    (found,) = load_logs([[sample]])
    assert [(row.choice, sorted(row.answers)) for row in found.rows()] == [(1, [1])]
    assert found.run.logged.reported[0].parted == 0


@pytest.mark.parametrize(
    ("log", "message"),
    [
        ([], "log: holds no log"),
        (3, "log of type int: give files, a list of dicts, a pandas or polars DataFrame"),
        ([{"question": "Which?"}], 'log, field "answer": no column was found for it'),
        (pd.DataFrame([{**ROWS[0], "answer": "Z"}]), r'DataFrame, row 1, field "answer": \'Z\' is neither'),
    ],
)
def test_what_is_no_log_is_one_line(log: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        unslant.audit(log=log)
    with pytest.raises(InputError, match="base-rate reads files; tables in memory are for audit"):
        unslant.study.base_rate(log=pd.DataFrame(ROWS))


def test_rows_of_an_unfinished_opencompass_run_are_read_as_its_temporary_file_is(tmp_path: Path) -> None:
    prompt = "Question: which?\nA. x\nB. y\nAnswer:"
    rows = [{"idx": i, "prediction": "AB"[i % 2], "origin_prompt": prompt, "gold": "A"} for i in range(3)]
    path = tmp_path / "tmp_set.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    (of_file,), (in_memory,) = load_logs([path]), load_logs([rows])
    assert of_file.run.source == in_memory.run.source == "OpenCompass"
    chosen = [[row.chosen for row in one.rows()] for one in (of_file, in_memory)]
    assert chosen[0] == chosen[1] == [frozenset({i % 2}) for i in range(3)]

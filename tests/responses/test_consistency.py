"""Columns of a log that tell the same thing agree, or are refused with how each would be read."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.reliability.ambiguous import log_misread
from unslant import InputError
from unslant.errors import naming_flags
from unslant.questions.records import Record
from unslant.responses.importers import load_logs, registry

ORDERS = ([0, 1, 2], [2, 0, 1], [1, 2, 0])
TEXTS = ["x", "y", "z"]


def pages(**changed: Any) -> list[dict[str, Any]]:
    """A question in three orders; the right option is 1."""
    return [
        {"id": "q", "answer": "ABC"[order.index(1)], "order": order, "options": [TEXTS[i] for i in order],
         "logprobs": [-1.0, -0.5, -2.0]} | changed
        for order in ORDERS
    ]  # fmt: skip


def read(tmp_path: Path, rows: list[dict[str, Any]], **fields: str) -> Any:
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    with naming_flags():
        (found,) = load_logs([path], fields)
    return found


def orders(found: Any) -> list[list[int]]:
    return [list(contents) for contents in found.table["contents"].to_pylist()]


def test_order_with_the_same_options_in_every_row(tmp_path: Path) -> None:
    rows = pages(options=TEXTS)
    with pytest.raises(InputError) as error:
        read(tmp_path, rows)
    told = str(error.value)
    assert "log.jsonl, line 2: order 2, 0, 1 and options contradict those of" in told
    assert "option 2 of question 'q' would be 'x' here and 'z' there" in told
    assert "By order, these rows show the same options in another order; by options, they show one order" in told
    assert "--fields order=" in told
    assert "--fields options=" in told
    assert orders(read(tmp_path, rows, options="")) == [list(order) for order in ORDERS]
    assert orders(read(tmp_path, [row | {"answer": "B"} for row in rows], order="")) == [[0, 1, 2]] * 3


def test_an_order_that_its_options_follow_is_read(tmp_path: Path) -> None:
    assert orders(read(tmp_path, pages())) == [list(order) for order in ORDERS]


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"options": ["y", "x", "z"]}, "options contradict"),
        ({"order": [1, 0, 2]}, "contradict"),
        ({"answer": "A"}, "the right option of question 'q' is, by order, 0 here and 1 in"),
        ({"question": "What else?"}, "give each question an id of its own"),
        ({"gold": 0}, "--fields answer=answer or --fields answer=gold"),
        ({"chosen": "A"}, r"is A, but logprobs are highest for B.*--fields chosen="),
        ({"chosen": "B", "pred": "C"}, "--fields chosen=chosen or --fields chosen=pred"),
        ({"probs": [0.9, 0.05, 0.05]}, "contradict logprobs"),
        ({"choices": ["z", "y", "x"]}, "--fields options=options or --fields options=choices"),
    ],
)
def test_contradictions(tmp_path: Path, changed: dict[str, Any], reason: str) -> None:
    given = pages()
    same = given[0] | {"question": "What?"}
    with pytest.raises(InputError, match=reason) as error:
        read(tmp_path, [same, same | changed])
    assert "log.jsonl, line 2" in str(error.value)


@pytest.mark.parametrize(
    "more", [{"gold": 1}, {"chosen": "B", "pred": 1}, {"correct": 1}, {"choices": TEXTS}, {"label": "a word"}]
)
def test_columns_that_agree(tmp_path: Path, more: dict[str, Any]) -> None:
    assert len(read(tmp_path, [pages()[0] | more])) == 1


def test_one_order_in_a_row_that_holds_all(tmp_path: Path) -> None:
    row = {"id": "q", "answer": "A", "probs": [[0.6, 0.4], [0.3, 0.7]], "order": [1, 0]}
    with pytest.raises(InputError, match="holds every order"):
        read(tmp_path, [row])


def test_rows_that_come_twice_and_replies_that_are_not_read_are_said(tmp_path: Path) -> None:
    first = pages()[0]
    found = read(tmp_path, [first, first, first | {"logprobs": [-0.1, -3.0, -3.0], "reply": "The answer is C."}])
    told = " ".join(found.run.logged.notes)
    assert "of an earlier one: 2, 1 of them answered otherwise" in told
    assert "Rows whose reply names another option than the scores or choice that are read: 1." in told
    assert not read(tmp_path, [first | {"repeat": i} for i in range(3)]).run.logged.notes


def test_an_early_row_is_refused_before_the_others_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    whole = registry.whole_records

    def counted(*given: Any) -> Iterator[Record]:
        for record in whole(*given):
            seen.append(record.place)
            yield record

    monkeypatch.setattr(registry, "whole_records", counted)
    with pytest.raises(InputError, match="line 2"):
        read(tmp_path, pages(options=TEXTS) * 500)
    assert len(seen) == 2


def test_lm_eval_documents_that_share_an_id(tmp_path: Path) -> None:
    """What looks like an id of the document is not one where two documents have it."""
    rows = [
        {"doc_id": i, "doc": {"id": "same", "question": f"Which is {i}?", "choices": ["one", "two"]}, "target": "1",
         "arguments": {f"gen_args_{k}": {"arg_0": f"Which is {i}?", "arg_1": f" {t}"} for k, t in
                       enumerate(("one", "two"))}, "resps": [[["-1.5", "False"]], [["-0.5", "True"]]], "filter": "none"}
        for i in range(3)
    ]  # fmt: skip
    path = tmp_path / "samples_t.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    (found,) = load_logs([path])
    assert set(found.table["question_id"].to_pylist()) == {"0", "1", "2"}


def test_open_compass_prediction_and_perplexity(tmp_path: Path) -> None:
    row = {"origin_prompt": "Which?\nA. x\nB. y", "prediction": "A", "gold": "A",
           "label: A": {"PPL": 2.0}, "label: B": {"PPL": 1.0}}  # fmt: skip
    path = tmp_path / "set.json"
    path.write_text(json.dumps({"0": row}))
    with pytest.raises(InputError, match="prediction is 'A', but the least perplexity is that of 'B'"):
        load_logs([path])


def test_random_contradictions() -> None:
    wrong = [found for seed in range(150) if (found := log_misread(random.Random(seed)))]
    assert wrong == []

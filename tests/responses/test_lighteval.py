"""Details of lighteval: failed rows, several samples of a document, metrics of other names, labels that are numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from unslant.errors import InputError
from unslant.responses import Responses
from unslant.responses.importers import load_logs

TEXTS = ("red", "blue", "green")


def row(i: int, labels: tuple[str, ...] = ("A", "B", "C"), **answer: Any) -> dict[str, Any]:
    """As lighteval 0.13 writes them; ``answer`` has ``logprobs`` or ``text``, and the metrics."""
    listed = "".join(f"{label}. {text}\n" for label, text in zip(labels, TEXTS, strict=True))
    metric = answer.pop("metric", {"acc": 1})
    response = {"text": [], "logprobs": [], "output_tokens": [[7]] * len(answer.get("text") or ()), **answer}
    doc = {
        "query": f"Question: Which is {i}?\n{listed}Answer:", "choices": [f" {label}" for label in labels],
        "gold_index": 1, "id": str(i), "task_name": "colours|0", "generation_size": -1,
    }  # fmt: skip
    return {"doc": doc, "metric": metric, "model_response": response}


def read(tmp_path: Path, *rows: dict[str, Any]) -> Responses:
    path = tmp_path / "details_colours.parquet"
    pq.write_table(pa.Table.from_pylist(list(rows)), path)
    (found,) = load_logs([path])
    return found


def test_a_failed_row_is_a_failure_of_the_kind_of_the_others(tmp_path: Path) -> None:
    scored = read(tmp_path, row(0, logprobs=[-3.0, -1.0, -2.0]), row(1, metric={"acc": 0}))
    assert [(one.status, one.choice) for one in scored.rows()] == [("ok", 1), ("error", -1)]
    assert scored.run.logged.scores == "labels"
    in_words = read(tmp_path, row(0, metric={"acc": 0}), row(1, text=["B"]))
    assert [(one.status, one.choice) for one in in_words.rows()] == [("error", -1), ("ok", 1)]
    with pytest.raises(InputError, match="holds no answer: neither logprobs nor text in any row"):
        read(tmp_path, row(0), row(1))


def test_samples_of_a_document_are_repeats(tmp_path: Path) -> None:
    """As pass@k and avg@n ask for; the score is that of all of them."""
    metric = {"gpqa_pass@k:k=1&n=3": 2 / 3}
    found = read(tmp_path, row(0, text=["B", "A", "B"], metric=metric), row(1, text=["B"] * 3, metric={**metric}))
    assert [(one.question_id, one.repeat, one.choice) for one in found.rows()][:3] == [
        ("0", 0, 1), ("0", 1, 0), ("0", 2, 1)
    ]  # fmt: skip
    (reported,) = found.run.logged.reported
    assert (reported.metric, reported.n, reported.ours) == ("lighteval's gpqa_pass@k:k=1&n=3", 6, 5)
    assert reported.value == pytest.approx(2 / 3)


def test_labels_that_are_numbers_are_no_texts(tmp_path: Path) -> None:
    rows = [row(i, ("1", "2", "3"), logprobs=[-3.0, -1.0, -2.0]) for i in range(2)]
    found = read(tmp_path, *rows)
    assert found.run.logged.scores == "labels"
    assert [(one.labels, one.choice) for one in found.rows()] == [(("1", "2", "3"), 1)] * 2
    assert found.questions[0].options == TEXTS

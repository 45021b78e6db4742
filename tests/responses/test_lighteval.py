"""Details of lighteval: failed rows, several samples of a document, metrics of other names, labels that are numbers,
and the details of versions up to 0.10."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from unslant.errors import InputError
from unslant.responses import Responses
from unslant.responses.importers import load_logs
from unslant.responses.importers.lighteval import _model, _task

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


PROMPT = "Question: Which is {}?\nA. red\nB. blue\nC. green\nAnswer:"


def old_row(i: int, **fields: Any) -> dict[str, Any]:
    """As lighteval 0.4 to 0.7 wrote them: ``str`` of every value."""
    values = {"full_prompt": PROMPT.format(i), "example": PROMPT.format(i), "choices": [" A", " B", " C"],
              "gold_index": [1], "gold": [], "metrics": {"acc": 1}, "specifics": None} | fields  # fmt: skip
    return {key: str(value) for key, value in values.items()}


@pytest.mark.parametrize(
    "scores",
    [([-3.0, -1.0, -2.0], [-1.5, -2.0, -3.0]), ([(-3.0, False), (-1.0, True), (-2.0, False)], [(-1.0, True)] * 3)],
)
def test_details_whose_values_are_texts(tmp_path: Path, scores: tuple[list[Any], list[Any]]) -> None:
    right, wrong = (old_row(i, predictions=one, metrics={"acc": 1 - i}) for i, one in enumerate(scores))
    found = read(tmp_path, right, wrong)
    assert [(one.choice, sorted(one.answers)) for one in found.rows()] == [(1, [1]), (0, [1])]
    assert [one.logprobs[1] for one in found.rows() if one.logprobs is not None] == [-1.0, wrong_score(scores[1])]
    assert (found.run.logged.scores, found.run.logged.reported[0].parted) == ("labels", 0)
    assert [question.options for question in found.questions] == [TEXTS, TEXTS]


def wrong_score(scores: list[Any]) -> float:
    return float(scores[1][0] if isinstance(scores[1], tuple) else scores[1])


def test_generated_details_without_choices(tmp_path: Path) -> None:
    """They have the right texts only; options are those of the prompt, and samples are repeats."""
    answers = old_row(
        0, choices=[], gold_index=[], gold=[" B"], predictions=["B", "The answer is C."], metrics={"em": 1}
    )
    found = read(tmp_path, answers, old_row(1, choices=[], gold_index=[], gold=["blue"], predictions=[], metrics={}))
    assert [(one.repeat, one.status, one.choice, sorted(one.answers)) for one in found.rows()] == [
        (0, "ok", 1, [1]), (1, "ok", 2, [1]), (0, "error", -1, [1])
    ]  # fmt: skip
    with pytest.raises(InputError, match=r"row 1: .*'42' is not one of its 3 options"):
        read(tmp_path, old_row(0, choices=[], gold_index=[], gold=["42"], predictions=["42"]))
    with pytest.raises(InputError, match=r"row 1: .*predictions is neither a list nor an object: '\[cut, 0, 1\]'"):
        read(tmp_path, old_row(0) | {"predictions": "[cut, 0, 1]"})


def test_texts_of_numbers_that_are_not_finite(tmp_path: Path) -> None:
    one = old_row(0, predictions=[(float("-inf"), False), (-1.0, True), (-2.0, False)], metrics={"acc": float("nan")})
    found = read(tmp_path, one, old_row(1, predictions=[float("nan"), -1.0, -2.0]))
    assert [(row.status, row.choice) for row in found.rows()] == [("ok", 1), ("error", -1)]


@pytest.mark.parametrize(
    ("name", "task", "shots"),
    [
        ("leaderboard|arc:challenge|25", "arc:challenge", "25"),
        ("mmlu|5", "mmlu", "5"),
        ("lighteval|mmlu:law||None", "mmlu:law", ""),
        ("mmlu", "mmlu", ""),
        ("25", "25", ""),
    ],
)
def test_the_task_and_its_examples_are_in_one_name(name: str, task: str, shots: str) -> None:
    assert _task(name) == (task, shots)


@pytest.mark.parametrize(
    ("file", "model"),
    [
        ("out/details/org/name/2026-01-02T03-04-05.678/details_mmlu.parquet", "org/name"),
        ("details/other/details/org/name/f.parquet", "org/name"),
        ("out/details/f.parquet", "f"),
        ("details_org__name/2026-01-02T03-04-05.678/f.parquet", "org/name"),
        ("details_org__name/f.parquet", "org/name"),
        ("mine/f.parquet", "f"),
    ],
)
def test_the_model_is_in_the_folder(tmp_path: Path, file: str, model: str) -> None:
    assert _model(tmp_path / file) == model

"""Tasks of lm-eval: the published order against a real run of lm-eval, question by question, and the other orders."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("lm_eval", reason="needs the extra unslant[lm-eval]")

import datasets

from tests.command_line import unslant
from unslant.errors import InputError
from unslant.models.open import open_model
from unslant.plugins.lm_eval.documents import TaskSet, load
from unslant.plugins.lm_eval.settings import LmEvalSettings
from unslant.plugins.lm_eval.study import TaskRun, audit_tasks
from unslant.plugins.lm_eval.tasks import quiet
from unslant.questions import load_questions
from unslant.reference import reference_path
from unslant.studies.audit.logs import audit_logs

TASKS = Path(__file__).parent / "lm_eval_tasks"
SCORED = ("letters", "cloze", "mixed", "fewshot", "fields", "records", "processed", "contexts")
NAMES = [f"own_{name}" for name in SCORED]
MODEL = "prefers-a"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The working directory, with the data of the tasks."""
    made = tmp_path_factory.mktemp("lm-eval")
    questions = load_questions("embedded").questions
    four = [q for q in questions if len(q.options) == 4][:8]
    mixed = [next(q for q in questions[k:] if len(q.options) == n) for k in (0, 90) for n in (2, 3, 5, 6)]

    def write(name: str, rows: list[dict[str, Any]]) -> None:
        (made / name).write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")

    def plain(q: Any) -> dict[str, Any]:
        return {"id": q.id, "question": q.stem, "options": list(q.options), "answer": min(q.answers)}

    write("four.jsonl", [plain(q) for q in four])
    write("mixed.jsonl", [plain(q) for q in mixed])
    letters = [f"op{letter}" for letter in "abcd"]
    write(
        "fields.jsonl",
        [{"question": q.stem, **dict(zip(letters, q.options, strict=True)), "cop": 3 - min(q.answers)} for q in four],
    )
    write(
        "records.jsonl",
        [
            {
                "id": q.id,
                "question": q.stem,
                "choices": {"text": list(q.options), "label": list("1234" if i % 2 else "ABCD")},
                "answerKey": ("1234" if i % 2 else "ABCD")[min(q.answers)],
            }
            for i, q in enumerate(four)
        ],
    )
    write(
        "two.jsonl",
        [
            {"question": q.stem, "option1": q.options[0], "option2": q.options[1], "answer": i % 2, "ending": "it is."}
            for i, q in enumerate(four[:6])
        ],
    )
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", made / "cache")
    monkeypatch.chdir(made)
    yield made
    monkeypatch.undo()


@pytest.fixture(scope="module")
def theirs(folder: Path) -> dict[str, Any]:
    """A real run of lm-eval, as its command does it."""
    return _lm_eval(NAMES)


def _lm_eval(names: list[str], **options: Any) -> dict[str, Any]:
    import lm_eval
    from lm_eval.models.huggingface import HFLM
    from lm_eval.tasks import TaskManager

    with quiet():
        model = HFLM(pretrained=str(reference_path(MODEL)), device="cpu", dtype="float32", batch_size=8)
        manager = TaskManager(include_path=str(TASKS), include_defaults=False)
        found = lm_eval.simple_evaluate(
            model=model,
            tasks=names,
            task_manager=manager,
            bootstrap_iters=0,
            **({"fewshot_as_multiturn": False} | options),
        )
    assert found is not None
    return dict(found)


@pytest.fixture(scope="module")
def tasks(folder: Path) -> TaskSet:
    return load(NAMES, LmEvalSettings(include_path=TASKS))


@pytest.fixture(scope="module")
def ours(tasks: TaskSet) -> TaskRun:
    return TaskRun(open_model(MODEL), tasks, LmEvalSettings(include_path=TASKS))


def _same(own: dict[str, Any], other: dict[str, Any]) -> None:
    """One document: the same prompts and tokens, the same log-probabilities, the same metrics."""
    assert own["doc_id"] == other["doc_id"]
    assert own["prompt_hash"] == other["prompt_hash"]
    assert own["doc_hash"] == other["doc_hash"]
    assert own["target_hash"] == other["target_hash"]
    asked = [list(request.values()) for request in own["arguments"].values()]
    assert asked == [list(request) for request in other["arguments"]]
    values, expected = ([float(found[0][0]) for found in one["resps"]] for one in (own, other))
    np.testing.assert_allclose(values, expected, atol=1e-4)
    assert own["metrics"] == other["metrics"]
    for name in own["metrics"]:
        if not name.startswith("brier"):
            assert own[name] == other[name], name


@pytest.mark.parametrize("name", NAMES)
def test_the_published_order_is_lm_evals(name: str, ours: TaskRun, theirs: dict[str, Any]) -> None:
    samples = {one["doc_id"]: one for one in ours.samples() if one["task"] == name}
    assert len(samples) == len(theirs["samples"][name])
    for other in theirs["samples"][name]:
        _same(samples[other["doc_id"]], other)
    for metric, value in ours.published[name].metrics.items():
        assert value.value == pytest.approx(float(theirs["results"][name][f"{metric},none"]), abs=1e-5)


def test_rows_of_the_published_order_have_lm_evals_answers(ours: TaskRun, theirs: dict[str, Any]) -> None:
    """The table of responses, from which every number is computed, against lm-eval's ``acc``."""
    right = {}
    for row in ours.result.responses.rows():
        if row.contents == tuple(range(len(row.contents))) and row.kind in ("order", "given"):
            right[row.question_id] = row.chosen is not None and row.chosen <= row.answers
    for name in NAMES:
        by_number = {one.number: key for key, one in ours.found.by_id.items() if one.task.name == name}
        for sample in theirs["samples"][name]:
            assert right[by_number[sample["doc_id"]]] == bool(sample["acc"])


KINDS = {
    "letters": "labels", "cloze": "cloze", "mixed": "labels", "fewshot": "texts", "fields": "labels",
    "records": "labels", "processed": "labels", "contexts": "cloze",
}  # fmt: skip


@pytest.mark.parametrize("name", SCORED)
def test_what_is_scored_is_recognised(name: str, tasks: TaskSet) -> None:
    assert {one.kind for one in tasks.by_id.values() if one.task.name == f"own_{name}"} == {KINDS[name]}


@pytest.mark.parametrize("name", [name for name in SCORED if KINDS[name] != "cloze"])
def test_other_orders_are_what_the_task_makes_of_a_document_with_moved_options(name: str, tasks: TaskSet) -> None:
    of_task = [question for question in tasks.questions if tasks.by_id[question.id].task.name == f"own_{name}"]
    for question in of_task[: 2 if name == "processed" else 5]:
        document = tasks.by_id[question.id]
        n = len(question.options)
        shown = tasks.presentations(question, LmEvalSettings())
        assert len({one.contents for one in shown}) == len(shown) >= min(24, [1, 1, 2, 6][n] if n < 4 else 24)
        for presentation in shown:
            order = presentation.contents
            requests = document.requests(order)
            assert requests == document._rendered(order)
            labels = [choice.strip() for choice in document.choices]
            lines = requests[0][0].splitlines()[-n - 1 : -1]
            for place, option in enumerate(order):
                text = question.options[option]
                if KINDS[name] == "labels":
                    assert f"{labels[place]}. {text}".lower() in [line.lower() for line in lines]
                    assert requests[place][1].strip() == labels[place]
                else:
                    assert lines[place].endswith(f". {text}")
                    assert requests[place][1].strip() == text


def test_templates_that_change_texts_are_rendered_and_others_filled(tasks: TaskSet) -> None:
    frames = {one.task.name: one._frame for one in tasks.by_id.values() if one.movable}
    assert frames.pop("own_records") is None
    assert all(frames.values())


def test_worked_examples_stay_as_lm_eval_drew_them(tasks: TaskSet) -> None:
    for document in tasks.by_id.values():
        if document.task.name == "own_fewshot":
            given, moved = (document.requests(order)[0][0].split("\n\n") for order in ((0, 1, 2, 3), (3, 2, 1, 0)))
            assert len(given) == 5
            assert given[:4] == moved[:4]
            assert given[4] != moved[4]
            assert document.doc not in list(document.examples)


def test_mixed_labels_are_recorded_by_place(tasks: TaskSet) -> None:
    assert tasks.labels == ("A", "B", "C", "D", "E", "F")
    assert any("different labels" in note for note in tasks.notes)


def test_all_orders_cost_little_more_than_lm_evals_one(folder: Path) -> None:
    result = audit_tasks(MODEL, "own_fewshot", include_path=TASKS)
    about = result.meta["lm_eval"]
    assert about["orders"] == 24
    assert result.cost.tokens < 5 * about["tokens_published"]
    assert result.cost.tokens_plain >= 24 * about["tokens_published"]
    assert f"lm-eval computes {about['tokens_published']:,}" in result.summary(details=True)


def test_a_planted_preference_shows(ours: TaskRun) -> None:
    """``prefers-a`` answers the label A where it does not know."""
    result = audit_tasks(MODEL, "own_letters", include_path=TASKS)
    assert result.metrics.means.consistency.value < 1
    assert "takes A when unsure" in result.headline


@pytest.mark.slow
@pytest.mark.parametrize("multiturn", [True, False])
def test_chats_are_lm_evals(multiturn: bool, folder: Path) -> None:
    theirs = _lm_eval(["own_fewshot"], apply_chat_template=True, fewshot_as_multiturn=multiturn, num_fewshot=2)
    chosen = LmEvalSettings(
        include_path=TASKS, apply_chat_template=True, fewshot_as_multiturn=multiturn, num_fewshot=2, orders="given"
    )
    found = TaskRun(open_model(MODEL), load("own_fewshot", chosen), chosen)
    for own, other in zip(found.samples(), theirs["samples"]["own_fewshot"], strict=True):
        _same(own, other)


@pytest.mark.slow
def test_contexts_that_are_too_long_are_cut_as_lm_eval_cuts_them(folder: Path) -> None:
    options = {"limit": 3, "num_fewshot": 12, "system_instruction": "Choose well. " * 400}
    theirs = _lm_eval(["own_fewshot"], **options)
    chosen = LmEvalSettings(include_path=TASKS, orders="given", **options)
    found = TaskRun(open_model(MODEL), load("own_fewshot", chosen), chosen)
    for own, other in zip(found.samples(), theirs["samples"]["own_fewshot"], strict=True):
        _same(own, other)
    assert "cut on the left" in found.result.summary(details=True)


def test_a_task_without_options_in_a_field_is_refused(folder: Path) -> None:
    with pytest.raises(
        InputError, match=r"own_yes_no: no field .* looked at option1, option2 \(in the prompt, but not"
    ):
        load("own_yes_no", LmEvalSettings(include_path=TASKS))
    found = load("own_yes_no", LmEvalSettings(include_path=TASKS, orders="given"))
    assert any("6 of 6 documents in the published order only" in note for note in found.notes)


def test_the_samples_are_read_back_as_a_log(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "samples_own_letters.jsonl"
    report = tmp_path / "numbers.json"
    unslant("lm-eval", "own_letters", "--include-path", TASKS, "--samples", file, "--json", report, "--no-store", "-q")
    values = json.loads(report.read_text("utf-8"))
    logged = audit_logs(file)
    assert logged.metrics.means.accuracy.value == values["metrics"]["means"]["accuracy"]["value"]
    assert values["lm_eval"]["tasks"]["own_letters"]["metrics"]["acc"]["value"] == logged.metrics.means.accuracy.value
    first = json.loads(file.read_text("utf-8").splitlines()[0])
    context = first["arguments"]["gen_args_0"]["arg_0"]
    assert first["prompt_hash"] == hashlib.sha256(context.encode()).hexdigest()


def test_a_group_is_several_tasks(folder: Path) -> None:
    found = load("own_group", LmEvalSettings(include_path=TASKS, limit=2))
    assert [task.name for task in found.tasks] == ["own_letters", "own_mixed"]
    assert {question.subject for question in found.questions} == {"own_letters", "own_mixed"}
    assert len(found.questions) == 4

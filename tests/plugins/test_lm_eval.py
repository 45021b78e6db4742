"""Tasks of lm-eval: the published order against a real run of lm-eval, question by question, and the other orders."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("lm_eval", reason="needs the extra unslant[lm-eval]")

import datasets

from tests.command_line import unslant
from tests.first_screens import said
from unslant.auditing.comparison import audit_logs
from unslant.errors import InputError
from unslant.models.open import open_model
from unslant.plugins.lm_eval.documents import Document, TaskSet, load
from unslant.plugins.lm_eval.option_fields import LABELS, candidates, examine, markers
from unslant.plugins.lm_eval.study import TaskRun, audit_tasks
from unslant.plugins.lm_eval.tasks import LmEvalSettings, quiet
from unslant.questions import load_questions
from unslant.reference import reference_path

TASKS = Path(__file__).parent / "lm_eval_tasks"
MODEL = "prefers-a"
KINDS = {
    "letters": "labels", "cloze": "cloze", "mixed": "labels", "fewshot": "texts", "fields": "labels",
    "records": "labels", "processed": "labels", "contexts": "cloze",
}  # fmt: skip
"""Our own tasks, and what they score."""
LATER = ("records", "processed", "contexts")
"""Those whose comparison with lm-eval is slow."""


def _each(names: Iterable[str]) -> list[Any]:
    return [pytest.param(name, marks=[pytest.mark.slow] * (name in LATER)) for name in names]


def _of_four(count: int) -> list[Any]:
    return [q for q in load_questions("embedded").questions if len(q.options) == 4][:count]


def _write(file: Path, rows: list[dict[str, Any]]) -> None:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def _plain(q: Any) -> dict[str, Any]:
    return {"id": q.id, "question": q.stem, "options": list(q.options), "answer": min(q.answers)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The working directory, with the data of the tasks."""
    made = tmp_path_factory.mktemp("lm-eval")
    questions = load_questions("embedded").questions
    four = _of_four(8)
    mixed = [next(q for q in questions[k:] if len(q.options) == n) for k in (0, 90) for n in (2, 3, 5, 6)]
    _write(made / "four.jsonl", [_plain(q) for q in four])
    _write(made / "mixed.jsonl", [_plain(q) for q in mixed])
    letters = [f"op{letter}" for letter in "abcd"]
    _write(
        made / "fields.jsonl",
        [
            {"question": q.stem, "passage": f"Page {i // 2}.", "cop": 3 - min(q.answers)}
            | dict(zip(letters, q.options, strict=True))
            for i, q in enumerate(four)
        ],
    )
    _write(
        made / "records.jsonl",
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
    _write(
        made / "two.jsonl",
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


@dataclass(frozen=True)
class Both:
    """Several tasks run by unslant, and by lm-eval."""

    tasks: TaskSet
    ours: TaskRun
    theirs: dict[str, Any]

    def documents(self, name: str) -> dict[str, Document]:
        """Those of one task, by question id."""
        return {key: one for key, one in self.tasks.by_id.items() if one.task.name == f"own_{name}"}


@pytest.fixture(scope="module")
def both(folder: Path) -> Callable[[str], Both]:
    """The runs that a task is in."""

    @cache
    def run(later: bool) -> Both:
        names = [f"own_{name}" for name in KINDS if (name in LATER) is later]
        chosen = LmEvalSettings(include_path=TASKS)
        found = load(names, chosen)
        return Both(found, TaskRun(open_model(MODEL), found, chosen), _lm_eval(names))

    return lambda name: run(name in LATER)


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


@pytest.mark.parametrize("name", _each(KINDS))
@pytest.mark.thorough
def test_the_published_order_is_lm_evals(name: str, both: Callable[[str], Both]) -> None:
    ours, theirs, task = both(name).ours, both(name).theirs, f"own_{name}"
    samples = {one["doc_id"]: one for one in ours.samples() if one["task"] == task}
    assert len(samples) == len(theirs["samples"][task])
    for other in theirs["samples"][task]:
        _same(samples[other["doc_id"]], other)
    for metric, value in ours.published[task].metrics.items():
        assert value.value == pytest.approx(float(theirs["results"][task][f"{metric},none"]), abs=1e-5)


@pytest.mark.parametrize("name", _each(KINDS))
@pytest.mark.thorough
def test_rows_of_the_published_order_have_lm_evals_answers(name: str, both: Callable[[str], Both]) -> None:
    """The table of responses, from which every number is computed, against lm-eval's ``acc``."""
    runs = both(name)
    numbers = {key: one.number for key, one in runs.documents(name).items()}
    right = {
        numbers[row.question_id]: row.chosen is not None and row.chosen <= row.answers
        for row in runs.ours.result.responses.rows()
        if row.question_id in numbers and row.contents == tuple(range(len(row.contents)))
    }
    assert right == {one["doc_id"]: bool(one["acc"]) for one in runs.theirs["samples"][f"own_{name}"]}


@pytest.mark.thorough
@pytest.mark.parametrize("name", _each(KINDS))
def test_what_is_scored_is_recognised(name: str, both: Callable[[str], Both]) -> None:
    assert {one.kind for one in both(name).documents(name).values()} == {KINDS[name]}


@pytest.mark.parametrize("name", _each(name for name, kind in KINDS.items() if kind != "cloze"))
def test_other_orders_are_the_tasks_templates_with_moved_options(name: str, both: Callable[[str], Both]) -> None:
    tasks, documents = both(name).tasks, both(name).documents(name)
    for question in [one for one in tasks.questions if one.id in documents][:4]:
        document, n = documents[question.id], len(question.options)
        shown = tasks.presentations(question, LmEvalSettings())
        assert len({one.contents for one in shown}) == len(shown) >= {2: 2, 3: 6}.get(n, 24)
        for presentation in shown:
            order = presentation.contents
            requests = document.requests(order)
            assert requests == document._rendered(order)
            labels = [choice.strip() for choice in document.choices]
            lines = requests[0][0].lower().splitlines()[-n - 1 : -1]
            for place, option in enumerate(order):
                text = question.options[option]
                if KINDS[name] == "labels":
                    assert f"{labels[place]}. {text}".lower() in lines
                    assert requests[place][1].strip() == labels[place]
                else:
                    assert lines[place].endswith(f". {text.lower()}")
                    assert requests[place][1].strip() == text


def test_documents_on_one_passage_count_together(both: Callable[[str], Both]) -> None:
    tasks = both("fields").tasks
    places = {key for key, one in tasks.by_id.items() if one.task.name == "own_fields"}
    contexts = [one.context for one in tasks.questions if one.id in places]
    assert contexts == [f"Page {i // 2}." for i in range(8)]


@pytest.mark.parametrize("name", _each(["letters", "fields", "records"]))
def test_templates_that_change_texts_are_rendered_and_others_filled(name: str, both: Callable[[str], Both]) -> None:
    assert all((one._frame is None) is (name == "records") for one in both(name).documents(name).values())


def test_worked_examples_stay_as_lm_eval_drew_them(both: Callable[[str], Both]) -> None:
    for document in both("fewshot").documents("fewshot").values():
        given, moved = (document.requests(order)[0][0].split("\n\n") for order in ((0, 1, 2, 3), (3, 2, 1, 0)))
        assert len(given) == 5
        assert given[:4] == moved[:4]
        assert given[4] != moved[4]
        assert document.doc not in list(document.examples)


@pytest.mark.slow
def test_mixed_labels_are_recorded_by_place(both: Callable[[str], Both]) -> None:
    tasks = both("records").tasks
    assert tasks.labels == ("A", "B", "C", "D")
    assert any("different labels" in note for note in tasks.notes)


def test_all_orders_cost_little_more_than_lm_evals_one(folder: Path) -> None:
    result = audit_tasks(MODEL, "own_fewshot", include_path=TASKS)
    one = result.cost.tokens_ordinary
    assert result.run.lm_eval.orders == 24
    assert result.cost.tokens < 5 * one
    assert result.cost.tokens_plain >= 24 * one > 0
    assert f"({result.cost.ordinary_runs:.3g} ordinary runs: " in result.summary(details=True)


def test_little_probability_on_labels_names_an_option_of_this_command(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unslant.auditing.panels.LEAST_LABEL_MASS", 2.0)
    caveats = " ".join(audit_tasks(MODEL, "own_letters", include_path=TASKS, orders="given").page().caveats)
    assert "asked without apply_chat_template=True, labels or a template it does not expect, or" in caveats


def test_a_planted_preference_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``prefers-a`` answers the label A where it does not know."""
    _write(tmp_path / "four.jsonl", [_plain(q) for q in _of_four(24)])
    monkeypatch.chdir(tmp_path)
    result = audit_tasks(MODEL, "own_letters", include_path=TASKS)
    assert "When unsure it falls back on A" in said(result)


@pytest.mark.slow
@pytest.mark.parametrize("multiturn", [True, False])
def test_chats_are_lm_evals(multiturn: bool, folder: Path) -> None:
    theirs = _lm_eval(["own_fewshot"], apply_chat_template=True, fewshot_as_multiturn=multiturn, num_fewshot=2)
    chosen = LmEvalSettings(
        include_path=TASKS,
        apply_chat_template=True,
        no_fewshot_as_multiturn=not multiturn,
        num_fewshot=2,
        orders="given",
    )
    found = TaskRun(open_model(MODEL), load("own_fewshot", chosen), chosen)
    for own, other in zip(found.samples(), theirs["samples"]["own_fewshot"], strict=True):
        _same(own, other)


@pytest.mark.slow
def test_contexts_that_are_too_long_are_cut_as_lm_eval_cuts_them(folder: Path) -> None:
    options = {"limit": 3, "num_fewshot": 6, "system_instruction": "Choose well. " * 400}
    theirs = _lm_eval(["own_fewshot"], **options)
    chosen = LmEvalSettings(include_path=TASKS, orders="given", **options)
    found = TaskRun(open_model(MODEL), load("own_fewshot", chosen), chosen)
    for own, other in zip(found.samples(), theirs["samples"]["own_fewshot"], strict=True):
        _same(own, other)
    assert "cut on the left" in found.result.summary(details=True)


def test_a_task_without_options_in_a_field_is_refused(folder: Path) -> None:
    with pytest.raises(InputError, match=r"own_yes_no: no field .* tried option1, option2 \(in the prompt, but not"):
        load("own_yes_no", LmEvalSettings(include_path=TASKS))
    found = load("own_yes_no", LmEvalSettings(include_path=TASKS, orders="given"))
    assert any("6 of 6 documents in the published order only" in note for note in found.notes)


def test_a_task_without_choices_is_refused_in_one_line(folder: Path, tmp_path: Path) -> None:
    lines = (TASKS / "letters.yaml").read_text().replace("own_letters", "unfinished").splitlines()
    (tmp_path / "unfinished.yaml").write_text("\n".join(line for line in lines if "doc_to_choice" not in line))
    with pytest.raises(InputError, match="unfinished: lm-eval cannot write its prompts or choices: TypeError"):
        load("unfinished", LmEvalSettings(include_path=tmp_path))


def test_a_task_whose_order_cannot_matter_has_one_score(folder: Path) -> None:
    headline = audit_tasks(MODEL, "own_cloze", include_path=TASKS).headline
    assert "in one order of options" in headline
    assert "–" not in headline


def test_several_models_are_compared_and_tasks_must_be_named(folder: Path) -> None:
    compared = audit_tasks([MODEL, "fair"], "own_letters", include_path=TASKS, orders="reverse", limit=4)
    assert list(compared.runs) == [MODEL, "fair"]
    with pytest.raises(InputError, match="name the tasks"):
        audit_tasks(MODEL)


@pytest.mark.thorough
def test_the_samples_are_read_back_as_a_log(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "samples_own_letters.jsonl"
    report = tmp_path / "numbers.json"
    ran = unslant(
        "lm-eval",
        "own_letters",
        "--model",
        MODEL,
        "--include-path",
        TASKS,
        "--samples",
        file,
        "--json",
        report,
        "--no-store",
        "-q",
    )
    assert ran.code == 0, ran.err
    values = json.loads(report.read_text("utf-8"))
    logged = audit_logs(file)
    assert logged.metrics.means["accuracy"].value == values["metrics"]["means"]["accuracy"]["value"]
    assert (
        values["lm_eval"]["tasks"]["own_letters"]["metrics"]["acc"]["value"] == logged.metrics.means["accuracy"].value
    )
    first = json.loads(file.read_text("utf-8").splitlines()[0])
    context = first["arguments"]["gen_args_0"]["arg_0"]
    assert first["prompt_hash"] == hashlib.sha256(context.encode()).hexdigest()


def test_a_group_is_several_tasks(folder: Path) -> None:
    found = load("own_group", LmEvalSettings(include_path=TASKS, limit=2))
    assert [task.name for task in found.tasks] == ["own_letters", "own_mixed"]
    assert {question.subject for question in found.questions} == {"own_letters", "own_mixed"}
    assert len(found.questions) == 4


T = ["Fenton", "Redhill", "Millbrook", "Langdale", "Orme", "Ash"]
ABCD = {"text": T[:4], "label": list("ABCD")}
LINES = "Where?\nOptions:\n" + "\n".join(f"({letter}) {text}" for letter, text in zip("ABCDEF", T, strict=True))
SPLITS = ("train", "validation", "test", "dev", "team_allocation")
STAND_INS: dict[str, tuple[dict[str, Any], str, str]] = {
    "mmlu_anatomy": ({"question": "Where?", "subject": "anatomy", "choices": T[:4], "answer": 2}, "labels", "choices"),
    "arc_easy": ({"id": "x", "question": "Where?", "choices": ABCD, "answerKey": "C"}, "cloze", ""),
    "commonsense_qa": (
        {"question": "Where?", "choices": {"text": T[:5], "label": list("ABCDE")}, "answerKey": "C"},
        "labels",
        "choices.text",
    ),
    "medmcqa": (
        {"question": "Where?", **dict(zip(("opa", "opb", "opc", "opd"), T, strict=False)), "cop": 2},
        "labels",
        "opa, opb, opc, opd",
    ),
    "cmmlu_agronomy": (
        {"Question": "Where?", **dict(zip("ABCD", T, strict=False)), "Answer": "C"},
        "labels",
        "A, B, C, D",
    ),
    "logiqa": ({"label": "c", "context": "So.", "question": "Where?", "options": T[:4]}, "texts", "options"),
    "sciq": (
        {"question": "Where?", **{f"distractor{i + 1}": T[i] for i in range(3)}, "correct_answer": T[3],
         "support": "So."},
        "cloze",
        "",
    ),
    "winogrande": ({"sentence": "The _ is big.", "option1": "dog", "option2": "cat", "answer": "1"}, "cloze", ""),
    "agieval_logiqa_en": (
        {
            "query": "Where? Answer Choices: (A)Fenton (B)Redhill (C)Millbrook (D)Langdale\nA: It is",
            "choices": ["(A)Fenton", "(B)Redhill", "(C)Millbrook", "(D)Langdale"],
            "gold": [2],
        },
        "texts",
        "query (a part of) and choices (behind labels)",
    ),
    "leaderboard_bbh_date_understanding": ({"input": LINES, "target": "(C)"}, "labels", "input (a part of)"),
    "leaderboard_mmlu_pro": (
        {"question": "Where?", "options": T, "answer": "C", "answer_index": 2},
        "labels",
        "options",
    ),
    "leaderboard_musr_team_allocation": (
        {"narrative": "So.", "question": "Where?", "choices": repr(T[:4]), "answer_index": 2, "answer_choice": T[2]},
        "texts",
        "choices",
    ),
    "race": (
        {"article": "So.", "problems": repr([{"question": "When?", "answer": "A", "options": [*"abcd"]},
                                             {"question": "Where?", "answer": "C", "options": T[:4]}])},
        "cloze",
        "",
    ),
    "boolq": ({"question": "is it so", "passage": "It is.", "label": 1}, "", ""),
    "mrpc": ({"sentence1": "It is so.", "sentence2": "So it is.", "label": 1}, "", ""),
}  # fmt: skip
"""Tasks of lm-eval's own -> a document in the shape of their data, what they score, and where the options stand."""


@pytest.mark.parametrize("write", [str, str.upper, str.capitalize])
def test_options_beyond_z_are_recognised(write: Callable[[str], str]) -> None:
    """Markers were letters, of which there are 26."""
    lines = "".join(f"{i}. {write(marker)}\n" for i, marker in enumerate(markers(40), 1))
    role = examine([(f"Which?\n{lines}Answer:", f" {i}") for i in range(1, 41)], 40)
    assert (role.kind, role.places) == (LABELS, tuple(range(40)))


@pytest.mark.parametrize("write", [repr, json.dumps])
def test_options_within_a_list_that_is_written_as_a_text_are_found_and_moved(write: Callable[[Any], str]) -> None:
    problems = [{"options": ["it's", "no"]}, {"options": ["one", "two", "three"]}]
    read = json.loads if write is json.dumps else ast.literal_eval
    doc = {"choices": write(["it's", 'so "so"', "né"]), "problems": write(problems)}
    for field, (choices, inside) in {
        "choices": (["it's", 'so "so"', "né"], lambda made: read(made["choices"])),
        "problems[1].options": (["one", "two", "three"], lambda made: read(made["problems"])[1]["options"]),
    }.items():
        (found,) = (one for one in candidates(doc, choices) if one.values == tuple(choices))
        assert found.name == field
        assert inside(found.filled(doc, ["x", "y", "it's"])) == ["x", "y", "it's"]
        assert found.filled(doc, choices).keys() == doc.keys()
    assert doc["problems"] == write(problems)


@pytest.fixture(scope="module")
def own_manager() -> Any:
    from lm_eval.tasks import TaskManager

    with quiet():
        return TaskManager()


@pytest.mark.slow
@pytest.mark.parametrize("name", STAND_INS)
def test_options_of_lm_evals_own_tasks_are_found(name: str, own_manager: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from lm_eval.api.task import ConfigurableTask

    row, kind, field = STAND_INS[name]
    splits = {split: datasets.Dataset.from_list([row] * 8) for split in SPLITS}
    monkeypatch.setattr(ConfigurableTask, "download", lambda task, *_, **__: setattr(task, "dataset", splits))
    monkeypatch.setattr("lm_eval.tasks.TaskManager", lambda *_, **__: own_manager)
    chosen = LmEvalSettings(limit=1)
    if not kind:
        with pytest.raises(InputError, match=f"{name}: no field"):
            load(name, chosen)
        return
    found = load(name, chosen)
    (document,) = found.by_id.values()
    assert (document.kind, document.options.name if document.options else "") == (kind, field)
    assert found.questions[0].answers == {{"sciq": 3, "winogrande": 0}.get(name, 2)}
    if document.movable:
        n = len(document.choices)
        order = (1, 0, *range(2, n))
        moved, published = document.requests(order), document.published
        assert moved == document._rendered(order)
        at = [[context.rindex(text) for text in T[:2]] for context in (published[0][0], moved[0][0])]
        assert at[0][0] < at[0][1]
        assert at[1][0] > at[1][1]
        assert len(moved[0][0]) == len(published[0][0])

"""The named data sets: each mapping on a small record of the Hub's shape, and the Hub's failures."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import datasets
import pytest
from datasets import ClassLabel, Dataset, Features, Sequence, Value

from unslant.errors import InputError
from unslant.questions import RECIPES, Recipe, load_judging, load_math, load_questions

ARC = {
    "id": "Mercury_1",
    "question": "Which is red?",
    "choices": {"text": ["grass", "blood", "sky"], "label": ["A", "B", "C"]},
    "answerKey": "B",
}
TRUTHFULQA = {
    "question": "Which is red?",
    "mc1_targets": {"choices": ["blood", "grass", "sky"], "labels": [1, 0, 0]},
    "mc2_targets": {"choices": ["blood", "wine", "grass", "sky"], "labels": [1, 1, 0, 0]},
}
RECORDS: dict[str, list[dict[str, Any]]] = {
    "mmlu": [{"question": "Which is red?", "subject": "anatomy", "choices": ["grass", "blood", "sky"], "answer": 1}],
    "mmlu-pro": [
        {
            "question_id": 70,
            "question": "Which is red?",
            "options": ["grass", "blood", "sky"],
            "answer": "B",
            "answer_index": 1,
            "cot_content": "",
            "category": "biology",
            "src": "ori_mmlu-anatomy",
        }
    ],
    "arc-challenge": [
        ARC,
        {**ARC, "id": "NYSEDREGENTS_2", "answerKey": "2"}
        | {"choices": {"text": ["grass", "blood", "sky"], "label": ["1", "2", "3"]}},
    ],
    "arc-easy": [ARC],
    "qasc": [{**ARC, "fact1": "blood is red", "fact2": "", "combinedfact": "", "formatted_question": "(A)"}],
    "medmcqa": [
        {"id": "u-1", "question": "Which is red?", "opa": "grass", "opb": "blood", "opc": "sky", "opd": "sea", "cop": 1}
        | {"choice_type": "single", "exp": None, "subject_name": "Anatomy", "topic_name": None}
    ],
    "teleqna": [
        {"question": "Which is red?", "option 1": "grass", "option 2": "blood", "option 3": "sky", "option 4": None}
        | {"option 5": None, "answer": "option 2: blood", "explanation": "", "category": "Lexicon"}
    ],
    "commonsenseqa": [{**ARC, "question_concept": "red"}],
    "truthfulqa-mc1": [TRUTHFULQA],
    "truthfulqa-mc2": [TRUTHFULQA],
    "scienceqa": [
        {"question": "Which is red?", "choices": ["grass", "blood", "sky"], "answer": 1, "hint": "Look.", "task": "x"}
        | {"grade": "grade2", "subject": "natural science", "topic": "biology", "lecture": "", "solution": ""}
    ],
    "multirc": [
        {"paragraph": "Blood is red.", "question": "Which is red?", "answer": text, "label": label}
        | {"idx": {"paragraph": 3, "question": 5, "answer": number}}
        for number, (text, label) in enumerate([("grass", 0), ("blood", 1), ("wine", 1)])
    ],
    "openbookqa": [{"id": "7-980", "question_stem": "Which is red?", "choices": ARC["choices"], "answerKey": "B"}],
}


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A stand-in for the Hub: serves what is put in under "rows" and remembers what was asked for."""
    served: dict[str, Any] = {}

    def load_dataset(name: str, config: str | None = None, *, split: str) -> Dataset:
        served["asked"] = (name, config, split)
        rows = served["rows"]
        return rows if isinstance(rows, Dataset) else Dataset.from_list(rows)

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    return served


QUESTIONS = [recipe for recipe in RECIPES.values() if recipe.kind == "questions" and recipe.name in RECORDS]


@pytest.mark.parametrize("recipe", QUESTIONS, ids=lambda recipe: recipe.name)
def test_each_recipe_reads_the_shape_of_its_data_set(hub: dict[str, Any], recipe: Recipe) -> None:
    hub["rows"] = RECORDS[recipe.name]
    questions = load_questions(recipe.name)
    assert hub["asked"] == (recipe.hub, recipe.config or None, recipe.split)
    for question in questions:
        assert question.stem == "Which is red?"
        right = {question.options[i] for i in question.answers}
        assert right == ({"blood", "wine"} if recipe.name in ("truthfulqa-mc2", "multirc") else {"blood"})
        assert question.source == f"{recipe.name}/{recipe.split}"
        assert set(question.options) & {"grass"}


@pytest.mark.parametrize(
    ("name", "attribute", "expected"),
    [
        ("mmlu", "subject", "anatomy"),
        ("mmlu", "id", "mmlu/test/0"),
        ("mmlu-pro", "subject", "biology"),
        ("mmlu-pro", "id", "70"),
        ("arc-challenge", "id", "Mercury_1"),
        ("medmcqa", "subject", "Anatomy"),
        ("medmcqa", "options", ("grass", "blood", "sky", "sea")),
        ("teleqna", "options", ("grass", "blood", "sky")),
        ("teleqna", "subject", "Lexicon"),
        ("commonsenseqa", "subject", ""),
        ("qasc", "context", "blood is red"),
        ("scienceqa", "context", "Look."),
        ("scienceqa", "subject", "natural science"),
        ("multirc", "context", "Blood is red."),
        ("multirc", "id", "3/5"),
        ("truthfulqa-mc2", "options", ("blood", "wine", "grass", "sky")),
        ("openbookqa", "id", "7-980"),
    ],
)
def test_other_fields_of_the_recipes(hub: dict[str, Any], name: str, attribute: str, expected: object) -> None:
    hub["rows"] = RECORDS[name]
    assert getattr(load_questions(name)[0], attribute) == expected


def test_class_labels_of_the_hub_are_indices(hub: dict[str, Any]) -> None:
    features = Features(
        {
            "question": Value("string"),
            "choices": Sequence(Value("string")),
            "answer": ClassLabel(names=["A", "B", "C", "D"]),
            "subject": Value("string"),
        }
    )
    rows = [{"question": f"Question {i}?", "choices": list("wxyz"), "answer": i % 3, "subject": "s"} for i in range(30)]
    hub["rows"] = Dataset.from_list([{**row, "answer": row["answer"] + 1} for row in rows], features=features)
    # The recipe knows that MMLU counts from 0, even where a sample of it never says 0.
    assert [question.answers for question in load_questions("mmlu")] == [{i % 3 + 1} for i in range(30)]


@pytest.mark.parametrize(
    ("names", "numbers", "answers"),
    [
        (["maybe", "no", "yes"], [0, 2, 1], [2, 0, 1]),
        (["a", "b", "c"], [1, 2, 0], [1, 2, 0]),
        (["choice1", "choice2", "choice3"], [0, 2, 1], [0, 2, 1]),
        (["1", "2", "3"], [0, 2, 1], [0, 2, 1]),
    ],
    ids=lambda value: str(value[0]),
)
def test_classes_are_read_by_their_names(
    names: list[str], numbers: list[int], answers: list[int], tmp_path: Path
) -> None:
    columns: dict[str, Any] = {
        "question": Value("string"),
        "options": Sequence(Value("string")),
        "answer": ClassLabel(names=names),
        "subject": ClassLabel(names=["law", "art"]),
    }
    asked = {"options": ["yes", "no", "maybe"], "subject": 1}
    rows = Dataset.from_list(
        [asked | {"question": f"Is it {number}?", "answer": number} for number in numbers], features=Features(columns)
    )
    rows.to_parquet(str(tmp_path / "q.parquet"))
    for source in (rows, tmp_path / "q.parquet", rows.data.table):
        questions = load_questions(source)
        assert [(*one.answers, one.subject) for one in questions] == [(answer, "art") for answer in answers]


def test_classes_false_and_true_are_marks_of_options(hub: dict[str, Any]) -> None:
    labels = Features(
        {
            "paragraph": Value("string"),
            "question": Value("string"),
            "answer": Value("string"),
            "idx": {"paragraph": Value("int32"), "question": Value("int32"), "answer": Value("int32")},
            "label": ClassLabel(names=["False", "True"]),
        }
    )
    hub["rows"] = Dataset.from_list(RECORDS["multirc"], features=labels)
    marked = load_questions("multirc")
    hub["rows"] = RECORDS["multirc"]
    assert [one.answers for one in marked] == [one.answers for one in load_questions("multirc")]


def test_teleqna_also_with_choices_and_an_index(hub: dict[str, Any]) -> None:
    hub["rows"] = [{"question": "Which is red?", "choices": ["grass", "blood"], "answer": 1, "subject": "Lexicon"}]
    assert load_questions("teleqna")[0].answers == {1}


def test_any_data_set_of_the_hub(hub: dict[str, Any]) -> None:
    hub["rows"] = RECORDS["mmlu"]
    questions = load_questions("hub:someone/colours:red:train")
    assert hub["asked"] == ("someone/colours", "red", "train")
    assert questions.name == "someone-colours/train"
    load_questions("hub:someone/colours")
    assert hub["asked"] == ("someone/colours", None, "test")
    with pytest.raises(InputError, match="hub:ID:CONFIG:SPLIT"):
        load_questions("hub:")


def test_mt_bench(hub: dict[str, Any]) -> None:
    talks = {
        f"conversation_{side}": [{"content": "Hello?", "role": "user"}, {"content": side, "role": "assistant"}]
        for side in "ab"
    }
    row = {"question_id": 81, "model_a": "x", "model_b": "y", "judge": "expert_0", "turn": 1, **talks}
    hub["rows"] = [{**row, "winner": winner} for winner in ("model_a", "model_b", "tie")]
    questions = load_questions("mt-bench-human")
    assert hub["asked"] == ("lmsys/mt_bench_human_judgments", None, "human")
    assert [question.answers for question in questions] == [{0}, {1}, {0, 1}]
    assert [question.id for question in questions] == ["81", "81#2", "81#3"]
    assert questions[0].context == "Hello?"
    assert set(RECORDS) | {"mt-bench-human"} == {
        recipe.name for recipe in RECIPES.values() if recipe.kind == "questions"
    }


def test_gsm8k(hub: dict[str, Any]) -> None:
    hub["rows"] = [{"question": "How much is 9 + 9?", "answer": "9 + 9 = <<9+9=18>>18\n#### 18"}]
    question = load_math("gsm8k")[0]
    assert (question.id, question.answer) == ("gsm8k/test/0", "18")
    assert question.solution.startswith("9 + 9 =")


def test_folio(hub: dict[str, Any]) -> None:
    row = {"story_id": 1, "premises": "All cats purr.\nTom is a cat.", "premises-FOL": "", "conclusion-FOL": ""}
    hub["rows"] = [
        {**row, "conclusion": "Tom purrs.", "label": label, "example_id": number}
        for number, label in enumerate(["True", "False", "Uncertain"])
    ]
    questions = load_judging("folio")
    assert [question.verdict for question in questions] == ["True", "False", "Unknown"]
    assert [question.id for question in questions] == ["0", "1", "2"]
    assert questions[0].statement == "Tom purrs."
    assert questions[0].context == "All cats purr.\nTom is a cat."


def test_fld(hub: dict[str, Any]) -> None:
    row = {"hypothesis": "Tom purrs.", "context": "sent1: All cats purr.", "proofs": [], "proof_label": "UNKNOWN"}
    hub["rows"] = [{**row, "world_assump_label": label} for label in ("PROVED", "DISPROVED", "UNKNOWN")]
    questions = load_judging("fld")
    assert [question.verdict for question in questions] == ["True", "False", "Unknown"]
    assert questions[0].context == "sent1: All cats purr."


@pytest.mark.parametrize("name", [*RECIPES, "hub:someone/colours"])
def test_a_failing_hub_is_one_line_that_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    def no_network(*_: object, **__: object) -> None:
        logging.getLogger("huggingface_hub.utils").warning("Retrying in 1s")
        raise ConnectionError("Couldn't reach it\non the Hub")

    monkeypatch.setattr(datasets, "load_dataset", no_network)
    kind = RECIPES[name].kind if name in RECIPES else "questions"
    load = {"questions": load_questions, "math": load_math, "judging": load_judging}[kind]
    with pytest.raises(
        InputError, match=r"could not be loaded: Couldn't reach it on the Hub\. Check the network"
    ) as caught:
        load(name)
    assert "path of a local copy" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not caplog.records


def test_a_recipe_of_another_kind_names_its_loader() -> None:
    with pytest.raises(InputError, match=r"'gsm8k' holds open maths questions, .* \(load_math\)"):
        load_questions("gsm8k")
    with pytest.raises(InputError, match=r"'mmlu' holds multiple-choice questions, .* \(load_questions\)"):
        load_math("mmlu")


def test_all_the_promised_names_are_there() -> None:
    promised = (
        "mmlu mmlu-pro arc-challenge arc-easy qasc medmcqa teleqna commonsenseqa truthfulqa-mc1 truthfulqa-mc2 "
        "scienceqa multirc openbookqa mt-bench-human gsm8k folio fld"
    )
    assert [recipe.name for recipe in RECIPES.values()] == promised.split()

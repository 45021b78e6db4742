"""Functions with keywords name each of them, so that an editor completes them: no ``**options: Any``."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unslant
from unslant.auditing import AuditSettings
from unslant.auditing.attention import ShownKeywords
from unslant.models import ModelOptions
from unslant.studies.debias.settings import AdapterKeywords, AdapterSettings, PromptKeywords


def named(*classes: Any) -> set[str]:
    return {field.name for one in classes for field in fields(one)}


def test_keywords_are_the_fields_of_the_settings() -> None:
    assert set(AdapterKeywords.__annotations__) == named(AdapterSettings, ModelOptions)
    assert set(ShownKeywords.__annotations__) < named(AuditSettings)
    assert set(PromptKeywords.__annotations__) < named(AuditSettings)


def public() -> list[Callable[..., Any]]:
    functions = [getattr(unslant, name) for name in unslant.__all__]
    functions += [getattr(unslant.study, name) for name in unslant.study.__all__]
    return [one for one in functions if callable(one) and not isinstance(one, type)]


@pytest.mark.parametrize("function", public(), ids=lambda one: one.__name__)
def test_no_public_function_takes_any_keyword(function: Callable[..., Any]) -> None:
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            kind = parameter.annotation
            assert kind.startswith("Unpack[") if isinstance(kind, str) else typing.get_origin(kind) is typing.Unpack


def test_numbers_of_numpy_are_numbers() -> None:
    """Not refused by JSON after all questions were asked."""
    result = unslant.audit("fair", "embedded", limit=np.int64(6), seed=np.int64(1), shots=np.int64(2))
    assert result.run.settings["seed"] == 1
    assert len(unslant.load_questions("embedded", limit=np.int64(3))) == 3


@pytest.mark.parametrize("function", [unslant.audit, unslant.leaderboard, unslant.study.base_rate])
@pytest.mark.parametrize("option", ["html", "json", "out", "details"])
def test_an_output_option_of_the_command_names_what_the_result_has(function: Callable[..., Any], option: str) -> None:
    with pytest.raises(unslant.InputError, match=f"no option '{option}': .* to_html, to_parquet"):
        function("fair", "embedded", **{option: "x"})


def test_a_list_of_no_models_is_no_default() -> None:
    with pytest.raises(unslant.InputError, match="no models: give one or more"):
        unslant.audit([], "embedded")


def test_a_path_names_a_model(tmp_path: Path) -> None:
    """'PosixPath is not a model'."""
    for ask in (unslant.audit, unslant.debias, lambda model, _: unslant.Debiased(model)):
        with pytest.raises(unslant.ModelError, match=r"config\.json is missing"):
            ask(tmp_path, "embedded")


def test_progress_is_a_function() -> None:
    with pytest.raises(unslant.InputError, match="progress=True: give a function of phase, done and total"):
        unslant.audit("fair", "embedded", progress=True)


def test_a_closed_method_gives_no_answers() -> None:
    questions = unslant.load_questions("embedded", limit=2)
    with unslant.Debiased("fair", "vote") as model:
        assert len(model.predict(questions)) == 2
    with pytest.raises(unslant.InputError, match="was closed"):
        model.predict(questions)


QUESTIONS = [{"question": f"Is {i} even?", "options": ["yes", "no"], "answer": i % 2} for i in range(3)]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"connections": "4"}, "connections '4': give a whole number"),
        ({"temperature": "0.5"}, "temperature '0.5': give a number"),
        ({"max_tokens": 2.5}, r"max_tokens 2\.5: give a whole number"),
        ({"trust_remote_code": "no"}, "trust_remote_code 'no': give True or False"),
        ({"base_url": 3}, "base_url 3: give a list"),
        ({"bits": "4"}, "bits '4': give a whole number"),
        ({"elicit": "label"}, "elicit 'label': did you mean 'labels'"),  # it scored labels, as it did for "words"
        ({"labels": {"X", "Y"}}, "labels .*: give a text"),  # a set has no order
    ],
)
def test_a_value_of_another_type_is_refused_before_any_work(options: dict[str, Any], words: str) -> None:
    with pytest.raises(unslant.InputError, match=words):
        unslant.audit("fair", QUESTIONS, **options)


def test_a_corrected_model_reads_labels_or_replies() -> None:
    with pytest.raises(unslant.InputError, match="elicit 'words': use one of auto, labels, generate"):
        unslant.Debiased("fair", "vote", elicit="words")  # type: ignore[arg-type]


@pytest.mark.parametrize("labels", [np.array(["X", "Y"]), ("X", "Y"), (one for one in "XY"), ["X", "Y"]])
def test_labels_may_come_in_any_sequence(labels: Any) -> None:
    result = unslant.audit("fair", QUESTIONS, labels=labels, orders=np.int32(2))
    assert (result.run.settings["labels"], result.run.settings["orders"]) == ("X,Y", "2")


def test_requests_take_objects_of_python() -> None:
    options = ModelOptions(base_url="http://127.0.0.1:9/v1", extra_body={"top_k": 1}, header="A: b, c")
    assert (options.body(), options.headers()) == ({"top_k": 1}, {"A": "b, c"})


def test_columns_of_a_field_are_named_in_one_text() -> None:
    """Commas part the columns, not the fields: the second column was taken for a field."""
    rows = [{"question": "Who?", "X": "me", "Y": "you", "answer": 1}]
    assert unslant.audit("fair", rows, fields="options=X,Y").metrics.counts.questions == 1


def test_corrected_answers_can_be_compared() -> None:
    answers = [unslant.debias("fair", QUESTIONS, method="vote").outcomes for _ in range(2)]
    assert answers[0] == answers[1]
    assert answers[0][0] != replace(answers[0][0], probs=answers[0][0].probs / 2)
    assert answers[0][0] != "yes"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: unslant.audit(model="fair"), "no option 'model': give the model first, without a keyword"),
        (lambda: unslant.audit("fair", questions=QUESTIONS), "no option 'questions': give the questions after"),
        (lambda: unslant.leaderboard(models=["fair"]), "no option 'models': give the models first, as a list"),
        (lambda: unslant.debias(model="fair"), "no option 'model': give the model first"),
        (lambda: unslant.audit("fair", QUESTIONS, tokenizer=1), r"unslant\.open_model\(model, tokenizer=tokenizer\)"),
        (lambda: unslant.audit("fair", QUESTIONS, store="x"), "no option 'store': functions print, write and store"),
        (lambda: unslant.audit("fair", QUESTIONS, shard="1/2"), "no option 'shard': functions print, write and store"),
        (lambda: unslant.study.debias(log="x.jsonl"), "no option 'log': debias asks models"),
        (lambda: unslant.read_result([{"a": 1}]), "path of type list: give the name of a file"),  # type: ignore[arg-type]
        (lambda: unslant.plan(5), "pilot of type int: give an audit, or the name of its file"),  # type: ignore[arg-type]
        (lambda: unslant.train("fair", QUESTIONS, 5), "out of type int: give the name of a folder"),  # type: ignore[arg-type]
        (lambda: unslant.study.annotation([5]), "sheets of type int: give the names of filled-in files"),  # type: ignore[list-item]
        (lambda: unslant.study.annotation("none.csv"), "none.csv: no such file"),
        (lambda: unslant.compare("one.parquet"), "give two results or more, each as an argument of its own"),
        (lambda: unslant.open_model("fair", dvice="cpu"), "no option 'dvice': did you mean 'device'"),
        (lambda: unslant.Debiased("fair", "vote", dvice="cpu"), "no setting 'dvice': did you mean 'device'"),
        (lambda: unslant.Debiased("fair", "vote", templte="plain"), "no setting 'templte': did you mean 'template'"),
        (lambda: unslant.load_model("fair", engine="x"), "engine 'x': use one of auto, tree, plain"),
        (lambda: unslant.load_model("fair", token_budget=0), "token_budget=0: give 1 or more"),
        (lambda: unslant.study.annotation_sheet(QUESTIONS, 1.5), "n 1.5: give a whole number"),  # type: ignore[arg-type]
        (lambda: unslant.Debiased("fair", "vote", order=4), "no setting 'order': did you mean 'orders'"),
    ],
)
def test_a_keyword_that_is_no_option_says_what_to_write(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(unslant.InputError, match=words):
        call()

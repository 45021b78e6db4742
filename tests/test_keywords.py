"""Functions with keywords name each of them, so that an editor completes them: no ``**options: Any``."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from dataclasses import fields
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


def test_a_closed_method_gives_no_answers() -> None:
    questions = unslant.load_questions("embedded", limit=2)
    with unslant.Debiased("fair", "vote") as model:
        assert len(model.predict(questions)) == 2
    with pytest.raises(unslant.InputError, match="was closed"):
        model.predict(questions)

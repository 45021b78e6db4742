"""Functions with keywords name each of them, so that an editor completes them: no ``**options: Any``."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from dataclasses import fields
from typing import Any

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

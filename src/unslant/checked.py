"""Small inputs, such as templates and tables, checked by pydantic: what is wrong is told in one line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from unslant.errors import InputError

Model = TypeVar("Model", bound="Checked")
Cell = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]
"""A text that may be missing."""


class Checked(BaseModel):
    """Fields that are all there may be; a field's description says what it must be."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class TableRow(Checked):
    """A row of a table, where numbers may stand for texts."""

    model_config = ConfigDict(coerce_numbers_to_str=True)


def checked(kind: type[Model], data: Mapping[str, Any], place: object) -> Model:
    """``data`` as ``kind``.

    Raises:
        InputError: naming the place and the first field that is wrong, its value, and what is allowed.
    """
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        problem = min(error.errors(include_url=False), key=lambda problem: problem["type"] != "missing")
        *parents, name = map(str, problem["loc"])
        reason = _reason(problem, _owner(kind, parents), name)
        raise InputError.at(place, reason, field=".".join([*parents, name])) from None


def _owner(kind: type[BaseModel], parents: list[str]) -> type[BaseModel]:
    for name in parents:
        inner = kind.model_fields[name].annotation
        assert isinstance(inner, type)
        assert issubclass(inner, BaseModel)
        kind = inner
    return kind


def _reason(problem: Any, owner: type[BaseModel], name: str) -> str:
    known = owner.model_fields
    if problem["type"] == "extra_forbidden":
        return f"unknown; allowed are {', '.join(sorted(known))}"
    if problem["type"] == "missing":
        return f"missing; needed are {', '.join(key for key, field in known.items() if field.is_required())}"
    field = known[name]
    inner = field.annotation
    if isinstance(inner, type) and issubclass(inner, BaseModel):
        return f"must be a table with {', '.join(inner.model_fields)}"
    wanted = field.description or "a text in quotes"
    return f"must be {wanted}, not {problem['input']!r}"

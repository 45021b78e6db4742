"""Small inputs, such as templates and tables, checked by pydantic; an error is one line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from unslant.errors import InputError

Model = TypeVar("Model", bound="Checked")
Cell = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]
"""A text that may be missing."""


class Checked(BaseModel):
    """A model without further fields; the description of a field says which values it allows."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class TableRow(Checked):
    """A row of a table, where texts may be written as numbers."""

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
        owner: type[BaseModel] = kind
        path: list[str] = []
        for part in problem["loc"]:
            path.append(str(part))
            inner = _model_of(owner, str(part))
            if inner is None:
                break  # an error inside a list is reported for the whole list
            if part != problem["loc"][-1]:
                owner = inner
        raise InputError.at(place, _reason(problem, owner, path[-1]), field=".".join(path)) from None


def _reason(problem: Any, owner: type[BaseModel], name: str) -> str:
    fields = owner.model_fields
    if problem["type"] == "extra_forbidden":
        return f"unknown; allowed are {', '.join(sorted(fields))}"
    if problem["type"] == "missing":
        return f"missing; needed are {', '.join(key for key, field in fields.items() if field.is_required())}"
    if inner := _model_of(owner, name):
        return f"must be a table with {', '.join(inner.model_fields)}"
    return f"must be {fields[name].description or 'a text in quotes'}, not {problem['input']!r}"


def _model_of(owner: type[BaseModel], name: str) -> type[BaseModel] | None:
    """The model that is the type of a field; None for any other type, and without such a field."""
    kind = owner.model_fields[name].annotation if name in owner.model_fields else None
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None

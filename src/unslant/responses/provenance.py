"""How a result was made: the block ``provenance`` that every file we write carries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, zip_longest
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from unslant.errors import InputError, without_options


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow")


class AskedModel(_Part):
    """One model."""

    name: str = Field(default="", description="name, folder or Hub id, as given")
    digest: str = Field(
        default="", description="SHA-256 of weights, configuration, tokenizer and code; a server's answers"
    )
    revision: str = Field(default="", description="commit on the Hub")
    dtype: str = Field(default="", description="number type of the weights")
    device: str = Field(default="", description="where it ran")
    adapter: str = Field(default="", description="adapter on it")


class AskedQuestions(_Part):
    """One question set."""

    name: str = Field(default="", description="file, recipe or built-in set")
    digest: str = Field(default="", description="SHA-256 of the questions asked, in order")
    n: int = Field(default=0, description="how many")
    limit: int | None = Field(default=None, description="sample size asked for")
    seed: int | None = Field(default=None, description="seed of the sample and of all random choices")


class Provenance(_Part):
    """Everything needed to make a result again."""

    versions: dict[str, str] = Field(default={}, description="Python, unslant, and the libraries that ran the models")
    platform: str = Field(default="", description="operating system and processor")
    models: list[AskedModel] = Field(default=[], description="the models asked")
    questions: list[AskedQuestions] = Field(default=[], description="the question sets asked")
    settings: dict[str, Any] = Field(default={}, description="every setting of the study, defaults included")
    command: list[str] = Field(
        default=[],
        description="the command as typed, without secrets and without the options that say where to write, store and "
        "show; empty from Python",
    )
    date: str = Field(default="", description="day (UTC); that of SOURCE_DATE_EPOCH where it is set")

    @classmethod
    def merge(cls, blocks: Sequence[Provenance]) -> Provenance:
        """That of a whole run, from those of its shards: of what each machine says of itself, all is kept, and the
        command is that of a shard without the options that made it one."""
        first = blocks[0]
        devices = zip_longest(*([model.device for model in block.models] for block in blocks), fillvalue="")
        changes = {
            "models": [
                model.model_copy(update={"device": _each(found)})
                for model, found in zip(first.models, devices, strict=False)
            ],
            "versions": {
                name: _each(block.versions.get(name, "") for block in blocks)
                for name in dict.fromkeys(chain(*(block.versions for block in blocks)))
            },
            "platform": _each(block.platform for block in blocks),
            "command": without_options(first.command, frozenset({"--shard", "--plan"})),
            "date": max(block.date for block in blocks),
        }
        return first.model_copy(update=changes)


def _each(values: Iterable[str]) -> str:
    """Every different value, once."""
    return "; ".join(dict.fromkeys(filter(None, values)))


META_NAME = "unslant-provenance"
"""Name of the ``meta`` element of an HTML report that holds the blocks of its results, as a list."""


def checked_provenance(value: object, path: object) -> Provenance:
    """The block found in a file.

    Raises:
        InputError: if a part of it is of another type.
    """
    try:
        return Provenance.model_validate(value)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        where = ".".join(map(str, problem["loc"])) or "all of it"
        raise InputError.at(path, f"its provenance ({where}): {problem['msg'].lower()}") from None


def markdown() -> str:
    """The keys of the block as a table, for the docs."""
    parts: list[tuple[str, type[BaseModel]]] = [
        ("", Provenance), ("models[].", AskedModel), ("questions[].", AskedQuestions)
    ]  # fmt: skip
    lines = ["| key | |", "|---|---|"]
    lines += [
        f"| `{of}{name}` | {field.description} |" for of, kind in parts for name, field in kind.model_fields.items()
    ]
    return "\n".join(lines)

"""How a result was made: the block ``provenance`` that every file we write carries, what asking has cost, what was
seen of the models that were asked, and whether two were the same one."""

from __future__ import annotations

import hashlib
import json
import math
import operator
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from importlib import metadata
from itertools import chain, zip_longest
from typing import Annotated, Any, ClassVar, Self, cast

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from unslant.arrays import Floats, json_fields
from unslant.errors import InputError, without_options
from unslant.reach import url_without_secrets


class AskedModel(BaseModel, strict=True, extra="allow"):
    """One model."""

    name: str = Field(default="", description="name, folder or Hub id, as given")
    digest: str = Field("", description="SHA-256 of weights, configuration, tokenizer and code; a server's answers")
    revision: str = Field(default="", description="commit on the Hub")
    dtype: str = Field(default="", description="number type of the weights")
    device: str = Field(default="", description="where it ran")
    adapter: str = Field(default="", description="adapter on it")


class AskedQuestions(BaseModel, strict=True, extra="allow"):
    """One question set."""

    name: str = Field(default="", description="file, recipe or built-in set")
    digest: str = Field(default="", description="SHA-256 of the questions asked, in order")
    n: int = Field(default=0, description="how many")
    limit: int | None = Field(default=None, description="sample size asked for")
    seed: int | None = Field(default=None, description="seed of the sample and of all random choices")


class Provenance(BaseModel, strict=True, extra="allow"):
    """Everything needed to make a result again."""

    versions: dict[str, str] = Field(default={}, description="Python, unslant, and the libraries that ran the models")
    platform: str = Field(default="", description="operating system and processor")
    models: list[AskedModel] = Field(default=[], description="the models asked")
    questions: list[AskedQuestions] = Field(default=[], description="the question sets asked")
    settings: dict[str, Any] = Field(default={}, description="every setting of the study, defaults included")
    command: list[str] = Field(
        default=[],
        description="the command as typed, without secrets and without options for writing, storing and showing; empty "
        "from Python",
    )
    date: str = Field(default="", description="day (UTC); that of SOURCE_DATE_EPOCH where it is set")

    @classmethod
    def merge(cls, blocks: Sequence[Provenance]) -> Provenance:
        """The provenance of a whole run, from those of its shards.

        Facts that each machine states of itself are all listed; the command is that of a shard without the options that
        made it one.
        """
        first = blocks[0]
        devices = zip_longest(*([model.device for model in block.models] for block in blocks), fillvalue="")
        libraries = dict.fromkeys(chain(*(block.versions for block in blocks)))
        changes = {
            "models": [
                model.model_copy(update={"device": _each(names)})
                for model, names in zip(first.models, devices, strict=False)
            ],
            "versions": {name: _each(block.versions.get(name, "") for block in blocks) for name in libraries},
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
    """The block ``provenance`` of a file.

    Raises:
        InputError: naming the part that has another type.
    """
    try:
        return Provenance.model_validate(value)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        field = ".".join(map(str, ("provenance", *problem["loc"])))
        reason = problem["msg"].lower() if problem["loc"] else "is not a JSON object"
        raise InputError.at(path, reason, field=field) from None


# What asking has cost

Count = Annotated[int, Field(ge=0)]
Number = Annotated[float, Field(ge=0, allow_inf_nan=False)]


def money(tokens: float, replies: float, price: float | None, output_price: float | None) -> float:
    """What tokens in and tokens of replies cost, at prices of a million; nan without a price.

    Args:
        output_price: of replies; by default that of the tokens in.
    """
    if price is None:
        return math.nan
    return (price * tokens + (price if output_price is None else output_price) * replies) / 1e6


class Totals:
    """A dataclass of totals: numbers are added or subtracted; of two texts, the first that is not empty stays."""

    __slots__ = ()

    def __sub__(self, earlier: Self) -> Self:
        return self._combined(earlier, operator.sub)

    def __add__(self, other: Self) -> Self:
        return self._combined(other, operator.add)

    def _combined(self, other: Self, combine: Callable[[Any, Any], Any]) -> Self:
        pairs = zip(astuple(cast(Any, self)), astuple(cast(Any, other)), strict=True)
        return type(self)(*(a or b if isinstance(a, str) else combine(a, b) for a, b in pairs))

    def become(self, other: Self) -> None:
        """Take over the other's totals, in place: a cost is shared by the model and those who watch it."""
        for f in fields(cast(Any, self)):
            setattr(self, f.name, getattr(other, f.name))

    def copy(self) -> Self:
        return type(self)(*astuple(cast(Any, self)))


@dataclass(slots=True)
class Cost(Totals):
    """What scoring has cost so far, and what simpler ways of scoring would have cost.

    Attributes:
        tokens: tokens that went through the model's linear layers (distinct prefix-tree nodes with the tree engine; of
            a server, those of prompts that were not in its prefix cache, where it counts them).
        tokens_plain: tokens if every prompt were run alone, whole, without padding.
        tokens_baqckv: tokens if only the beginning shared by one question's prompts were run once (P1, Algorithm 1);
            0 for a server.
        tokens_ordinary: tokens of one ordinary run: the published order of every question alone, each prompt whole; 0
            where not counted.
        prompts: prompts scored.
        reused: prompts that another call had scored, taken from the store at no cost; ``prompts`` and these together
            are what was asked. Written to JSON only where there are any.
        forwards: forward passes made.
        seconds: wall-clock seconds inside ``score``; files of responses do not keep them, so 0 there, and null in JSON.
        ordinary_runs: the tokens computed, in ordinary runs; null where that is not known.
    """

    tokens: Count = 0
    tokens_plain: Count = 0
    tokens_baqckv: Count = 0
    prompts: Count = 0
    forwards: Count = 0
    seconds: Number = 0.0
    tokens_ordinary: Count = 0
    reused: Count = 0

    @property
    def ordinary_runs(self) -> float:
        """The tokens computed, in ordinary runs; nan where that is not known."""
        return self.tokens / self.tokens_ordinary if self.tokens_ordinary and self.tokens else math.nan

    def to_dict(self) -> dict[str, Any]:
        """For JSON, with :attr:`ordinary_runs`."""
        values = json_fields(self, omit=() if self.reused else ("reused",), also=("ordinary_runs",))
        return values | {"seconds": self.seconds or None}


@dataclass(slots=True)
class ChatCost(Totals):
    """What replies have cost; a reply from the store counts as it did when it was first requested.

    Attributes:
        requests: replies requested, including those that failed.
        failed: requests without a reply.
        uncounted: replies for which no token counts were reported.
        input_tokens, output_tokens, reasoning_tokens: of the counted replies; reasoning is part of the output.
        error: the most frequent reason for failures.
    """

    requests: Count = 0
    failed: Count = 0
    uncounted: Count = 0
    input_tokens: Count = 0
    output_tokens: Count = 0
    reasoning_tokens: Count = 0
    error: str = ""


# What was seen of the models


class RunPart:
    """A part of a run; a file with an unknown field, or a field of another type, is refused."""

    __slots__ = ()
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")


@dataclass(frozen=True, kw_only=True)
class Agreement(RunPart):
    """How close the scores of a model in half precision are to its own in float32.

    Attributes:
        prompts: number of prompts compared; 0 where no comparison was possible.
        argmax: of the prompts with several continuations, the share with the same most probable one; None without any.
        largest, mean: absolute difference of the log-probabilities (nats).
    """

    prompts: Count = 0
    argmax: float | None = None
    largest: float = 0.0
    mean: float = 0.0

    @classmethod
    def over(cls, parts: Sequence[Agreement]) -> Agreement:
        """Agreement over the prompts of all parts."""
        return cls(
            prompts=sum(part.prompts for part in parts),
            argmax=_weighted((part.prompts, part.argmax) for part in parts),
            largest=max((part.largest for part in parts if part.prompts), default=0.0),
            mean=_weighted((part.prompts, part.mean) for part in parts) or 0.0,
        )


def _weighted(values: Iterable[tuple[int, float | None]]) -> float | None:
    pairs = [(weight, value) for weight, value in values if weight and value is not None]
    return sum(weight * value for weight, value in pairs) / sum(weight for weight, _ in pairs) if pairs else None


@dataclass(frozen=True, kw_only=True)
class SpecialTokens(RunPart):
    """Questions whose text spells special tokens of the model, and whether these were read as ``text`` or as tokens."""

    read_as: str
    questions: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class AnsweredBy(RunPart):
    """Replies that name one model and one system (``system_fingerprint``); ``first`` is the question of the first of
    them, empty for the system that answered first."""

    model: str
    system_fingerprint: str
    replies: Count
    first: str = ""

    @classmethod
    def merge(cls, runs: Iterable[Sequence[AnsweredBy]]) -> tuple[AnsweredBy, ...]:
        """The replies of several runs, counted for each model and system."""
        by_system: dict[tuple[str, str], AnsweredBy] = {}
        for counts in chain(*runs):
            system = counts.model, counts.system_fingerprint
            before = by_system.get(system, replace(counts, replies=0))
            by_system[system] = replace(before, replies=before.replies + counts.replies)
        return tuple(by_system.values())


_ROUNDED = 5e-4
"""How far an accuracy that a log gives in a few digits may be from ours."""


@dataclass(frozen=True, kw_only=True)
class LoggedScore(RunPart):
    """A harness's own score of the answers it logged.

    Attributes:
        metric: its name in the log.
        value: mean over the rows that have one, from 0 to 1.
        n: number of rows that have one.
        ours: number of these that unslant counts as right.
        parted: rows on which the two disagree; None where the log's scores are shares, which no answer can match, or
            where it has only the score of all rows.
        first: place of the first such row.
        failed: rows without an answer to read, which are left out of our accuracy.
    """

    metric: str
    value: float
    n: Count
    ours: Count
    parted: Count | None = None
    first: str = ""
    failed: Count = 0

    @property
    def caveat(self) -> str:
        """The difference, which a reader must see before the first number; empty where both scores are the same."""
        reported = f"The log reports {self.value:.3f} ({self.metric}, {self.n:,} row{'s' * (self.n > 1)})"
        here = f"counting the answers, as here, gives {self.ours / self.n:.3f}"
        same = abs(self.value - self.ours / self.n) <= _ROUNDED if self.parted is None else not self.parted
        parts = [] if same else [f"{reported}; {here}."]
        if self.parted:
            differ = "1 row differs" if self.parted == 1 else f"{self.parted:,} rows differ"
            parts.append(f"{differ}, the first at {self.first}.")
        if 0 < self.failed < self.n:
            rest = self.ours / (self.n - self.failed)
            parts = parts or [f"{reported}."]
            parts.append(f"Without the rows that failed ({self.failed:,}), which do not count below, it is {rest:.3f}.")
        return " ".join(parts)


_NOT_THE_MODEL = frozenset(
    "model adapter fingerprint engine attention device dtype torch transformers peft base_url".split()
)
"""Entries of an identity that say how, where and under which name a model ran, but not which one it is."""


def model_block(name: str, facts: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The part on one model, and the versions of the libraries that ran it.

    Args:
        facts: :func:`unslant.models.facts_of` the model, if it was loaded.
    """
    facts = facts or {}
    identity: Mapping[str, str] = facts.get("identity", {})
    device = identity.get("device", "")
    if device == "cuda" and "torch" in sys.modules:
        device = f"cuda ({sys.modules['torch'].cuda.get_device_name()})"
    itself = {key: value for key, value in identity.items() if key not in _NOT_THE_MODEL}
    libraries = ["torch", "transformers"] + ["peft"] * bool(identity.get("adapter config"))
    versions = {name: identity[name] for name in libraries if identity.get(name)}
    return {
        "name": url_without_secrets(name),
        "digest": hashlib.sha256(json.dumps(itself, sort_keys=True).encode()).hexdigest() if itself else "",
        "revision": str(facts.get("revision", "")),
        "dtype": identity.get("dtype", ""),
        "device": device,
        "adapter": identity.get("adapter", ""),
        "versions": versions | ({"tokenizers": metadata.version("tokenizers")} if versions else {}),
    }


FINGERPRINT = "fingerprint"
"""The entry of an identity that is compared number by number: a few scores of fixed prompts."""


def fingerprint_text(values: Floats, noise: float) -> str:
    """Numbers, and how far apart those of one model may lie."""
    # Their last bits differ between processes (number of threads, processor, a GPU's order of summing). Rounding would
    # not help: scores on either side of a rounding boundary would still differ.
    return f"{noise:g}: " + " ".join(f"{value:.9g}" for value in values)


def known_as(identity: Mapping[str, str], known: Iterable[str]) -> Mapping[str, str]:
    """The first identity of those ``known`` (as JSON) that means the same model; the identity itself if none does."""
    return next((other for other in map(json.loads, known) if same_identity(other, identity)), identity)


def same_identity(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Whether two identities are of one model."""
    same = {**one, FINGERPRINT: ""} == {**other, FINGERPRINT: ""}
    return same and _close(one.get(FINGERPRINT), other.get(FINGERPRINT))


def _close(one: str | None, other: str | None) -> bool:
    if one is None or other is None:
        return one == other
    noise = float(one.partition(": ")[0])
    first, second = (np.array(text.partition(": ")[2].split(), dtype=np.float64) for text in (one, other))
    return len(first) == len(second) and bool((np.abs(first - second) <= noise).all())

"""Named data sets of the Hugging Face Hub: their ids and columns."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from unslant.errors import InputError, hub_refusal, needed
from unslant.questions.records import Record, dataset_records

HUB = "hub:"
"""Prefix for any data set of the Hub: ``hub:ID``, ``hub:ID:CONFIG`` or ``hub:ID:CONFIG:SPLIT``."""


@dataclass(frozen=True)
class Recipe:
    """How one data set is loaded from the Hub.

    Attributes:
        name: for the command line and :func:`load_questions`.
        hub: the data set's id on the Hub.
        config: its configuration; empty for the only one.
        split: the split that is usually reported and has public answers.
        kind: ``questions``, ``math`` or ``judging``.
        fields: field -> column; other fields are read from columns with the usual names.
        answer_base: number of the first option where answers are numbers; None if unknown.
        note: something to know before use; may be empty.
    """

    name: str
    hub: str
    config: str = ""
    split: str = "test"
    kind: str = "questions"
    fields: Mapping[str, str] = field(default_factory=dict)
    answer_base: int | None = 0
    note: str = ""

    @property
    def origin(self) -> str:
        """The data set, for messages: ``Hub data set cais/mmlu (all, test)``."""
        parts = ", ".join(part for part in (self.config, self.split) if part)
        return f"Hub data set {self.hub} ({parts})"


_GATED = "gated: accept its terms on the Hub and run `hf auth login` first"

_RECIPES = (
    Recipe("mmlu", "cais/mmlu", "all"),
    Recipe("mmlu-pro", "TIGER-Lab/MMLU-Pro", fields={"answer": "answer_index"}, note="up to ten options"),
    Recipe("arc-challenge", "allenai/ai2_arc", "ARC-Challenge"),
    Recipe("arc-easy", "allenai/ai2_arc", "ARC-Easy"),
    Recipe(
        "qasc",
        "allenai/qasc",
        split="validation",
        fields={"context": "fact1,fact2"},
        note="eight options, with the two facts that answer the question as context; test answers are not public",
    ),
    Recipe("medmcqa", "openlifescienceai/medmcqa", split="validation", note="test answers are not public"),
    Recipe("teleqna", "netop/TeleQnA", note=_GATED),
    Recipe("commonsenseqa", "tau/commonsense_qa", split="validation", note="test answers are not public"),
    Recipe(
        "truthfulqa-mc1",
        "truthfulqa/truthful_qa",
        "multiple_choice",
        "validation",
        fields={"options": "mc1_targets"},
        note="2 to 13 options; the right one is first in the file",
    ),
    Recipe(
        "truthfulqa-mc2",
        "truthfulqa/truthful_qa",
        "multiple_choice",
        "validation",
        fields={"options": "mc2_targets"},
        note="several right options; these are first in the file",
    ),
    Recipe(
        "scienceqa", "tasksource/ScienceQA_text_only", fields={"context": "hint"}, note="the questions without an image"
    ),
    Recipe("multirc", "aps/super_glue", "multirc", "validation", note="several right options; passages as context"),
    Recipe("openbookqa", "allenai/openbookqa", "main"),
    Recipe(
        "mt-bench-human",
        "lmsys/mt_bench_human_judgments",
        split="human",
        answer_base=None,
        note="pairs of responses, judged by people; ties count as both right",
    ),
    Recipe("gsm8k", "openai/gsm8k", "main", kind="math", note="open maths questions"),
    Recipe("folio", "yale-nlp/FOLIO", split="validation", kind="judging", note=_GATED),
    Recipe("fld", "hitachi-nlp/FLD.v2", "default", kind="judging", note="statements to judge from facts"),
)
RECIPES: Mapping[str, Recipe] = {recipe.name: recipe for recipe in _RECIPES}
"""Name -> recipe of every named data set, in the order of the documentation."""


def hub_recipe(text: str, kind: str) -> Recipe:
    """The recipe for any data set, written ``hub:ID[:CONFIG[:SPLIT]]`` (split ``test`` unless given).

    Raises:
        InputError: if it is not of that form.
    """
    parts = text.removeprefix(HUB).split(":")
    if not parts[0] or len(parts) > 3:
        raise InputError(f"{text!r}: write hub:ID, hub:ID:CONFIG or hub:ID:CONFIG:SPLIT, as hub:cais/mmlu:all:test")
    hub, config, split = (*parts, "", "")[:3]
    return Recipe(hub.replace("/", "-"), hub, config, split or "test", kind, answer_base=None)


def fetch(recipe: Recipe) -> list[Record]:
    """The records of a recipe's split, from the Hub or its local cache.

    Raises:
        InputError: if it cannot be loaded for any reason, with a remedy.
    """
    needed("datasets", f"{recipe.origin}, a data set of the Hub,", InputError)
    from datasets import load_dataset

    try:
        with _asking_the_hub(from_cache=bool(hub_refusal())):
            rows = load_dataset(recipe.hub, recipe.config or None, split=recipe.split)
    except Exception as error:  # the client raises dozens of types, also of its network library
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(
            f"{recipe.origin} could not be loaded: {reason[:200]}. Check the network"
            + (f" ({recipe.note})" if recipe.note == _GATED else "")
            + ", or give the path of a local copy (JSONL, JSON, CSV, TSV or Parquet) instead of the name"
        ) from None
    return list(dataset_records(rows, recipe.origin))


@contextmanager
def _asking_the_hub(from_cache: bool) -> Iterator[None]:
    """Without the client's retry messages, which would bury the one error that is shown; with ``from_cache`` from its
    cache alone, because it would retry for half a minute."""
    import datasets
    import huggingface_hub

    places: list[Any] = [datasets.config, huggingface_hub.constants]
    before, logger = [place.HF_HUB_OFFLINE for place in places], logging.getLogger("huggingface_hub")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        for place in places if from_cache else ():
            place.HF_HUB_OFFLINE = True
        yield
    finally:
        logger.setLevel(level)
        for place, was in zip(places, before, strict=True):
            place.HF_HUB_OFFLINE = was

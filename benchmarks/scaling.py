"""How time and memory grow with questions, orders, options and context; and what is spent beside the model."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.measure import measured
from benchmarks.workloads import made_question
from unslant.models.hf.model import TransformersModel
from unslant.presentations import orders_for, present
from unslant.prompts import Cloze, Prompt, Writer, load_template

_BASE = {"questions": 6, "orders": 24, "options": 4, "context": 0}
_STEPS = {
    "questions": (3, 6, 12, 24),
    "orders": (6, 12, 24, 48),
    "options": (3, 4, 6, 8),
    "context": (0, 100, 300, 900),
}
_REPEATS = 3


def prompts_of(questions: int, orders: int, options: int, context: int) -> list[Prompt]:
    """Cloze prompts of made-up questions; ``context`` in words; no more orders than there are."""
    cloze = Cloze(Writer(load_template("plain")))
    prompts: list[Prompt] = []
    for i in range(questions):
        name = f"scaling-{i}"
        question = made_question(random.Random(name), name, stem=19, option=5, n=options, context=context)
        for order in orders_for(question, str(orders)):
            prompts += cloze.prompts(present(question, order))
    return prompts


def scaling(model: Any, words: Any) -> list[dict[str, Any]]:
    """One row per setting: the one thing changed, tokens, median seconds and peak memory."""
    rows = []
    for name, values in _STEPS.items():
        for value in values:
            setting = {**_BASE, name: value}
            if name == "orders":
                setting["options"] = 6
            prompts = prompts_of(**setting)
            runs = [_run(model, words, prompts) for _ in range(_REPEATS)]
            median = sorted(runs, key=lambda run: run.seconds)[_REPEATS // 2]
            rows.append(
                {
                    "changed": name,
                    "value": value,
                    "prompts": len(prompts),
                    "tokens": median.tokens,
                    "seconds": median.seconds,
                    "memory": max(run.memory for run in runs),
                }
            )
    return rows


def _run(model: Any, words: Any, prompts: Sequence[Prompt]) -> Any:
    scorer = TransformersModel(model, words, "scaling", engine="tree")
    with measured(model, scorer.cost) as run:
        for _ in scorer.score(prompts):
            pass
    return run


def overhead(model: Any, words: Any) -> dict[str, float]:
    """Share of a run's seconds spent on rendering, tokenization and planning, each in [0, 1]."""
    from unslant.models.hf import engine
    from unslant.models.hf import model as transformers_model
    from unslant.models.hf.tokenization import Encoder

    spent = {"rendering": 0.0, "tokenization": 0.0, "planning": 0.0}
    places = (
        (Encoder, "encode", "tokenization"),
        (transformers_model, "other_costs", "planning"),
        (engine, "plan", "planning"),
    )
    originals = [getattr(owner, name) for owner, name, _ in places]

    def timed(function: Any, kind: str) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            begun = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                spent[kind] += time.perf_counter() - begun

        return call

    shares: list[dict[str, float]] = []
    try:
        for (owner, name, kind), function in zip(places, originals, strict=True):
            setattr(owner, name, timed(function, kind))
        for _ in range(_REPEATS):
            scorer = TransformersModel(model, words, "overhead", engine="tree")
            spent.update(dict.fromkeys(spent, 0.0))
            begun = time.perf_counter()
            prompts = prompts_of(questions=12, orders=24, options=4, context=0)
            spent["rendering"] = time.perf_counter() - begun
            for _ in scorer.score(prompts):
                pass
            total = time.perf_counter() - begun
            shares.append({kind: seconds / total for kind, seconds in spent.items()})
    finally:
        for (owner, name, _), function in zip(places, originals, strict=True):
            setattr(owner, name, function)
    return {kind: float(np.median([share[kind] for share in shares])) for kind in spent}

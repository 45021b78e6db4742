"""What a whole audit costs against scoring the 24 orders alone: presentations, metrics and intervals included."""

from __future__ import annotations

import random
import time
from typing import Any

import numpy as np

from benchmarks.workloads import made_question
from unslant.auditing.study import audit
from unslant.models.hf.model import TransformersModel
from unslant.presentations import orders_for, present
from unslant.prompts import Cloze, Writer, load_template

_REPEATS = 9


def whole_audit(model: Any, words: Any, questions: int = 60) -> dict[str, Any]:
    """Seconds of both, interleaved, on made-up questions of four options, and the ratio of each pair.

    Both begin with questions in memory and end with scores, or with every metric of ``unslant audit``.
    """
    asked = [made_question(random.Random(f"whole-{i}"), f"whole-{i}", stem=19, option=5, n=4) for i in range(questions)]
    cloze = Cloze(Writer(load_template("plain")))

    def orders_alone(scorer: TransformersModel) -> None:
        prompts = [p for q in asked for order in orders_for(q, "24") for p in cloze.prompts(present(q, order))]
        for _ in scorer.score(prompts):
            pass

    def everything(scorer: TransformersModel) -> None:
        audit(scorer, asked)

    seconds: dict[str, list[float]] = {"orders": [], "audit": []}
    tokens = {}
    for repeat in range(_REPEATS + 1):  # the first of anything is slower, and is left out
        for name, run in (("orders", orders_alone), ("audit", everything)):
            scorer = TransformersModel(model, words, name, engine="tree")
            begun = time.perf_counter()
            run(scorer)
            if repeat:
                seconds[name].append(time.perf_counter() - begun)
            tokens[name] = scorer.cost.tokens
    ratios = [a / b for a, b in zip(seconds["audit"], seconds["orders"], strict=True)]
    return {
        "questions": questions,
        "tokens": tokens,
        "seconds": {name: float(np.median(values)) for name, values in seconds.items()},
        "ratios": ratios,
    }

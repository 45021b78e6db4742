"""Several threads, and a model that its owner goes on training."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch

import unslant
from tests.serving import Fault, FaultServer
from unslant.models.hf import model as hf_model
from unslant.models.hf.identity import PROMPTS, spread
from unslant.models.served import ServedModel
from unslant.prompts import Prompt


@pytest.fixture(scope="module")
def fair():
    return unslant.open_model("fair")


@pytest.mark.thorough
def test_audits_in_several_threads_give_the_numbers_of_one(fair) -> None:
    """Models share one attention function, and a model can be the same one."""
    models = [fair, "prefers-a", fair, "fair"]

    def accuracy(i: int) -> tuple[str, float]:
        run = unslant.audit(models[i % 4], "embedded", limit=12 + i)
        return run.run.engine, run.metrics.means["accuracy"].value

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(accuracy, range(8)))
    assert together == [accuracy(i) for i in range(8)]
    assert fair.unwrapped.model.config._attn_implementation != "unslant_tree"


def test_threads_that_share_a_served_model_count_their_prompts_apart() -> None:
    top = {f" {label}": -2.5 - k / 10 for k, label in enumerate("ABCDEFGH")}

    def audit(model: unslant.models.ScoringModel) -> int:
        return unslant.audit(model, "embedded", limit=12, orders="cyclic").run.cost.prompts

    body = {"choices": [{"index": 0, "text": " A", "logprobs": {"top_logprobs": [top]}}]}
    with FaultServer(lambda _: Fault(body=body)).running() as server:
        served = ServedModel("m", server.url)
        with ThreadPoolExecutor(3) as pool:
            together = list(pool.map(audit, [served] * 3))
        with unslant.Debiased(served, "vote:orders=2") as debiased, ThreadPoolExecutor(3) as pool:
            answers = list(pool.map(debiased.answer, unslant.load_questions("embedded", limit=24)))
    assert len(set(together)) == 1
    assert len(answers) == 24


def test_two_threads_that_encode_at_the_same_time_leave_a_sample_that_the_next_call_can_use(monkeypatch) -> None:
    opened = unslant.open_model("fair").unwrapped
    prompts = [Prompt(f"question {i}", (" A", " B")) for i in range(PROMPTS)]
    both = threading.Barrier(2)

    def slow_spread(*given: Any) -> Any:
        chosen = spread(*given)
        both.wait(timeout=20)
        return chosen

    with monkeypatch.context() as patched, ThreadPoolExecutor(2) as pool:
        patched.setattr(hf_model, "spread", slow_spread)
        list(pool.map(opened.encode, [prompts, prompts]))
    opened.encode(prompts)
    assert len(opened.sample) == PROMPTS


@pytest.mark.thorough
def test_a_model_in_training_mode_is_scored_without_dropout_and_left_in_it(zoo_model: Callable[..., Any]) -> None:
    opened = unslant.open_model(str(zoo_model("gpt2", small=True)))
    model = opened.unwrapped.model
    asked, methods = unslant.load_questions("embedded", limit=6), ("vote", "set-based")
    before, predicted = scores(opened), [probabilities(opened, method, asked) for method in methods]
    model.train()  # as a training loop does between two audits
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.5
    assert np.allclose(scores(opened), before, atol=1e-5)
    assert np.allclose(
        [probabilities(opened, method, asked) for method in methods], predicted, atol=1e-5, equal_nan=True
    )
    assert model.training


def probabilities(model: Any, method: str, questions: Any) -> list[float]:
    return [p for row in unslant.Debiased(model, method).predict_proba(questions) for p in row]


def scores(model: Any) -> list[float]:
    table = unslant.audit(model, "embedded", limit=4, orders="given").responses.table
    return [score for row in table["logprobs"].to_pylist() for score in row]

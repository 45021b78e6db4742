"""Attention over orders: the weights of transformers, and a figure of them."""

from __future__ import annotations

import math
from dataclasses import replace
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from tests.studies.label_guessers import when_unsure
from unslant import load_questions
from unslant.auditing import AuditSettings
from unslant.auditing.attention import AttentionOverOrders, attention_over_orders
from unslant.errors import InputError, ModelError
from unslant.models.open import opened
from unslant.presentations import parse_labels, present
from unslant.prompts import Cloze
from unslant.questions import Question
from unslant.reports import Report
from unslant.reports.export import drawing
from unslant.reports.style import PAGE

pytest.importorskip("torch")
WEIGHTS = resources.files("unslant.reference") / "weights" / "prefers-a"
QUESTION = next(question for question in load_questions("embedded") if len(question.options) == 4)


@pytest.fixture(scope="module")
def found() -> AttentionOverOrders:
    return attention_over_orders("prefers-a", QUESTION)


def test_weights_are_those_of_a_model_loaded_with_eager_attention(found: AttentionOverOrders) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    model = opened("prefers-a")
    before = model.model.config._attn_implementation
    again = attention_over_orders(model, QUESTION, orders="reverse")
    assert model.model.config._attn_implementation == before
    assert again.orders == ("A B C D", "D C B A")
    eager = AutoModelForCausalLM.from_pretrained(WEIGHTS, attn_implementation="eager", dtype=torch.float32).eval()
    writer = AuditSettings().resolved(False).writer()
    for i, (name, order) in enumerate(zip(again.orders, ((0, 1, 2, 3), (3, 2, 1, 0)), strict=True)):
        prompt = Cloze(writer).prompts(present(QUESTION, order, parse_labels("A")))[0]
        (item,) = model.encode([prompt])
        with torch.inference_mode():
            output = eager(torch.tensor(item.context.tolist())[None], output_attentions=True)
        expected = output.attentions[-1][0, :, -1].numpy()
        assert again.weights[i, :, : expected.shape[1]] == pytest.approx(expected, abs=1e-5)
        whole = found.weights[found.orders.index(name)]
        assert again.weights[i] == pytest.approx(whole[:, : again.weights.shape[2]], nan_ok=True)
    assert np.nansum(found.weights, axis=2) == pytest.approx(1.0, abs=1e-5)
    assert found.weights.shape[:2] == (24, eager.config.num_attention_heads)


def test_a_question_that_reads_the_same_in_every_order_is_refused() -> None:
    with pytest.raises(InputError, match="reads the same in every order"):
        attention_over_orders("prefers-a", Question("q", "2 + 2?", ("4", "4"), frozenset({0})))


def test_attention_to_options_moves_with_their_order_and_to_the_question_hardly(found: AttentionOverOrders) -> None:
    assert found.orders[0] == "A B C D"
    assert (found.spread[:, 1] > found.spread[:, 0]).all()
    still = replace(found, weights=np.broadcast_to(found.weights[:1], found.weights.shape))
    assert still.spread == pytest.approx(0)
    assert "in 0 of" in still.page().headline


@pytest.mark.thorough
def test_its_figure_has_a_line_for_each_order(found: AttentionOverOrders, tmp_path: Path) -> None:
    (panel,) = found.page().panels
    assert len(panel.charts) == 2
    for chart in panel.charts:
        spec = drawing(chart, PAGE).spec
        assert "N = 24 orders" in spec["description"]
        rows = [row for data in spec["datasets"].values() for row in data] if "datasets" in spec else []
        rows = rows or [row for layer in spec["layer"] for row in layer["data"].get("values", ()) if "order" in row]
        assert {row["order"] for row in rows} == set(found.orders)
        assert all(math.isfinite(row["attention"]) and row["at"] > 0 for row in rows)
    Report.of([found]).to_html(tmp_path / "attention.html")
    assert "Attention over orders" in (tmp_path / "attention.html").read_text("utf-8")


def test_what_has_no_attention_to_show_is_refused() -> None:
    with pytest.raises(ModelError, match="only models that transformers runs"):
        attention_over_orders(when_unsure({"A": 6.0}), QUESTION)
    with pytest.raises(InputError, match="one order only"):
        attention_over_orders("prefers-a", replace(QUESTION, pinned=(0, 1, 2, 3)))

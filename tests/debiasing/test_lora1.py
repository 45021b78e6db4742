from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch

from tests.debiasing.conftest import make_questions, open_model
from tests.models.zoo import ZooFolder
from unslant.debiasing.asker import ModelAsker
from unslant.debiasing.lora1 import Epoch, TrainSettings, collapsed
from unslant.debiasing.lora1.adapter import Adapted, attention_projections
from unslant.debiasing.lora1.training import (
    content_logprobs,
    evaluate,
    log_bias,
    loss,
    order_entropy,
    question_loss,
    train,
)
from unslant.debiasing.model_pass import run
from unslant.errors import InputError, ModelError
from unslant.models.hf.model import TransformersModel
from unslant.presentations import ALPHABETS, all_orders, present
from unslant.prompts import Cloze, Writer, load_template

pytestmark = pytest.mark.thorough

Loaded = Callable[[str], TransformersModel]
QUESTIONS = make_questions([4] * 12 + [3, 5])
QUICK = TrainSettings(epochs=2, questions_per_epoch=4, max_orders=6, learning_rate=1e-3)


def test_loss_is_the_papers() -> None:
    """Eq. 9 and 10 written out with loops."""
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(4), size=6)
    bias = sum(
        np.mean([(math.log(probs[k, i]) - math.log(np.mean(probs[:, i]))) ** 2 for i in range(4)]) for k in range(6)
    )
    entropy = -sum(probs[k, i] * math.log(probs[k, i]) for k in range(6) for i in range(4))
    logs = torch.log(torch.tensor(probs))
    assert float(log_bias(logs)) == pytest.approx(bias, rel=1e-12)
    assert float(order_entropy(logs)) == pytest.approx(entropy, rel=1e-12)
    assert float(loss(logs, 0.1)) == pytest.approx(bias + 0.1 * entropy, rel=1e-12)


def test_no_loss_where_orders_agree_and_are_certain() -> None:
    logs = torch.log_softmax(torch.tensor([[50.0, 0.0, 0.0]]), dim=1).repeat(6, 1)
    assert float(loss(logs, 0.1)) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("entry", ["llama", "qwen2", "phi", "gpt2", "gpt-neox", "phi3"])
def test_tree_gradient_equals_plain_gradient(entry: str, zoo_loaded: Loaded) -> None:
    model = zoo_loaded(entry)
    asker = ModelAsker(model)
    adapted = Adapted.new(model, TrainSettings(dropout=0.0))
    with torch.no_grad():
        for parameter in adapted.trainable().values():
            parameter.add_(torch.randn_like(parameter), alpha=0.05)
    gradients = []
    for tree in (True, False):
        adapted.peft_model.zero_grad()
        for question in (QUESTIONS[0], QUESTIONS[12]):
            question_loss(asker, question, QUICK, tree=tree).backward()
        gradients.append(torch.cat([parameter.grad.flatten().double() for parameter in adapted.trainable().values()]))
    adapted.close()
    assert gradients[1].norm() > 0
    assert (gradients[0] - gradients[1]).norm() < 1e-4 * gradients[1].norm()


PROJECTIONS = {
    "llama": ["self_attn.k_proj", "self_attn.o_proj", "self_attn.q_proj", "self_attn.v_proj"],
    "qwen2": ["self_attn.k_proj", "self_attn.o_proj", "self_attn.q_proj", "self_attn.v_proj"],
    "phi": ["self_attn.dense", "self_attn.k_proj", "self_attn.q_proj", "self_attn.v_proj"],
    "phi3": ["self_attn.o_proj", "self_attn.qkv_proj"],
    "gpt2": ["attn.c_attn", "attn.c_proj"],
    "gpt-neox": ["attention.dense", "attention.query_key_value"],
}


@pytest.mark.parametrize("entry", ["llama", "qwen2", "phi", "gpt2"])
def test_trains_and_loads_in_plain_peft(entry: str, zoo_model: ZooFolder, zoo_loaded: Loaded, tmp_path: Path) -> None:
    import peft
    from transformers import AutoModelForCausalLM

    folder, model = zoo_model(entry, small=True), zoo_loaded(entry)
    assert attention_projections(model.model) == PROJECTIONS[entry]
    asker = ModelAsker(model)
    before = question_loss(asker, QUESTIONS[0], QUICK)
    adapted, _ = train(asker, QUESTIONS, QUESTIONS[:2], replace(QUICK, epochs=1), out=tmp_path / "a")
    shown = [present(QUESTIONS[0], order) for order in all_orders(QUESTIONS[0])][:6]
    prompts = [prompt for p in shown for prompt in asker.elicitation.prompts(p)]
    ours = content_logprobs(run(model.model, model.encode(prompts)), shown)
    adapted.close()
    assert question_loss(asker, QUESTIONS[0], QUICK) == before

    plain = peft.PeftModel.from_pretrained(
        AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32), tmp_path / "a"
    )
    theirs = content_logprobs(run(plain.eval(), model.encode(prompts), tree=False), shown)
    torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=0)
    assert not torch.allclose(ours, content_logprobs(run(model.model, model.encode(prompts)), shown), atol=1e-4)
    config = json.loads((tmp_path / "a" / "adapter_config.json").read_text())
    assert (config["r"], config["lora_alpha"], config["lora_dropout"]) == (1, 16.0, 0.05)


@pytest.mark.parametrize("entry", ["phi3", "gpt-neox"])
def test_other_projections(entry: str, zoo_loaded: Loaded) -> None:
    assert attention_projections(zoo_loaded(entry).model) == PROJECTIONS[entry]


def weights(folder: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    return load_file(folder / "adapter_model.safetensors")


class Killed(BaseException):
    pass


def test_a_killed_run_goes_on_to_the_same_adapter(tiny_folder: Path, tmp_path: Path) -> None:
    settings = replace(QUICK, epochs=3)
    _, whole = train(ModelAsker(open_model(tiny_folder)), QUESTIONS, QUESTIONS[:3], settings, out=tmp_path / "whole")

    def kill_in_epoch_2(phase: str, done: int, total: int) -> None:
        if phase.startswith("epoch 2") and done == 3:
            raise Killed

    model = open_model(tiny_folder)
    before = {key: value.clone() for key, value in model.model.state_dict().items()}
    with pytest.raises(Killed):
        train(ModelAsker(model), QUESTIONS, QUESTIONS[:3], settings, out=tmp_path / "cut", progress=kill_in_epoch_2)
    assert all((value == before[key]).all() for key, value in model.model.state_dict().items())
    assert not (tmp_path / "cut" / "adapter_model.safetensors").exists()

    _, again = train(ModelAsker(open_model(tiny_folder)), QUESTIONS, QUESTIONS[:3], settings, out=tmp_path / "cut")
    ours, theirs = weights(tmp_path / "whole"), weights(tmp_path / "cut")
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[key], theirs[key]) for key in ours)
    assert [e.to_dict() for e in again] == [e.to_dict() for e in whole]
    lines = [json.loads(line) for line in (tmp_path / "cut" / "log.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == [0, 1, 2, 3]
    assert all(line["n"] == 3 and line["pbm"] > 0 for line in lines)

    asker, longer = ModelAsker(open_model(tiny_folder)), replace(settings, epochs=4)
    with pytest.raises(InputError, match="another set of held-out questions"):  # its log would mix the two
        train(asker, QUESTIONS, QUESTIONS[:2], longer, out=tmp_path / "cut")
    assert len(train(asker, QUESTIONS, QUESTIONS[:3], longer, out=tmp_path / "cut")[1]) == 5


def test_a_folder_of_another_run_is_refused(tiny_folder: Path, tmp_path: Path) -> None:
    once = replace(QUICK, epochs=1)
    train(ModelAsker(open_model(tiny_folder)), QUESTIONS, [], once, out=tmp_path)
    with pytest.raises(InputError, match="another entropy_weight"):
        train(ModelAsker(open_model(tiny_folder)), QUESTIONS, [], replace(once, entropy_weight=0.2), out=tmp_path)
    with pytest.raises(InputError, match="another set of questions"):
        train(ModelAsker(open_model(tiny_folder)), QUESTIONS[1:], [], once, out=tmp_path)
    for name, asker in {
        "labels": ModelAsker(open_model(tiny_folder), alphabet=ALPHABETS["a"]),
        "template": ModelAsker(open_model(tiny_folder), Cloze(Writer(load_template("base-rate")))),
        "chat": ModelAsker(open_model(tiny_folder), Cloze(Writer(load_template("plain"), chat=True))),
        "to_end": ModelAsker(open_model(tiny_folder), Cloze(Writer(load_template("plain"), to_end=True))),
    }.items():
        with pytest.raises(InputError, match=f"was trained with another {name}; use the same"):
            train(asker, QUESTIONS, [], once, out=tmp_path)
    for name, change in {
        "dtype": lambda model: model.bfloat16(),
        "model": lambda model: model.model.layers[0].mlp.up_proj.weight.data.mul_(2),
    }.items():
        other = open_model(tiny_folder)
        change(other.model)
        with pytest.raises(InputError, match=f"another .*{name}"):
            train(ModelAsker(other), QUESTIONS, [], once, out=tmp_path)
    (tmp_path / "checkpoint.pt").write_bytes(b"something else")
    with pytest.raises(InputError, match="not a checkpoint"):
        train(ModelAsker(open_model(tiny_folder)), QUESTIONS, [], once, out=tmp_path)


@pytest.mark.filterwarnings("ignore:LoRA-1")
def test_training_moves_the_loss_down(tiny: TransformersModel) -> None:
    settings = TrainSettings(epochs=3, questions_per_epoch=14, max_orders=12, learning_rate=3e-3)
    adapted, log = train(ModelAsker(tiny), QUESTIONS, QUESTIONS, settings)
    adapted.close()
    assert log[-1].loss < 0.7 * log[0].loss
    assert log[-1].pbm < 0.7 * log[0].pbm


def test_what_cannot_be_trained(tiny: TransformersModel) -> None:
    pinned = [replace(q, pinned=tuple(range(len(q.options)))) for q in QUESTIONS]
    with pytest.raises(InputError, match="reordered"):
        train(ModelAsker(tiny), pinned, [], QUICK)
    with pytest.raises(ModelError, match="targets"):
        train(ModelAsker(tiny), QUESTIONS, [], replace(QUICK, targets="w_pack"))
    adapted = Adapted.new(tiny, QUICK)
    adapted.close()
    adapted.close()


def test_the_accuracy_of_an_epoch_has_the_interval_of_an_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    """All held-out questions right is no certainty: Wilson's lower bound is 0.785 for 14 of 14."""
    right = [np.eye(len(q.options))[[min(q.answers)] * 6] for q in QUESTIONS]
    monkeypatch.setattr("unslant.debiasing.lora1.training.ask_orders", lambda *_: right)
    asker = SimpleNamespace(forget=lambda: None)
    measured = evaluate(cast(Any, asker), QUESTIONS, QUICK, 1)
    assert (measured.accuracy, measured.accuracy_n, measured.accuracy_high) == (1.0, 14, 1.0)
    assert 0.7 < measured.accuracy_low < 0.85
    one_wrong = [probs if i else probs[:, ::-1] for i, probs in enumerate(right)]
    monkeypatch.setattr("unslant.debiasing.lora1.training.ask_orders", lambda *_: one_wrong)
    worse = evaluate(cast(Any, asker), QUESTIONS, QUICK, 1)
    assert worse.accuracy == pytest.approx(13 / 14)
    assert worse.accuracy_low < measured.accuracy_low < worse.accuracy_high


def epoch(number: int, entropy: float, accuracy: float) -> Epoch:
    return Epoch(number, 60, 0.1, entropy, accuracy, 60, 0.03, math.nan, math.nan, 1.0)


@pytest.mark.parametrize(
    ("last", "warned"),
    [
        (epoch(5, 0.98, 0.45), True),
        (epoch(5, 0.70, 0.50), True),
        (epoch(5, 0.70, 0.90), False),  # less certain, as right as before
        (epoch(5, 0.30, 0.50), False),  # wrong, but not for want of certainty
        (epoch(5, 0.97, math.nan), True),  # no right answers known
        (epoch(5, 0.35, 0.93), False),
    ],
)
def test_collapse(last: Epoch, warned: bool) -> None:
    assert bool(collapsed([epoch(0, 0.3, 0.95), last])) == warned

"""Half precision is the model's business; what is read of its output layer is computed in float32."""

from __future__ import annotations

import warnings
from dataclasses import asdict

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

import unslant
from tests.models.samples import QUESTIONS, sample_prompts
from tests.models.scoring import load, score, tokenizer_of
from tests.models.zoo import ZooFolder
from unslant.models.base import Cost, Scored, facts_of
from unslant.models.hf import identity, precision
from unslant.models.hf.engine import PlainEngine, float32_output
from unslant.models.hf.model import TransformersModel
from unslant.responses.provenance import Agreement

HALF = [torch.bfloat16, torch.float16]


def half(folder, dtype: torch.dtype = torch.bfloat16, engine: str = "auto") -> TransformersModel:
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return TransformersModel(model, tokenizer_of(folder), folder.name, engine=engine)


@pytest.mark.parametrize("dtype", HALF)
def test_scores_are_those_of_the_hidden_states_in_float32(zoo_model: ZooFolder, dtype: torch.dtype) -> None:
    model = half(zoo_model("llama", small=True), dtype, "plain")
    prompts = sample_prompts()[:20:4]
    head = model.model.lm_head
    for item, found in zip(model.encode(prompts), score(model, prompts), strict=True):
        for c, ids in enumerate(item.candidates):
            sequence = torch.from_numpy(np.concatenate([item.context, ids])).long()
            with torch.inference_mode():
                hidden = model.model.model(sequence[None]).last_hidden_state[0]
                logprobs = torch.log_softmax(hidden.float() @ head.weight.float().T, -1)
            at = torch.arange(len(item.context), len(sequence))
            exact = float(logprobs[at - 1, sequence[at]].double().sum())
            # beside the rounding of hidden states, which differs a little with the length of the batch
            assert found[c] == pytest.approx(exact, abs=0.1 if dtype is torch.bfloat16 else 0.02)


@pytest.mark.parametrize("name", ["gemma2", "cohere", "gpt-neox", "gptj"])
def test_no_two_labels_are_rounded_into_one(zoo_model: ZooFolder, name: str) -> None:
    prompts = [prompt for prompt in sample_prompts() if len(prompt.continuations) > 1][:60]
    model = half(zoo_model(name, small=True))
    found = score(model, prompts)
    assert all(len(set(scores.tolist())) == len(scores) for scores in found)
    if name == "gemma2":  # or there would be nothing to be seen here
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("unslant.models.hf.engine.float32_output", lambda model: torch.inference_mode())
            rounded = score(half(zoo_model(name, small=True), engine="plain"), prompts)
        assert any(len(set(scores.tolist())) < len(scores) for scores in rounded)


@pytest.mark.parametrize("chunk", [1 << 24, 1000])
def test_the_layer_is_itself_again_behind_the_block(zoo_model: ZooFolder, monkeypatch, chunk: int) -> None:
    monkeypatch.setattr("unslant.models.hf.engine._ELEMENTS", chunk)
    model = AutoModelForCausalLM.from_pretrained(zoo_model("qwen2", small=True), dtype=torch.bfloat16)
    ids = torch.arange(40)[None]
    with torch.inference_mode():
        before = model(ids).logits
        with float32_output(model):
            wide = model(ids).logits
        with pytest.raises(ZeroDivisionError), float32_output(model):
            raise ZeroDivisionError
        assert torch.equal(model(ids).logits, before)
    assert (before.dtype, wide.dtype) == (torch.bfloat16, torch.float32)
    torch.testing.assert_close(wide, before.float(), rtol=0, atol=0.2)
    assert "forward" not in vars(model.lm_head)
    wide_model = AutoModelForCausalLM.from_pretrained(zoo_model("qwen2", small=True))
    with float32_output(wide_model):
        assert "forward" not in vars(wide_model.lm_head)  # float32 is left as it is, to the bit


@pytest.mark.parametrize("how", ["lora", "saved"])
def test_an_output_layer_inside_an_adapter(zoo_model: ZooFolder, how: str) -> None:
    peft = pytest.importorskip("peft")
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_pretrained(zoo_model("llama"), dtype=torch.bfloat16)
    options = {"target_modules": ["lm_head"]} if how == "lora" else {"modules_to_save": ["lm_head"]}
    config = peft.LoraConfig(r=2, init_lora_weights=False, **({"target_modules": ["q_proj"]} | options))
    adapted = peft.get_peft_model(model, config).eval()
    ids = torch.arange(30)[None]
    types = {name: parameter.dtype for name, parameter in adapted.named_parameters()}
    with torch.inference_mode():
        before = adapted(input_ids=ids).logits
        with float32_output(adapted):
            wide = adapted(input_ids=ids).logits
    assert wide.dtype == torch.float32
    assert len(wide[0, -1].unique()) > 2 * len(before[0, -1].unique())
    torch.testing.assert_close(wide, before.float(), rtol=0, atol=0.2)
    assert types == {name: parameter.dtype for name, parameter in adapted.named_parameters()}
    assert all(isinstance(parameter, torch.nn.Parameter) for parameter in adapted.parameters())


@pytest.mark.parametrize("engine", ["tree", "plain"])
def test_a_sure_answer_is_not_above_0(zoo_model: ZooFolder, engine: str) -> None:
    model = load(zoo_model("llama", small=True), engine)
    prompts = sample_prompts()[:24]
    for item in model.encode(prompts):
        with torch.no_grad():
            hidden = model.model.model(torch.from_numpy(item.context).long()[None]).last_hidden_state[0, -1]
            model.model.lm_head.weight[int(item.candidates[0][0])] = 1234.5 * hidden / hidden.norm()
    found = np.concatenate(score(model, prompts))
    assert -1e-3 < found.max() <= 0


def test_agreement_with_float32_is_measured_on_the_run_and_reported(zoo_model: ZooFolder, monkeypatch) -> None:
    model = half(zoo_model("llama", small=True))
    result = unslant.audit(model, QUESTIONS[:3], orders="cyclic")
    told = result.responses.run.half_precision
    assert told.prompts == identity.PROMPTS
    assert 0 <= told.argmax <= 1
    assert 0 < told.mean < told.largest < 2
    encoded = model.sample
    exact = dict(PlainEngine(load(zoo_model("llama", small=True)).model, 1024).score(encoded, Cost()))
    found = dict(PlainEngine(model.model, 1024).score(encoded, Cost()))
    apart = np.abs(np.concatenate([found[i] - exact[i] for i in range(len(encoded))]))
    # the copy in float32 has the weights as they were rounded, so it differs a little from the model as it was
    assert told.mean == pytest.approx(apart.mean(), rel=0.9)
    monkeypatch.setattr(precision, "_free_memory", lambda: 0)
    assert facts_of(model)["half_precision"] == Agreement()
    assert "half_precision" not in facts_of(load(zoo_model("llama", small=True)))


def test_agreement_counts_other_answers(zoo_model: ZooFolder, monkeypatch) -> None:
    model = half(zoo_model("llama", small=True)).model
    encoded = half(zoo_model("llama", small=True)).encode(sample_prompts()[:6])
    scores = iter([[np.log([0.6, 0.4])] * 6, [np.log([0.6, 0.4])] * 4 + [np.log([0.4, 0.6])] * 2])
    monkeypatch.setattr(precision, "plain_scores", lambda model, encoded: next(scores))
    found = precision.agreement(model, encoded)
    assert found is not None
    assert asdict(found) == pytest.approx(
        {"prompts": 6, "argmax": 4 / 6, "largest": np.log(1.5), "mean": np.log(1.5) / 3}
    )
    single = iter([[np.log([0.6])] * 6, [np.log([0.5])] * 6])
    monkeypatch.setattr(precision, "plain_scores", lambda model, encoded: next(single))
    found = precision.agreement(model, encoded)
    assert found is not None
    assert found.argmax is None


def test_scored_without_log_probabilities_says_why() -> None:
    assert Scored(0, None, "because").error == "because"


@pytest.mark.parametrize("tree", [True, False])
def test_passes_inside_the_model_read_float32_too(zoo_model: ZooFolder, tree: bool) -> None:
    from unslant.debiasing.model_pass import run
    from unslant.debiasing.set_based import Segment, last_logits

    model = half(zoo_model("gemma2", small=True))
    encoded = model.encode(sample_prompts()[:6])
    found = run(model.model, encoded, tree=tree)
    assert found.hidden.dtype == torch.bfloat16
    assert all(len(scores.unique()) == len(scores) for scores in found.logprobs)
    logits = last_logits(model.model, [Segment(encoded[0].context, 0)], [0])
    assert len(logits.unique()) > 0.9 * logits.numel()  # and not a few steps of bfloat16
    found.logprobs[0].sum().backward()
    assert model.model.get_input_embeddings().weight.grad is not None

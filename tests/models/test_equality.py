"""The prefix tree gives what each prompt gives alone, on every supported class."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers import AutoModelForCausalLM

from tests.models.samples import preamble_prompts, sample_prompts
from tests.models.scoring import assert_equal, distinct_nodes, load, score, tokenizer_of
from tests.models.zoo import ZOO, ZooFolder, variant
from unslant.errors import ModelError
from unslant.models.base import Cost
from unslant.models.hf.engine import PlainEngine, TreeEngine
from unslant.models.hf.model import TransformersModel
from unslant.prompts import Message, Prompt

FIRST = frozenset({"llama", "gemma2", "gpt2", "phi3", "qwen2-sliding", "mamba"})
"""One of each way to attend, for the quick run."""


def _by_kind(name: str):
    return name if name in FIRST else pytest.param(name, marks=variant(name).marks or [pytest.mark.thorough])


def _named(supported: bool) -> list:
    names = sorted(name for name, entry in ZOO.items() if entry.tree_supported == supported and name != "phi3-longrope")
    return [_by_kind(name) for name in names]


@pytest.mark.parametrize("name", _named(True))
def test_tree_equals_plain(zoo_model: ZooFolder, name):
    model = load(zoo_model(name, small=True))
    prompts = list(sample_prompts())
    encoded = model.encode(prompts)
    expected = dict(PlainEngine(model.model, 4096).score(encoded, Cost()))
    expected = [expected[i] for i in range(len(prompts))]
    assert max(scores.max() - scores.min() for scores in expected) > 0.5
    nodes = distinct_nodes(encoded)

    for budget in (40, 300, 1_000_000):
        engine, cost = TreeEngine(model.model, budget), Cost()
        found = dict(engine.score(encoded, cost))
        assert_equal([found[i] for i in range(len(prompts))], expected)
        assert cost.tokens == nodes
        assert cost.prompts == len(prompts)
        assert (cost.forwards == 1) == (budget == 1_000_000)

    found = dict(TreeEngine(model.model, 1).score(encoded[90:102], Cost()))  # one sequence a batch
    assert_equal([found[i] for i in range(12)], expected[90:102])


@pytest.mark.parametrize("name", _named(False))
def test_models_the_tree_cannot_serve_fall_back_with_one_warning(zoo_model: ZooFolder, name):
    prompts = sample_prompts()[:12]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = load(zoo_model(name, small=True), engine="auto")
        found = score(model, prompts)
        score(model, prompts[:3])
    assert model.engine == "plain"
    assert [str(w.message).count("without the prefix tree") for w in caught if w.category is UserWarning] == [1]
    assert_equal(found, alone(model, prompts))
    with pytest.raises(ModelError, match=f"{name}: the prefix tree cannot serve this model"):
        load(zoo_model(name, small=True), engine="tree")


def alone(model: TransformersModel, prompts: Sequence[Prompt]) -> list[NDArray[np.float64]]:
    """Every candidate run by itself, unbatched and without any of the engines."""
    results = []
    for item in model.encode(prompts):
        scores = []
        for ids in item.candidates:
            sequence = torch.from_numpy(np.concatenate([item.context, ids])).long()
            with torch.inference_mode():
                logprobs = torch.log_softmax(model.model(sequence[None]).logits[0].double(), -1)
            at = torch.arange(len(item.context), len(sequence))
            scores.append(float(logprobs[at - 1, sequence[at]].sum()))
        results.append(np.array(scores))
    return results


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["llama", "gemma2", "phi3-longrope"])
@pytest.mark.parametrize("engine", ["tree", "plain"])
def test_both_engines_equal_every_candidate_run_alone(zoo_model: ZooFolder, name, engine):
    model = load(zoo_model(name, small=True), engine=engine, token_budget=500)
    prompts = sample_prompts()[::9]
    assert_equal(score(model, prompts), alone(model, prompts))


@pytest.mark.parametrize("name", ["llama-chat", pytest.param("phi3", marks=pytest.mark.thorough)])
def test_chats(zoo_model: ZooFolder, name):
    model = load(zoo_model(name, small=name == "llama-chat"), token_budget=200)
    prompts = [
        Prompt("", ("A", "B", "C"), (Message("user", prompt.text), Message("assistant", "B"), Message("user", "Sure?")))
        for prompt in sample_prompts()[:8]
    ] + [Prompt("Answer:", (" A", " B"), (Message("user", prompt.text),)) for prompt in sample_prompts()[:4]]
    assert_equal(score(model, prompts), alone(model, prompts))


def test_bfloat16_stays_near_float32(zoo_model: ZooFolder):
    exact = load(zoo_model("llama", small=True))
    rough = load(zoo_model("llama", small=True))
    rough.model.to(torch.bfloat16)
    prompts = sample_prompts()[::3]
    truth = np.concatenate(score(exact, prompts))
    tree = np.concatenate(score(TransformersModel(rough.model, rough.tokenizer, "llama", engine="tree"), prompts))
    plain = np.concatenate(score(TransformersModel(rough.model, rough.tokenizer, "llama", engine="plain"), prompts))
    # Rounding to 8 bits moves both paths; the tree is no further from the truth than the plain path, within a third.
    assert np.abs(tree - truth).mean() < 1.33 * np.abs(plain - truth).mean()
    assert np.abs(tree - plain).max() < 0.35


def test_every_call_computes_every_node_of_its_own_once(zoo_model: ZooFolder):
    """Nothing is kept from one call to the next: the model may have changed in between."""
    model = load(zoo_model("llama", small=True))
    prompts = preamble_prompts()
    assert len(prompts) > 40
    for start in range(0, len(prompts), 11):
        before = model.cost.copy()
        part = prompts[start : start + 11]
        score(model, part)
        spent = model.cost - before
        assert spent.tokens == distinct_nodes(model.encode(part))
        assert spent.prompts == len(part)


def test_weights_changed_in_place_are_noticed(zoo_model: ZooFolder):
    model = load(zoo_model("llama", small=True))
    prompts = preamble_prompts()[:20]
    score(model, prompts[:10])
    with torch.no_grad():
        model.model.model.layers[0].self_attn.k_proj.weight.mul_(1.5)
    assert_equal(score(model, prompts[10:]), alone(model, prompts[10:]))


@pytest.mark.thorough
def test_an_adapter_switched_off_is_noticed(zoo_model: ZooFolder):
    peft = pytest.importorskip("peft")
    adapter = peft.LoraConfig(r=2, target_modules=["k_proj", "v_proj"], init_lora_weights=False)
    bare = AutoModelForCausalLM.from_pretrained(zoo_model("llama", small=True))
    model = TransformersModel(
        peft.get_peft_model(bare, adapter), tokenizer_of(zoo_model("llama", small=True)), "adapted"
    )
    assert model.engine == "tree"
    prompts = preamble_prompts()[:20]
    score(model, prompts[:10])
    with model.model.disable_adapter():
        assert_equal(score(model, prompts[10:]), alone(model, prompts[10:]))
    assert_equal(score(model, prompts[10:]), alone(model, prompts[10:]))


@pytest.mark.thorough
@pytest.mark.parametrize("engine", ["tree", "plain"])
@pytest.mark.parametrize("error", [torch.OutOfMemoryError, RuntimeError])
def test_out_of_memory_halves_the_budget_and_continues(zoo_model: ZooFolder, monkeypatch, engine, error):
    model = load(zoo_model("llama", small=True), engine=engine, token_budget=4000)
    prompts = preamble_prompts()
    expected = score(load(zoo_model("llama", small=True), engine="plain"), prompts)
    sizes = []
    if engine == "tree":  # at the engine: a model whose own forward is patched is scored plainly
        pass_of_tree = model._engine.forward

        def small_tree_memory(batch, spine):
            if len(batch.ids) > 700:
                raise error("CUDA out of memory. Tried to allocate 2 GiB")
            sizes.append(len(batch.ids))
            return pass_of_tree(batch, spine)

        monkeypatch.setattr(model._engine, "forward", small_tree_memory)
    else:
        forward = model.model.forward

        def small_memory(*args, input_ids, **kwargs):
            if input_ids.numel() > 700:
                raise error("CUDA out of memory. Tried to allocate 2 GiB")
            sizes.append(input_ids.numel())
            return forward(*args, input_ids=input_ids, **kwargs)

        monkeypatch.setattr(model.model, "forward", small_memory)
    before = model.cost.copy()
    yielded = [(scored.index, scored.logprobs) for scored in model.score(prompts)]
    spent = model.cost - before
    assert sorted(i for i, _ in yielded) == list(range(len(prompts)))  # each once
    assert_equal([scores for _, scores in sorted(yielded, key=lambda pair: pair[0])], expected)
    assert spent.prompts == len(prompts)
    assert spent.forwards == len(sizes)
    if engine == "tree":
        assert spent.tokens == sum(sizes)
    whole = [len(item.context) + len(ids) - 1 for item in model.encode(prompts) for ids in item.candidates]
    assert spent.tokens_plain <= sum(whole)

    score(model, prompts[:40])  # and stays small: nothing fails any more
    assert max(sizes) <= 700


def test_out_of_memory_in_the_middle_of_a_run(zoo_model: ZooFolder, monkeypatch):
    """What was scored before memory ran out is not scored again."""
    model = load(zoo_model("llama", small=True), token_budget=300)
    prompts = sample_prompts()[:60]
    expected = score(load(zoo_model("llama", small=True), engine="plain"), prompts)
    forward, calls = model.model.forward, []

    def third_fails(*args, **kwargs):
        calls.append(1)
        if len(calls) == 3:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return forward(*args, **kwargs)

    monkeypatch.setattr(model.model, "forward", third_fails)
    yielded = [(scored.index, scored.logprobs) for scored in model.score(prompts)]
    assert sorted(i for i, _ in yielded) == list(range(len(prompts)))
    assert_equal([scores for _, scores in sorted(yielded, key=lambda pair: pair[0])], expected)


def test_no_memory_at_all_is_one_error(zoo_model: ZooFolder, monkeypatch):
    model = load(zoo_model("llama", small=True))

    def nothing_fits(*args, **kwargs):
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(model.model, "forward", nothing_fits)
    with pytest.raises(ModelError, match="out of memory even with"):
        list(model.score(sample_prompts()[:5]))


def test_other_errors_of_the_model_are_not_swallowed(zoo_model: ZooFolder, monkeypatch):
    model = load(zoo_model("llama", small=True))

    def broken(*args, **kwargs):
        raise RuntimeError("shapes do not fit")

    monkeypatch.setattr(model.model, "forward", broken)
    with pytest.raises(RuntimeError, match="shapes do not fit"):
        list(model.score(sample_prompts()[:5]))


def test_damaged_weights_are_an_error_that_names_the_question(zoo_model: ZooFolder):
    model = load(zoo_model("llama", small=True))
    with torch.no_grad():
        model.model.lm_head.weight[5] = torch.nan
    with pytest.raises(ModelError, match=r"question 'q0'.*not finite"):
        list(model.score(sample_prompts()[:5]))


def test_a_prompt_beyond_the_context_names_its_question(zoo_model: ZooFolder):
    model = load(zoo_model("gpt2"))
    long = Prompt("word " * 1100 + "Answer:", (" A", " B"), group="the long one")
    with pytest.raises(ModelError, match=r"question 'the long one'.*1102 tokens.*takes 1024"):
        list(model.score([*sample_prompts()[:3], long]))


def test_no_prompts_no_scores(zoo_model: ZooFolder):
    assert list(load(zoo_model("llama", small=True)).score([])) == []

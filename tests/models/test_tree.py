"""The prefix tree itself: any set of prompts, any batches, any model with attention; and its gradients."""

from __future__ import annotations

import gc
import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import Gemma2Config, Gemma2ForCausalLM, LlamaConfig, LlamaForCausalLM

from tests.models.scoring import distinct_nodes
from unslant.models.base import Cost, Encoded
from unslant.models.hf import attention, other_costs, plan
from unslant.models.hf.engine import PlainEngine, TreeEngine, using

_SIZES = {
    "vocab_size": 97,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "initializer_range": 0.3,
}


def _model(kind: str):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        if kind == "llama":
            return LlamaForCausalLM(LlamaConfig(**_SIZES)).eval()
        config = Gemma2Config(
            **_SIZES, head_dim=8, sliding_window=5, query_pre_attn_scalar=8, attn_logit_softcapping=3.0
        )
        return Gemma2ForCausalLM(config).eval()


MODELS = {kind: _model(kind) for kind in ("llama", "gemma2")}

# Few different tokens, so that prompts often share a beginning.
_IDS = st.lists(st.integers(0, 2), min_size=1, max_size=9).map(lambda ids: np.array(ids, dtype=np.int32))
_CANDIDATES = st.lists(
    st.lists(st.integers(0, 3), min_size=1, max_size=3).map(lambda ids: np.array(ids, dtype=np.int32)),
    min_size=1,
    max_size=4,
).map(tuple)
PROMPTS = st.lists(st.builds(Encoded, _IDS, _CANDIDATES), min_size=1, max_size=12)


@given(
    calls=st.lists(PROMPTS, min_size=1, max_size=3),
    budget=st.sampled_from([1, 2, 5, 13, 40, 1000]),
    rows=st.sampled_from([1, 3, 1000]),
    run=st.sampled_from([3, 1024]),
    keys=st.sampled_from([1, 40, 4096]),
    kind=st.sampled_from(sorted(MODELS)),
)
def test_any_prompts_in_any_batches_equal_plain(calls, budget, rows, run, keys, kind):
    model = MODELS[kind]
    engine = TreeEngine(model, budget)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attention, "_RUN", run)
        patch.setattr(attention, "_PACKED_KEYS", keys)
        patch.setattr("unslant.models.hf.engine._LOGIT_ELEMENTS", rows * _SIZES["vocab_size"])
        for encoded in calls:
            cost = Cost()
            found = dict(engine.score(encoded, cost))
            expected = dict(PlainEngine(model, 10_000).score(encoded, Cost()))
            assert found.keys() == expected.keys() == set(range(len(encoded)))
            for i in expected:
                np.testing.assert_allclose(found[i], expected[i], rtol=0, atol=1e-4)
            assert cost.tokens == distinct_nodes(encoded)  # whatever the budget, and whatever came before
            assert cost.prompts == len(encoded)


@given(PROMPTS, st.integers(1, 30), st.integers(1, 5))
def test_batches_keep_to_their_budgets(encoded, token_budget, row_budget):
    longest = max(len(item.context) + max(len(ids) for ids in item.candidates) - 1 for item in encoded)
    batches = plan(encoded, token_budget, row_budget)[0]
    assert sum(len(batch) for batch in batches) == distinct_nodes(encoded)
    for batch in batches:
        assert 0 < len(batch) <= max(token_budget, longest)
    assert sorted(prompt for batch in batches for prompt in batch.done) == list(range(len(encoded)))


def test_costs_of_the_other_ways():
    def encoded(*context: int) -> Encoded:
        return Encoded(np.array(context, dtype=np.int32), tuple(np.array([9, *more]) for more in ((), (7,), (8,))))

    prompts = [encoded(1, 2, 3, 4), encoded(1, 2, 5), encoded(6, 7)]
    # "9", "9 7" and "9 8" need two runs: up to the last context token, and with 9 behind it.
    assert other_costs(prompts, ["a", "a", "b"]) == (4 + 5 + 3 + 4 + 2 + 3, 2 + (2 + 3 + 1 + 2) + 2 + (0 + 1))


def _orders() -> list[Encoded]:
    """Six orders of three options after a stem, two candidates of which one has two tokens."""
    rng = np.random.default_rng(4)
    stem, *options = (rng.integers(0, 97, size) for size in (7, 3, 1, 4))
    candidates = (np.array([5], dtype=np.int32), np.array([6, 8], dtype=np.int32))
    orders = itertools.permutations(options)
    return [Encoded(np.concatenate([stem, *order]).astype(np.int32), candidates) for order in orders]


def _whole_loss(model, encoded, weights):
    """A weighted sum of the candidates' log-probabilities, each candidate run by itself."""
    total = torch.zeros((), dtype=torch.float64)
    for item, weight in zip(encoded, weights, strict=True):
        for ids, w in zip(item.candidates, weight, strict=True):
            sequence = torch.from_numpy(np.concatenate([item.context, ids])).long()
            logprobs = torch.log_softmax(model(sequence[None]).logits[0].float(), -1)
            at = torch.arange(len(item.context), len(sequence))
            total = total + w * logprobs[at - 1, sequence[at]].sum()
    return total


def _tree_loss(model, encoded, weights):
    engine = TreeEngine(model, 1_000_000)
    (batch,) = plan(encoded, engine.token_budget, 1_000_000)[0]
    with using(model, attention.NAME):
        logits, rows, _ = engine.forward(batch, [])
    logprobs = torch.log_softmax(logits, -1)[torch.from_numpy(rows), torch.tensor(batch.read_token)]
    return (logprobs * torch.from_numpy(weights.reshape(-1)[batch.read_candidate])).sum()


def _gradients(model, loss) -> dict[str, torch.Tensor]:
    model.zero_grad()
    loss.backward()
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("kind", ["llama", "gemma2", "llama with an adapter"])
@pytest.mark.parametrize("run", [8, 1024])
def test_gradient_of_a_tree_pass_equals_that_of_whole_prompts(monkeypatch, kind, run):
    monkeypatch.setattr(attention, "_RUN", run)
    model = _model(kind.split()[0])
    if "adapter" in kind:
        peft = pytest.importorskip("peft")
        torch.manual_seed(0)
        adapted = ["q_proj", "k_proj", "v_proj", "down_proj"]
        model = peft.get_peft_model(model, peft.LoraConfig(r=2, target_modules=adapted, init_lora_weights=False))
    encoded = _orders()
    weights = np.random.default_rng(5).normal(size=(len(encoded), 2))

    tree_loss, whole_loss = _tree_loss(model, encoded, weights), _whole_loss(model, encoded, weights)
    assert tree_loss.item() == pytest.approx(whole_loss.item(), abs=1e-4)
    tree, whole = _gradients(model, tree_loss), _gradients(model, whole_loss)
    assert tree.keys() == whole.keys()
    assert len(tree) > 10
    if "adapter" in kind:
        assert all("lora" in name for name in tree)
    scale = max(float(gradient.abs().max()) for gradient in whole.values())
    for name, gradient in whole.items():
        assert (tree[name] - gradient).abs().max() <= 1e-4 * max(float(gradient.abs().max()), 1e-2 * scale), name


def _tensor_bytes() -> int:
    gc.collect()
    return sum(one.nbytes for one in gc.get_objects() if type(one) is torch.Tensor)


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")  # gc asks old objects for their type
@pytest.mark.thorough
def test_of_one_long_prompt_a_batch_keeps_a_byte_for_each_pair_of_tokens():
    model, length = _model("llama"), 2048
    prompt = Encoded(np.arange(length, dtype=np.int32) % 97, (np.array([5], dtype=np.int32),))
    (batch,) = plan([prompt], length, 1)[0]
    with using(model, attention.NAME), torch.inference_mode():
        logits, _, context = TreeEngine(model, length).forward(batch, [])
    held = _tensor_bytes()
    del context
    assert logits.isfinite().all()
    # Half of all pairs, and what runs are filled up with; a number for each head and pair would be eight times as much.
    assert length**2 / 2 < held - _tensor_bytes() < 1.5 * length**2 / 2


def test_the_model_gets_its_own_attention_back():
    model = _model("llama")
    before = model.config._attn_implementation
    with pytest.raises(ZeroDivisionError), using(model, attention.NAME):
        raise ZeroDivisionError
    assert model.config._attn_implementation == before
    dict(TreeEngine(model, 100).score(_orders(), Cost()))
    assert model.config._attn_implementation == before


def test_the_tree_attention_needs_a_tree_pass():
    model = _model("llama")
    with using(model, attention.NAME), pytest.raises(RuntimeError, match="no tree pass is running"):
        model(torch.tensor([[1, 2, 3]]))

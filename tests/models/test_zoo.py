"""The zoo itself: what is built loads, is the same every time, and is sensitive enough to show mistakes."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from tests.models.zoo import WINDOW, ZOO, build, variant
from tests.models.zoo_tokenizers import TOKENIZERS

TEXT = (
    "The following question is about chemistry. Question: Which gas is most common in the air?\n"
    "A. oxygen\nB. nitrogen\nC. argon\nD. helium\nAnswer:"
)
ONLY_SLIDING = {"mistral-sliding", "phi3-sliding"}


@pytest.mark.thorough
@pytest.mark.parametrize("name", [variant(name) for name in sorted(ZOO)])
def test_loads_and_every_token_matters(zoo_model, name):
    folder = zoo_model(name)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model, loading = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
    assert not any(loading.values())
    assert model.dtype == torch.float32
    assert (tokenizer.bos_token_id, tokenizer.eos_token_id) == (model.config.bos_token_id, model.config.eos_token_id)
    assert len(tokenizer) <= model.config.vocab_size == TOKENIZERS[ZOO[name].tokenizer].vocab_size

    ids = tokenizer(TEXT, return_tensors="pt").input_ids
    length = ids.shape[1]
    assert length > 2 * WINDOW + 2
    changed = ids.repeat(4, 1)
    changed[1, 4] = 77  # far from the end
    changed[2, -4] = 77  # near the end
    changed[3, [-6, -9]] = changed[3, [-9, -6]]  # the same tokens in another order
    with torch.no_grad():
        last = torch.log_softmax(model(changed).logits[:, -1], -1)
    assert last[0].std() > 0.5
    moved = (last[1:] - last[0]).abs().mean(-1)
    if name in ONLY_SLIDING:  # two layers of 16 do not see that far
        assert moved[0] == 0
    else:
        assert moved[0] > 1e-3
    assert min(moved[1:]) > 1e-3


def test_same_name_same_weights(zoo_model, tmp_path, tokenizer_cache):
    first = load_file(zoo_model("llama-chat") / "model.safetensors")
    second = load_file(build("llama-chat", tmp_path / "again", tokenizer_cache) / "model.safetensors")
    assert first.keys() == second.keys()
    assert all(torch.equal(first[key], second[key]) for key in first)


def test_chat_entries_write_chats(zoo_model):
    messages = [{"role": "user", "content": "Which?"}]
    for name in ("llama-chat", "phi3"):
        tokenizer = AutoTokenizer.from_pretrained(zoo_model(name))
        text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        assert "Which?" in text
        assert text.rstrip().endswith("<|assistant|>")


def test_every_entry_that_needs_the_fallback_says_why():
    assert all(entry.tree_supported == (entry.why_not == "") for entry in ZOO.values())

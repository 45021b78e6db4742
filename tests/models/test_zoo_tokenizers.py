"""The zoo's tokenizers cut text as their makers' do: against llama.cpp's own test strings and token ids."""

from __future__ import annotations

import pytest
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from tests.models.zoo_tokenizers import TOKENIZER_DATA, TOKENIZERS, save_tokenizer

SEPARATOR = "\n__ggml_vocab_test__\n"
REFERENCED = ["gpt-2", "llama-spm", "phi-3", "deepseek-llm"]


@pytest.fixture(scope="module")
def loaded(shared_data, tmp_path_factory, tokenizer_cache):
    """Tokenizers by name, after a round through ``save_pretrained`` and ``AutoTokenizer``."""
    cache: dict[str, PreTrainedTokenizerBase] = {}

    def load(name: str) -> PreTrainedTokenizerBase:
        if name not in cache:
            folder = tmp_path_factory.mktemp(name)
            save_tokenizer(name, folder, tokenizer_cache)
            cache[name] = AutoTokenizer.from_pretrained(folder)
        return cache[name]

    return load


def cases(name: str) -> list[tuple[str, list[int]]]:
    """llama.cpp's test strings with the token ids that must result (no special tokens)."""
    texts = (TOKENIZER_DATA / f"ggml-vocab-{name}.gguf.inp").read_bytes().decode().split(SEPARATOR)
    lines = (TOKENIZER_DATA / f"ggml-vocab-{name}.gguf.out").read_text("utf-8").split("\n")
    assert texts.pop() == ""
    assert lines.pop() == ""
    return [(text, [int(i) for i in line.split()]) for text, line in zip(texts, lines, strict=True)]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n == "deepseek-llm" else n for n in REFERENCED]
)
def test_token_ids_equal_the_references(loaded, name):
    tokenizer = loaded(name)
    got = {text: tokenizer(text, add_special_tokens=False).input_ids for text, _ in cases(name)}
    assert got == dict(cases(name))


@pytest.mark.parametrize("name", ["phi-2", pytest.param("gpt-neox", marks=pytest.mark.thorough), "llama-spm-no-prefix"])
def test_text_survives_a_round_trip(loaded, name):
    tokenizer = loaded(name)
    for text, _ in cases("gpt-2"):
        ids = tokenizer(text, add_special_tokens=False).input_ids
        assert tokenizer.decode(ids, skip_special_tokens=False) == text


def test_phi_2_equals_gpt_2_but_for_runs_of_white_space(loaded):
    """Phi-2's vocabulary is GPT-2's with tokens for two and more spaces or tabs added."""
    phi, gpt2 = loaded("phi-2"), loaded("gpt-2")
    texts = [text for text, _ in cases("gpt-2") if "  " not in text and "\t" not in text]
    assert len(texts) > 20
    for text in texts:
        assert phi(text).input_ids == gpt2(text).input_ids
    assert len(phi("   x").input_ids) < len(gpt2("   x").input_ids)


def test_a_prefix_space_is_all_that_parts_the_two_sentencepiece_tokenizers(loaded):
    with_prefix, without = loaded("llama-spm"), loaded("llama-spm-no-prefix")
    for text, _ in cases("gpt-2"):
        if text:
            assert with_prefix(text).input_ids == without(" " + text).input_ids


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=pytest.mark.thorough if n in ("deepseek-llm", "gpt-neox") else ())
        for n in sorted(TOKENIZERS)
    ],
)
def test_bos_is_added_where_the_vocabulary_asks_for_it(loaded, name):
    tokenizer = loaded(name)
    ids = tokenizer("Answer: B").input_ids
    assert (ids[0] == tokenizer.bos_token_id) == TOKENIZERS[name].bos
    assert ids[-1] != tokenizer.eos_token_id


def test_phi_3_writes_a_chat_with_its_special_tokens_whole(loaded):
    tokenizer = loaded("phi-3")
    ids = tokenizer.apply_chat_template(
        [{"role": "user", "content": "Which?"}], add_generation_prompt=True, return_dict=False
    )
    assert ids[0] == tokenizer.bos_token_id
    assert {tokenizer.convert_tokens_to_ids(token) for token in ("<|user|>", "<|end|>", "<|assistant|>")} <= set(ids)

"""Classes of models with a peculiarity each: scored as every prompt alone, or refused with one line."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM

from tests.models.scoring import TOLERANCE, tokenizer_of
from unslant.errors import ModelError
from unslant.models import load_model
from unslant.models.base import Encoded
from unslant.models.hf.model import TransformersModel
from unslant.prompts import Prompt
from unslant.reference import reference_path

VOCABULARY = 300
REACH = 64
"""Of windows and chunks: beyond the prompts of the self-check at load, within those of the tests."""
SIZES: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 512,
    "initializer_range": 0.3,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
EXPERTS = {"num_local_experts": 4, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 48}


def model_of(kind: str, auto: Any = AutoModelForCausalLM, **settings: Any) -> Any:
    """A model of random weights; skips the test where this transformers has no such class."""
    if kind not in transformers.CONFIG_MAPPING:
        pytest.skip(f"transformers {transformers.__version__} has no {kind}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return auto.from_config(AutoConfig.for_model(kind, **settings), dtype=torch.float32).eval()


def prompts_of(*lengths: int) -> list[Encoded]:
    """Three prompts of each length, of which all begin alike and two part late."""
    rng = np.random.default_rng(0)

    def draw(n: int) -> Any:
        return rng.integers(3, VOCABULARY, n).astype(np.int32)

    start = draw(max(lengths))
    heads = [start[: length - tail] for length in lengths for tail in (2, 9, length // 2)]
    tails = [draw(tail) for length in lengths for tail in (2, 9, length // 2)]
    return [Encoded(np.concatenate(parts), (draw(1), draw(3))) for parts in zip(heads, tails, strict=True)]


def scores_of(model: TransformersModel, encoded: list[Encoded]) -> list[Any]:
    prompts = [Prompt(f"{i}", (" A", " B"), group=f"q{i}") for i in range(len(encoded))]
    scores = {scored.index: scored.logprobs for scored in model.score(prompts, encoded)}
    return [scores[i] for i in range(len(encoded))]


def assert_as_alone(model: TransformersModel, encoded: list[Encoded]) -> None:
    model.model.config.get_text_config().use_cache = (
        False  # with a cache, Qwen2-MoE's windows fail in transformers 5.24
    )
    for item, scores in zip(encoded, scores_of(model, encoded), strict=True):
        for ids, score in zip(item.candidates, scores, strict=True):
            text = torch.from_numpy(np.concatenate([item.context, ids])).long()
            with torch.inference_mode():
                logprobs = torch.log_softmax(model.model(text[None]).logits[0].double(), -1)
            at = torch.arange(len(item.context), len(text))
            assert score == pytest.approx(float(logprobs[at - 1, text[at]].sum()), abs=10 * TOLERANCE)


@pytest.mark.parametrize(
    ("kind", "settings", "engine"),
    [
        ("llama4_text", {"attention_chunk_size": REACH, "intermediate_size_mlp": 48, **EXPERTS}, "tree"),
        ("phimoe", {"sliding_window": REACH, **EXPERTS}, "tree"),
        ("qwen2_moe", {"sliding_window": REACH, "layer_types": ["sliding_attention"] * 2, **EXPERTS}, "tree"),
        # They take logits_to_keep among other keywords and ignore it.
        ("whisper", {"d_model": 32, "decoder_ffn_dim": 48, "decoder_attention_heads": 4, "decoder_layers": 2}, "tree"),
        ("trocr", {"d_model": 32, "decoder_ffn_dim": 48, "decoder_attention_heads": 4, "decoder_layers": 2}, "plain"),
    ],
)
def test_long_prompts_are_scored_as_alone(kind: str, settings: dict[str, Any], engine: str) -> None:
    own = settings if "d_model" in settings else SIZES | settings
    bare = model_of(kind, **{"vocab_size": VOCABULARY, "init_std": 0.3, "pad_token_id": 0, **own})
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*without the prefix tree")
        model = TransformersModel(bare, tokenizer_of(reference_path("fair")), kind, token_budget=100)
    assert model.engine == engine
    assert_as_alone(model, prompts_of(20, 90, 150))
    assert model.engine == engine


CODE = """
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.modeling_outputs import CausalLMOutput

class OwnConfig(LlamaConfig):
    model_type = "own_code"

class OwnModel(LlamaForCausalLM):
    config_class = OwnConfig

    def forward(self, input_ids, attention_mask=None, position_ids=None):
        hidden = self.model.embed_tokens(input_ids)
        {change}
        hidden = self.model(inputs_embeds=hidden, attention_mask=attention_mask, position_ids=position_ids)[0]
        return CausalLMOutput(logits=self.lm_head(hidden))
"""
COMPRESSES = """
        if input_ids.shape[1] > 64:  # from there on, every token also reads the one 64 before it in the tensor
            hidden[:, 64:] = hidden[:, 64:] + hidden[:, :-64].clone()
"""
LEAKS = """
        if input_ids.shape[1] > 64:  # from there on, every token also reads the last one
            hidden = hidden + hidden[:, -1:]
"""


@pytest.fixture
def own_code(tmp_path: Path) -> Any:
    """A loader of a small model with its own class, which has no keyword besides ids, mask and positions."""

    def loaded(name: str, change: str = "") -> TransformersModel:
        folder = tmp_path / name
        shutil.copytree(reference_path("fair"), folder)
        (folder / f"{name}.py").write_text(CODE.replace("{change}", change.strip()), "utf-8")
        config = json.loads((folder / "config.json").read_text("utf-8")) | {"model_type": "own_code"}
        config["auto_map"] = {"AutoConfig": f"{name}.OwnConfig", "AutoModelForCausalLM": f"{name}.OwnModel"}
        (folder / "config.json").write_text(json.dumps(config), "utf-8")
        return load_model(str(folder), trust_remote_code=True, device="cpu", token_budget=100)

    return loaded


def test_a_class_without_the_usual_keywords_is_served(own_code: Any) -> None:
    model = own_code("plain_keywords")
    assert model.engine == "tree"
    assert_as_alone(model, prompts_of(20, 90))


def test_what_a_class_does_from_some_length_on_is_noticed_there(own_code: Any) -> None:
    model = own_code("compresses", COMPRESSES)
    # The tensor of the self-check holds several prompts, more than 64 tokens.
    assert model.engine == "plain"
    leaking = own_code("leaks", LEAKS)
    assert_as_alone(leaking, prompts_of(20, 40))
    with pytest.raises(ModelError, match=r"leaks: its score of a token depends on .*in a prompt of \d\d+ tokens"):
        scores_of(leaking, prompts_of(20, 90))


@pytest.mark.parametrize("kind", ["llava", "mllama"])
def test_a_checkpoint_that_also_reads_pictures_is_scored_on_text(kind: str, tmp_path: Path) -> None:
    vision = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    pictures = vision | {"image_size": 28, "patch_size": 14}
    parts: dict[str, Any] = {
        "llava": {"vision_config": {"model_type": "clip_vision_model"} | pictures, "text_config": SIZES},
        "mllama": {
            "vision_config": {**vision, "vision_output_dim": 64, "intermediate_layers_indices": [0], "image_size": 28},
            "text_config": SIZES | {"cross_attention_layers": [1]},
        },
    }
    bare = model_of(kind, transformers.AutoModelForImageTextToText, **parts[kind])
    bare.save_pretrained(tmp_path)
    tokenizer_of(reference_path("fair")).save_pretrained(tmp_path)
    model = load_model(str(tmp_path), device="cpu", token_budget=100)
    assert model.engine == "tree"
    assert_as_alone(model, prompts_of(20, 90))


def test_an_encoder_decoder_is_refused_in_words(tmp_path: Path) -> None:
    t5 = {"vocab_size": VOCABULARY, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}
    model_of("t5", transformers.AutoModelForSeq2SeqLM, **t5).save_pretrained(tmp_path)
    tokenizer_of(reference_path("fair")).save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="T5ForConditionalGeneration is not a causal language model: give one"):
        load_model(str(tmp_path))


def test_a_model_that_needs_a_picture_is_refused_in_words(tmp_path: Path) -> None:
    small = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    parts = {
        "vision_config": small | {"image_size": 28, "patch_size": 14},
        "qformer_config": small | {"encoder_hidden_size": 32},
        "text_config": small
        | {"model_type": "opt", "vocab_size": VOCABULARY, "ffn_dim": 32, "word_embed_proj_dim": 32},
    }
    model_of("blip-2", transformers.AutoModelForImageTextToText, **parts).save_pretrained(tmp_path)
    tokenizer_of(reference_path("fair")).save_pretrained(tmp_path)
    with pytest.raises(ModelError, match=r"Blip2ForConditionalGeneration is not a causal .* that needs a picture"):
        load_model(str(tmp_path))


def test_positions_that_begin_after_padding_take_fewer_tokens() -> None:
    """RoBERTa's 512 tokens have 514 positions, of which the first two are never used."""
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    bare = model_of("roberta", vocab_size=VOCABULARY, is_decoder=True, max_position_embeddings=66, **sizes)
    model = TransformersModel(bare, tokenizer_of(reference_path("fair")), "roberta")
    assert model.limit == 64
    assert_as_alone(model, prompts_of(60))
    (longest,) = {item.longest for item in prompts_of(60)}
    assert longest <= 64


def test_a_model_that_changes_with_its_padding_is_refused() -> None:
    sizes = {"num_decoder_layers": 2, "num_decoder_attention_heads": 4, "decoder_ffn_dim": 48, "init_std": 0.3}
    bare = model_of("prophetnet", vocab_size=VOCABULARY, hidden_size=32, is_decoder=True, **sizes)
    with pytest.raises(ModelError, match=r"its score of a token depends on .* padding"):
        TransformersModel(bare, tokenizer_of(reference_path("fair")), "prophetnet")


def test_prompts_beyond_the_reach_of_the_tree_are_run_whole() -> None:
    ratios = {"compressed_sparse_attention": 4, "heavily_compressed_attention": 128}
    small = {"q_lora_rank": 16, "qk_rope_head_dim": 4, "index_n_heads": 2, "index_head_dim": 8, "index_topk": 8}
    settings = {"n_routed_experts": 4, "num_experts_per_tok": 2, "sliding_window": REACH, "o_groups": 2}
    bare = model_of("deepseek_v4", **SIZES | small | settings | {"compress_rates": ratios, "o_lora_rank": 16})
    model = TransformersModel(bare, tokenizer_of(reference_path("fair")), "v4", token_budget=100)
    with pytest.warns(UserWarning, match=r"v4: prompts of more than \d+ tokens are scored without the prefix tree"):
        assert_as_alone(model, prompts_of(20, 90, 150))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert_as_alone(model, prompts_of(20, 160))


def test_without_memory_for_a_whole_prompt_the_longer_check_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tree runs a long prompt in parts, which may have memory that a whole one has not."""
    model = load_model("fair", token_budget=100)

    def full(*_: Any, **__: Any) -> str:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr("unslant.models.hf.model.why_not", full)
    with pytest.warns(UserWarning, match=r"fair: scores are not compared with those of whole prompts of \d+ tokens"):
        assert_as_alone(model, prompts_of(20, 90))

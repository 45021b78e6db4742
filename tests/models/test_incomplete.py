"""A checkpoint whose weights are not those of its configuration is no model, unless somebody insists."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from tests.models.samples import sample_prompts
from tests.models.scoring import score
from tests.models.zoo import ZOO, ZooFolder
from unslant.errors import ModelError
from unslant.models.base import facts_of
from unslant.models.hf.loading import load_model
from unslant.models.open import open_chat
from unslant.models.options import ModelOptions

Weights = dict[str, torch.Tensor]


def changed(source: Path, folder: Path, change: Callable[[Weights], object], file: str = "model", **config) -> str:
    """A copy of a folder with other weights and settings."""
    shutil.copytree(source, folder)
    path = folder / f"{file}.safetensors"
    weights = {name: tensor.clone() for name, tensor in load_file(path).items()}
    change(weights)
    save_file({name: tensor.contiguous() for name, tensor in weights.items()}, path, {"format": "pt"})
    if config:
        settings = json.loads((folder / "config.json").read_text("utf-8")) | config
        (folder / "config.json").write_text(json.dumps(settings), "utf-8")
    return str(folder)


def renamed(old: str, new: str) -> Callable[[Weights], None]:
    def change(weights: Weights) -> None:
        for name in [name for name in weights if old in name]:
            weights[name.replace(old, new)] = weights.pop(name)

    return change


def nothing(weights: Weights) -> None:
    pass


@pytest.mark.parametrize(
    ("change", "config", "listed"),
    [
        (renamed("q_proj", "query_proj"), {}, r"2 weights missing \(model.*q_proj.*2 weights left over \(.*query_proj"),
        (lambda w: w.pop("model.layers.1.mlp.up_proj.weight"), {}, r"1 weight missing \(model.layers.1.mlp.up_proj"),
        (lambda w: w.pop("lm_head.weight"), {}, r"1 weight missing \(lm_head.weight\)"),
        (nothing, {"num_hidden_layers": 1}, r"9 weights left over \(model.layers.1"),
        (nothing, {"num_hidden_layers": 3}, r"9 weights missing \(model.layers.2"),
        (lambda w: w.update({"v_head.weight": torch.ones(3)}), {}, r"1 weight left over \(v_head.weight\)"),
        (renamed("model.", "transformer."), {}, r"missing \(.* and \d+ more\)"),
    ],
)
def test_weights_missing_or_left_over_are_listed(zoo_model: ZooFolder, tmp_path, change, config, listed) -> None:
    folder = changed(zoo_model("llama", small=True), tmp_path / "m", change, **config)
    with pytest.raises(ModelError, match=listed) as refused:
        load_model(folder)
    assert "allow_missing" in str(refused.value)


def test_who_insists_gets_it_and_every_result_says_so(zoo_model: ZooFolder, tmp_path: Path) -> None:
    folder = changed(
        zoo_model("llama", small=True), tmp_path / "m", lambda w: w.pop("model.layers.1.mlp.up_proj.weight")
    )
    insisted = load_model(folder, allow_missing=True)
    assert str(facts_of(insisted)["incomplete"]).startswith(folder)
    assert insisted.identify().identity["incomplete"] == facts_of(insisted)["incomplete"]


def test_a_model_that_gives_replies_is_looked_at_too(zoo_model: ZooFolder, tmp_path: Path) -> None:
    folder = changed(zoo_model("llama", small=True), tmp_path / "m", renamed("q_proj", "query_proj"))
    with pytest.raises(ModelError, match=r"2 weights missing \(model.*q_proj"):
        open_chat(folder)
    open_chat(str(zoo_model("llama", small=True)), ModelOptions(device="cpu"))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("gpt2", lambda w: w.update({"transformer.h.0.attn.masked_bias": torch.tensor(-1e4)})),
        ("gpt2", lambda w: w.update({"transformer.h.0.attn.bias": torch.ones(1, 1, 4, 4)})),
        ("llama", lambda w: w.update({"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(8)})),
        ("qwen2", lambda w: w.update({"lm_head.weight": w["model.embed_tokens.weight"].clone()})),
    ],
)
def test_constants_and_tied_weights_are_not_left_over(zoo_model: ZooFolder, tmp_path, name, change) -> None:
    folder = changed(zoo_model(name, small=True), tmp_path / "m", change)
    assert "incomplete" not in facts_of(load_model(folder))


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:.*scored without the prefix tree")
@pytest.mark.parametrize("name", ["llama", "gpt2", *(pytest.param(name, marks=pytest.mark.slow) for name in ZOO)])
def test_every_class_loads_complete_as_it_was_saved(zoo_model: ZooFolder, name) -> None:
    assert "incomplete" not in facts_of(load_model(str(zoo_model(name))))


@pytest.fixture
def adapter(zoo_model: ZooFolder, tmp_path: Path) -> Path:
    peft = pytest.importorskip("peft")
    torch.manual_seed(1)
    lora = peft.LoraConfig(r=2, target_modules=["q_proj", "v_proj"], init_lora_weights=False)
    peft.get_peft_model(AutoModelForCausalLM.from_pretrained(zoo_model("llama", small=True)), lora).save_pretrained(
        tmp_path / "a"
    )
    return tmp_path / "a"


@pytest.mark.parametrize(
    ("change", "listed"),
    [
        (renamed("base_model.model.model.", "base_model.model."), r"8 weights missing.*8 weights left over"),
        (renamed("self_attn", "attention"), r"8 weights missing.*8 weights left over"),
        (
            lambda w: w.pop(next(name for name in w if "lora_B" in name)),
            r"1 weight missing \(.*lora_B",
        ),
    ],
)
def test_an_adapter_that_does_not_belong_on_the_model_is_refused(
    zoo_model: ZooFolder, tmp_path: Path, adapter: Path, change, listed
) -> None:
    other = changed(adapter, tmp_path / "other", change, "adapter_model")
    with pytest.raises(ModelError, match=listed):
        load_model(str(zoo_model("llama", small=True)), adapter=other)
    insisted = load_model(str(zoo_model("llama", small=True)), adapter=other, allow_missing=True)
    assert str(facts_of(insisted)["incomplete"]).startswith(other)


def test_an_adapter_that_belongs_is_applied_once(zoo_model: ZooFolder, adapter: Path) -> None:
    from peft import PeftModel

    from unslant.models.hf.model import TransformersModel

    loaded = load_model(str(zoo_model("llama", small=True)), adapter=str(adapter))
    bare = AutoModelForCausalLM.from_pretrained(zoo_model("llama", small=True))
    by_hand = TransformersModel(PeftModel.from_pretrained(bare, adapter), loaded.tokenizer, "by hand")
    prompts = sample_prompts()[:4]
    for one, other in zip(score(loaded, prompts), score(by_hand, prompts), strict=True):
        assert (one == other).all()

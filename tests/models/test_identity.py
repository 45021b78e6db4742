"""A model is its weights, its settings and its code; whoever changes one of them has another model."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from tests.models.samples import preamble_prompts, sample_prompts
from tests.models.scoring import assert_equal, load, plainly, score
from tests.models.zoo import ZooFolder
from unslant.models.hf.identity import _plain
from unslant.models.hf.loading import load_model
from unslant.models.hf.model import TransformersModel
from unslant.models.stored import StoredModel
from unslant.responses.provenance import fingerprint_text, known_as
from unslant.store import Store

pytestmark = pytest.mark.thorough


UNUSED = 1234
"""A token that no test prompt holds."""


def _alias(model: Any) -> None:
    model.model.layers[1].mlp.up_proj.weight.detach().numpy()[3:5] += 0.5


def _hook(model: Any) -> None:
    model.model.layers[0].register_forward_hook(lambda module, inputs, output: output * 1.01)


def _epsilon(model: Any) -> None:
    for module in model.modules():
        if hasattr(module, "variance_epsilon"):
            module.variance_epsilon = 0.1


def _activation(model: Any) -> None:
    model.model.layers[0].mlp.act_fn = torch.nn.ReLU()


def _swap(model: Any) -> None:
    weight = model.model.layers[0].mlp.down_proj.weight.data
    weight[[0, 1]] = weight[[1, 0]]


def _patched(model: Any) -> None:
    own = model.lm_head.forward
    model.lm_head.forward = lambda hidden: own(hidden * 1.02)


def _library(model: Any) -> None:
    """As a patched library: the change lies in no object of the model."""
    kind = type(model.model.layers[0].mlp)
    own = kind.forward
    kind.forward = lambda self, hidden: own(self, hidden) * 1.05
    undo.append(lambda: setattr(kind, "forward", own))


undo: list[Callable[[], None]] = []

CHANGES: dict[str, Callable[[Any], object]] = {
    "data": lambda model: model.model.layers[0].self_attn.k_proj.weight.data.mul_(1.5),
    "sign": lambda model: model.model.layers[0].self_attn.v_proj.weight.data.neg_(),
    "numpy": _alias,
    "rows swapped": _swap,
    "one row of the embedding": lambda model: model.model.embed_tokens.weight.data[UNUSED].neg_(),
    "no grad": lambda model: model.model.norm.weight.detach().add_(0.1),
    "buffer": lambda model: model.model.rotary_emb.inv_freq.mul_(1.2),
    "hook": _hook,
    "epsilon": _epsilon,
    "activation": _activation,
    "forward": _patched,
    "library": _library,
}


@pytest.fixture(autouse=True)
def _undone() -> Any:
    yield
    while undo:
        undo.pop()()


@pytest.mark.parametrize("name", CHANGES)
def test_a_model_changed_in_memory_is_asked_anew(zoo_model: ZooFolder, tmp_path: Path, name: str) -> None:
    model = load(zoo_model("llama", small=True))
    prompts = preamble_prompts()[:6]
    with Store(tmp_path / "s.sqlite3") as store:
        kept = StoredModel(model, store)
        before = score(kept, prompts[:4])
        CHANGES[name](model.model)
        after = score(kept, prompts[:4])
        assert kept.recalled == 0
        if name != "one row of the embedding":
            assert max(np.abs(one - other).max() for one, other in zip(before, after, strict=True)) > 1e-3
        assert_equal(after, plainly(model, prompts[:4]))
    # Without a store, a later call takes nothing over from before the change either.
    assert_equal(score(model, prompts[4:]), plainly(model, prompts[4:]))


def test_a_change_taken_back_is_the_old_model(zoo_model: ZooFolder, tmp_path: Path) -> None:
    model = load(zoo_model("llama", small=True))
    prompts = preamble_prompts()[:5]
    with Store(tmp_path / "s.sqlite3") as store:
        kept = StoredModel(model, store)
        before = score(kept, prompts)
        hook = model.model.model.register_forward_hook(lambda module, inputs, output: output)
        weight = model.model.model.layers[0].self_attn.k_proj.weight.data
        own = weight.clone()
        weight.mul_(2)
        score(kept, prompts)
        hook.remove()
        weight.copy_(own)
        again = score(kept, prompts)
        assert kept.recalled == len(prompts)
    assert all((one == other).all() for one, other in zip(before, again, strict=True))


@pytest.mark.parametrize("change", ["set_scale", "scale_layer", "set_adapter", "delete"])
def test_an_adapter_changed_in_memory_is_asked_anew(zoo_model: ZooFolder, tmp_path: Path, change: str) -> None:
    peft = pytest.importorskip("peft")
    torch.manual_seed(0)
    bare = AutoModelForCausalLM.from_pretrained(zoo_model("llama", small=True))
    config = peft.LoraConfig(r=2, target_modules=["k_proj", "v_proj"], init_lora_weights=False)
    adapted = peft.get_peft_model(bare, config)
    adapted.add_adapter("other", config)
    model = TransformersModel(adapted, AutoTokenizer.from_pretrained(zoo_model("llama", small=True)), "adapted")
    layers = [module for module in adapted.modules() if isinstance(module, peft.tuners.lora.Linear)]
    prompts = preamble_prompts()[:6]
    with Store(tmp_path / "s.sqlite3") as store:
        kept = StoredModel(model, store)
        before = score(kept, prompts)
        if change == "set_adapter":
            adapted.set_adapter("other")
        elif change == "delete":
            adapted.add_weighted_adapter(["default", "other"], [0.5, 0.5], "mix", "linear")
            adapted.set_adapter("mix")
        else:
            for layer in layers:
                layer.set_scale("default", 3.0) if change == "set_scale" else layer.scale_layer(0.3)
        after = score(kept, prompts)
        assert kept.recalled == 0
    assert max(np.abs(one - other).max() for one, other in zip(before, after, strict=True)) > 1e-3
    assert_equal(after, plainly(model, prompts))


def recalled(folder: Path, store: Path, **options: Any) -> int:
    """Prompts that a freshly loaded model did not have to be asked."""
    with Store(store) as opened:
        kept = StoredModel(load_model(str(folder), **options), opened)
        list(kept.score(sample_prompts()[:4]))
        return kept.recalled


def edited(path: Path, **values: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | values), "utf-8")


@pytest.mark.parametrize(
    ("file", "values"),
    [
        ("adapter_config.json", {"lora_alpha": -64}),
        ("adapter_config.json", {"alpha_pattern": {"model.layers.1.self_attn.k_proj": 99}}),
        ("adapter_config.json", {"use_rslora": True}),
        ("../config.json", {"rms_norm_eps": 0.5}),
        ("../config.json", {"rope_parameters": {"rope_type": "default", "rope_theta": 100.0}}),
    ],
)
def test_a_setting_changed_in_a_file_is_another_model(zoo_model: ZooFolder, tmp_path: Path, file, values) -> None:
    peft = pytest.importorskip("peft")
    folder, adapter = tmp_path / "model", tmp_path / "model" / "adapter"
    shutil.copytree(zoo_model("llama", small=True), folder)
    torch.manual_seed(1)
    lora = peft.LoraConfig(r=2, lora_alpha=16, target_modules=["k_proj", "v_proj"], init_lora_weights=False)
    peft.get_peft_model(AutoModelForCausalLM.from_pretrained(folder), lora).save_pretrained(adapter)
    store, options = tmp_path / "s.sqlite3", {"adapter": str(adapter)}
    assert recalled(folder, store, **options) == 0
    assert recalled(folder, store, **options) == 4
    edited(adapter / file, **values)
    assert recalled(folder, store, **options) == 0


CODE = """
from transformers import LlamaConfig, LlamaForCausalLM
from .helper import FACTOR
class OwnConfig(LlamaConfig):
    model_type = "own_code"
class OwnModel(LlamaForCausalLM):
    config_class = OwnConfig
    def forward(self, *args, **kwargs):
        found = super().forward(*args, **kwargs)
        found.logits = found.logits * FACTOR
        return found
"""


@pytest.fixture(scope="module")
def _code_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        cache = str(tmp_path_factory.mktemp("code"))
        patch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", cache)
        yield


@pytest.mark.usefixtures("_code_cache")
@pytest.mark.parametrize("file", ["own.py", "helper.py"])
def test_code_edited_beside_the_weights_is_another_model(zoo_model: ZooFolder, tmp_path: Path, file: str) -> None:
    folder = tmp_path / f"with_code_{file[:-3]}"
    shutil.copytree(zoo_model("llama", small=True), folder)
    (folder / "own.py").write_text(CODE, "utf-8")
    (folder / "helper.py").write_text("FACTOR = 1.0\n", "utf-8")
    auto = {"AutoConfig": "own.OwnConfig", "AutoModelForCausalLM": "own.OwnModel"}
    edited(folder / "config.json", model_type="own_code", auto_map=auto)
    store = tmp_path / "s.sqlite3"
    options = {"trust_remote_code": True}
    assert recalled(folder, store, **options) == 0
    assert recalled(folder, store, **options) == 4
    text = (folder / file).read_text("utf-8")
    (folder / file).write_text(text.replace("* FACTOR", "* FACTOR * 1.00001").replace("1.0\n", "1.00001\n"), "utf-8")
    assert recalled(folder, store, **options) == 0


def test_versions_of_the_libraries_are_part_of_it(zoo_model: ZooFolder, monkeypatch) -> None:
    model = load(zoo_model("gpt2"))
    before = model.identify().identity
    assert {"torch", "transformers", "peft", "attention", "dtype", "device"} <= before.keys()
    monkeypatch.setattr("unslant.models.hf.identity._version", lambda library: "0.1")
    assert model.identify().identity != before


def test_a_fingerprint_is_compared_number_by_number() -> None:
    def identity(*values: float, **more: str) -> dict[str, str]:
        return {"model": "m", "fingerprint": fingerprint_text(np.array(values), 1e-3), **more}

    first, second = identity(-1, -2), identity(-5, -2)
    known = [json.dumps(first), json.dumps(second)]
    assert known_as(identity(-1.0005, -2.0005), known) == first
    assert known_as(identity(-5.0005, -2), known) == second
    for other in (identity(-1.002, -2), identity(-1, -2, dtype="float16"), identity(-1), identity(float("nan"), -2)):
        assert known_as(other, known) is other
    assert known_as({"model": "m"}, known) == {"model": "m"}


def test_settings_that_are_sets_are_told_in_one_sequence() -> None:
    one, other = {0, 8}, {8, 0}  # equal, but iterated as they collide; of strings, every process has its own sequence
    assert list(one) != list(other)
    assert _plain(one) == _plain(other)


def test_a_copy_in_another_folder_is_the_same_model(zoo_model: ZooFolder, tmp_path: Path) -> None:
    # Else shards of two machines are of different models, and a run cannot be repeated where the package is elsewhere.
    peft = pytest.importorskip("peft")
    first, second = tmp_path / "one", tmp_path / "two"
    for folder in (first, second):
        shutil.copytree(zoo_model("llama", small=True), folder)
        torch.manual_seed(1)
        lora = peft.LoraConfig(r=2, target_modules=["k_proj"], init_lora_weights=False)
        peft.get_peft_model(AutoModelForCausalLM.from_pretrained(folder), lora).save_pretrained(folder / "adapter")
    for adapter in (False, True):
        known = []
        for folder in (first, second):
            model = load_model(str(folder), adapter=str(folder / "adapter") if adapter else None)
            model.identify()
            known.append({key: text for key, text in model.info.identity.items() if key not in ("model", "adapter")})
        assert known[0] == known[1]
        assert {"config", "weights", "modules", "adapter config"} <= known[0].keys()

"""Options for large models, as far as a machine without a GPU shows them."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from tests.models.samples import sample_prompts
from unslant import InputError, ModelError, open_model
from unslant.models.base import Cost
from unslant.models.hf import plan
from unslant.models.hf.attention import TreeContext
from unslant.models.hf.engine import PlainEngine, TreeEngine, _kept_rows
from unslant.models.open import address_of
from unslant.models.options import ModelOptions

PROMPTS = sample_prompts()[:30]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What transformers is asked for; nothing is loaded."""
    found: dict[str, Any] = {}

    def load(source: str, **options: Any) -> Any:
        found.update(options, source=source)
        raise OSError("enough")

    monkeypatch.setattr("unslant.models.hf.loading._check_hub", lambda *_: None)
    # It asks for the configuration first.
    monkeypatch.setattr("unslant.models.hf.loading._checked", lambda *_: (transformers.AutoModelForCausalLM, ""))
    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", lambda *_, **options: found.update(options))
    monkeypatch.setattr(transformers.AutoModelForCausalLM, "from_pretrained", load)
    return found


def test_a_revision_is_that_of_tokenizer_and_model(asked: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match="enough"):
        open_model("org/model", revision="v2")
    assert asked["revision"] == "v2"
    with pytest.raises(InputError, match=r"revision.v2.?: .* is here, and has one only"):
        open_model("fair", revision="v2")


def test_a_model_is_spread_over_devices_by_transformers(asked: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match="enough"):
        open_model("org/model", device_map="balanced")
    assert asked["device_map"] == "balanced"
    with pytest.raises(InputError, match=r"device_map 'balance': did you mean 'balanced'\?"):
        open_model("org/model", device_map="balance")
    with pytest.raises(InputError, match=r"leave out device=.cuda."):
        open_model("org/model", device_map="auto", device="cuda")


@pytest.mark.parametrize("bits", [4, 8])
def test_few_bits_are_asked_of_transformers(asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch, bits: int) -> None:
    monkeypatch.setattr("unslant.models.hf.loading.needed", lambda *_: SimpleNamespace())
    monkeypatch.setattr(transformers, "BitsAndBytesConfig", SimpleNamespace)
    with pytest.raises(ModelError, match="enough"):
        open_model("org/model", bits=bits, device="cpu")
    assert getattr(asked["quantization_config"], f"load_in_{bits}bit") is True
    assert asked["device_map"] == {"": "cpu"}


def test_few_bits_without_bitsandbytes_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "bitsandbytes", None)
    with pytest.raises(ModelError, match=r"bits.8 needs bitsandbytes.*pip install 'bitsandbytes'"):
        open_model("fair", bits=8)
    with pytest.raises(InputError, match="bits=3: give 4 or 8"):
        ModelOptions(bits=3)
    with pytest.raises(InputError, match="cannot be trained"):
        address_of("fair", ModelOptions(bits=4), ("score", "train"))
    (tmp_path / "model.gguf").touch()
    with pytest.raises(InputError, match="a GGUF file are unpacked"):
        open_model(str(tmp_path), bits=4)


@pytest.mark.parametrize("bits", [4, 8])
def test_few_bits_pass_the_self_check(bits: int) -> None:
    pytest.importorskip("bitsandbytes", reason="bitsandbytes is not installed")
    model: Any = open_model("fair", bits=bits, device="cpu")
    assert model.engine == "tree"
    assert model.info.facts["quantization"] == f"bitsandbytes, {bits} bits"
    assert model.identify().identity != open_model("fair", device="cpu").identify().identity
    plain = dict(PlainEngine(model.model, 1000).score(model.encode(PROMPTS), Cost()))
    for one in model.score(PROMPTS):
        np.testing.assert_allclose(one.logprobs, plain[one.index], atol=1e-3 if bits == 4 else 0.5)


def test_weights_that_do_not_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = transformers.AutoModelForCausalLM.from_pretrained

    def offloaded(source: str, **options: Any) -> Any:
        options.pop("device_map")
        model, found = whole(source, **options)
        model.model.layers[0].to("meta")
        return model, found

    monkeypatch.setattr(transformers.AutoModelForCausalLM, "from_pretrained", offloaded)
    with pytest.raises(ModelError, match=r"\d+ of its weights do not fit on the GPUs.*bits=8, bits=4"):
        open_model("fair", device_map="auto")


def test_a_map_onto_one_device_changes_nothing() -> None:
    one, spread = open_model("fair", device="cpu"), open_model("fair", device_map="auto")
    if spread.model.device.type != "cpu":  # type: ignore[attr-defined]
        pytest.skip("there is a GPU, with other digits")
    assert dict(spread.identify().identity) == dict(one.identify().identity)


def test_layers_on_another_device_get_the_batch_there() -> None:
    model: Any = open_model("fair", device="cpu")
    batch = plan(model.encode(PROMPTS), 512, 512)[0][1]
    context = TreeContext(batch, torch.device("cpu"), [])
    assert context.on(torch.device("cpu")) is context
    there = context.on(torch.device("meta"))
    assert there is context.on(torch.device("meta"))
    assert there.batch is batch
    assert {pack.keys.device.type for pack in there.packs} == {there.keep_local.device.type} == {"meta"}


def test_rows_of_a_split_model_are_named_in_a_way_that_every_device_takes() -> None:
    model: Any = open_model("fair", device="cpu")
    expected = dict(TreeEngine(model.model, 512).score(model.encode(PROMPTS), Cost()))
    model.model.hf_device_map = {"model": 0, "lm_head": 1}
    assert _kept_rows(model.model, np.array([1, 3])) == [1, 3]
    for engine in (TreeEngine(model.model, 512), PlainEngine(model.model, 512)):
        for i, found in engine.score(model.encode(PROMPTS), Cost()):
            np.testing.assert_allclose(found, expected[i], atol=1e-4)

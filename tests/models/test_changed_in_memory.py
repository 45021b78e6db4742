"""A model changed in memory in ways that short probes do not feel: nothing stored is given for it, and it is said."""

from __future__ import annotations

import copy
import functools
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.attention import flex_attention
from transformers.models.llama import modeling_llama

from tests.models.samples import preamble_prompts
from tests.models.scoring import assert_equal, load, plainly, score
from tests.models.zoo import ZooFolder
from unslant.models.chat import LocalChat, StoredChat
from unslant.models.hf.model import TransformersModel
from unslant.models.stored import StoredModel
from unslant.prompts import Prompt
from unslant.store import Store

FROM = 16


def late(output: Any, factor: float = 1.5) -> Any:
    """Another output from some position on, which prompts of 12 tokens do not reach."""
    hidden = output[0] if isinstance(output, tuple) else output
    if hidden.shape[1] <= FROM:
        return output
    hidden = torch.cat([hidden[:, :FROM], hidden[:, FROM:] * factor], dim=1)
    return (hidden, *output[1:]) if isinstance(output, tuple) else hidden


class Steering:
    """A hook whose effect is an attribute."""

    def __init__(self) -> None:
        self.factor = 1.0

    def __call__(self, module: Any, inputs: Any, output: Any) -> Any:
        return late(output, self.factor)


class Scaled(torch.nn.Module):
    """A module of the user's own, with a private attribute."""

    def __init__(self, inner: torch.nn.Module) -> None:
        super().__init__()
        self.inner, self._factor = inner, 1.0

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return late(self.inner(hidden), self._factor)  # type: ignore[no-any-return]


class Mode(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = function(*args, **(kwargs or {}))
        return late(found) if function is torch.nn.functional.silu else found


Patch = pytest.MonkeyPatch


def _hook(model: Any, patch: Patch) -> None:
    model.model.layers[0].register_forward_hook(lambda module, inputs, output: late(output))


def _pre_hook(model: Any, patch: Patch) -> None:
    def before(module: Any, args: Any, kwargs: Any) -> Any:
        return tuple(late(one) for one in args), {k: late(v) if k == "hidden_states" else v for k, v in kwargs.items()}

    model.model.layers[1].mlp.register_forward_pre_hook(before, with_kwargs=True)


def _global_hook(model: Any, patch: Patch) -> None:
    def hook(module: Any, inputs: Any, output: Any) -> Any:
        return late(output) if type(module).__name__ == "LlamaMLP" else None

    patch.setattr(
        "tests.models.test_changed_in_memory._held", torch.nn.modules.module.register_module_forward_hook(hook)
    )


_held: Any = None


def _forward(model: Any, patch: Patch) -> None:
    mlp = model.model.layers[0].mlp
    own = mlp.forward
    mlp.forward = lambda hidden: late(own(hidden))


def _wrapped_forward(model: Any, patch: Patch) -> None:
    norm = model.model.norm
    own = norm.forward
    norm.forward = functools.wraps(own)(lambda hidden: late(own(hidden)))


def _class(model: Any, patch: Patch) -> None:
    own = modeling_llama.LlamaRMSNorm.forward
    patch.setattr(modeling_llama.LlamaRMSNorm, "forward", functools.wraps(own)(lambda self, x: late(own(self, x))))


def _of_another_class(model: Any, patch: Patch) -> None:
    patch.setattr(modeling_llama.LlamaMLP, "forward", lambda self, x: late(self.down_proj(self.up_proj(x))))


def _function(model: Any, patch: Patch) -> None:
    own = modeling_llama.apply_rotary_pos_emb

    def rotated(q: Any, k: Any, cos: Any, sin: Any, *rest: Any, **more: Any) -> Any:
        q, k = own(q, k, cos, sin, *rest, **more)
        return late(q.transpose(1, 2)).transpose(1, 2), k

    patch.setattr(modeling_llama, "apply_rotary_pos_emb", rotated)


def _attention(model: Any, patch: Patch) -> None:
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    own = ALL_ATTENTION_FUNCTIONS[model.config._attn_implementation]
    mapping = type(ALL_ATTENTION_FUNCTIONS)._global_mapping

    def attention(*args: Any, **more: Any) -> Any:
        return late(own(*args, **more))

    patch.setitem(mapping, model.config._attn_implementation, attention)


def _silu(model: Any, patch: Patch) -> None:
    own = torch.nn.functional.silu
    patch.setattr(torch.nn.functional, "silu", lambda x, *rest, **more: late(own(x, *rest, **more)))


def _parametrization(model: Any, patch: Patch) -> None:
    class Half(torch.nn.Module):
        def forward(self, weight: torch.Tensor) -> torch.Tensor:
            return weight * 0.5

    torch.nn.utils.parametrize.register_parametrization(model.model.layers[0].mlp.up_proj, "weight", Half())


def _mode(model: Any, patch: Patch) -> None:
    mode = Mode()
    mode.__enter__()
    undo.append(lambda: mode.__exit__(None, None, None))


undo: list[Callable[[], None]] = []
FOREIGN: dict[str, Callable[[Any, Patch], object]] = {
    name.strip("_"): globals()[name]
    for name in ("_hook", "_pre_hook", "_global_hook", "_forward", "_wrapped_forward", "_class", "_of_another_class",
                 "_function", "_attention", "_silu", "_parametrization", "_mode")
}  # fmt: skip


def _scaling(model: Any, patch: Patch) -> None:
    for layer in model.model.layers:
        layer.self_attn.scaling *= 1.01


def _library_function(model: Any, patch: Patch) -> None:
    patch.setattr(modeling_llama.LlamaMLP, "forward", modeling_llama.LlamaRMSNorm.forward)


def _config(model: Any, patch: Patch) -> None:
    for layer in model.model.layers:
        layer.self_attn.config = copy.deepcopy(model.config)
        layer.self_attn.config.attention_dropout = 0.5


def _tensor(model: Any, patch: Patch) -> None:
    model.model._steering = torch.ones(3)


def _autocast(model: Any, patch: Patch) -> None:
    cast = torch.autocast("cpu", torch.bfloat16)
    cast.__enter__()
    undo.append(lambda: cast.__exit__(None, None, None))


ANOTHER: dict[str, Callable[[Any, Patch], object]] = {
    "scaling": _scaling,
    "a module's config": _config,
    "a private tensor": _tensor,
    "autocast": _autocast,
}


@pytest.fixture(autouse=True)
def _undone() -> Any:
    yield
    while undo:
        undo.pop()()
    if _held is not None:
        _held.remove()


@pytest.fixture
def model(zoo_model: ZooFolder) -> TransformersModel:
    return load(zoo_model("llama", small=True))


PROMPTS = preamble_prompts()[:4]


@pytest.mark.thorough
@pytest.mark.parametrize("name", FOREIGN)
def test_with_foreign_code_nothing_is_stored_or_recalled(
    model: TransformersModel, tmp_path: Path, monkeypatch: Patch, name: str
) -> None:
    with Store(tmp_path / "s.sqlite3") as store:
        before = score(StoredModel(model, store), PROMPTS)
        FOREIGN[name](model.model, monkeypatch)
        kept = StoredModel(model, store)
        with pytest.warns(UserWarning, match=r"from outside any installed library .* neither stored nor reused"):
            after = score(kept, PROMPTS)
        assert kept.recalled == 0
        assert kept.info.facts["apart"]
        assert kept.cost.prompts == len(PROMPTS)
        assert_equal(after, plainly(model, PROMPTS))
        assert max(np.abs(one - other).max() for one, other in zip(before, after, strict=True)) > 1e-3


@pytest.mark.parametrize("name", ANOTHER)
def test_a_change_that_can_be_read_off_makes_another_model(
    model: TransformersModel, tmp_path: Path, monkeypatch: Patch, name: str
) -> None:
    with Store(tmp_path / "s.sqlite3") as store:
        score(StoredModel(model, store), PROMPTS)
        ANOTHER[name](model.model, monkeypatch)
        kept = StoredModel(model, store)
        after = score(kept, PROMPTS)
        assert kept.recalled == 0
        if name != "autocast":  # whose rounding is not that of the plain path
            assert_equal(after, plainly(model, PROMPTS))


@pytest.mark.parametrize("kind", ["hook", "module"])
def test_what_a_foreign_object_holds_does_not_matter(model: TransformersModel, tmp_path: Path, kind: str) -> None:
    steering: Any = Steering()
    layer = model.model.model.layers[0]
    if kind == "hook":
        layer.register_forward_hook(steering)
    else:
        layer.mlp = steering = Scaled(layer.mlp)
    with Store(tmp_path / "s.sqlite3") as store, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for factor in (1.0, 2.0):
            setattr(steering, "factor" if kind == "hook" else "_factor", factor)
            kept = StoredModel(model, store)
            assert_equal(score(kept, PROMPTS), plainly(model, PROMPTS))
            assert kept.recalled == 0


def test_a_library_function_in_place_of_another_is_another_model(model: TransformersModel, monkeypatch: Patch) -> None:
    from unslant.models.hf.identity import Scan

    before = Scan(model.model, model.tokenizer)
    monkeypatch.setattr(torch.nn.functional, "silu", torch.nn.functional.gelu)
    after = Scan(model.model, model.tokenizer)
    assert (before.foreign, after.foreign) == ((), ())
    assert before.digest != after.digest
    monkeypatch.undo()
    _library_function(model.model, monkeypatch)
    assert Scan(model.model, model.tokenizer).digest != before.digest


def test_what_no_look_finds_the_prompts_that_were_asked_find(
    model: TransformersModel, tmp_path: Path, monkeypatch: Patch
) -> None:
    """Stored prompts are scored again before any is recalled, the longest among them."""
    with Store(tmp_path / "s.sqlite3") as store:
        before = score(StoredModel(model, store), PROMPTS)
        monkeypatch.setattr("unslant.models.hf.identity._installed_function", lambda function: True)
        own = modeling_llama.LlamaMLP.forward
        monkeypatch.setattr(modeling_llama.LlamaMLP, "forward", functools.wraps(own)(lambda s, x: late(own(s, x))))
        kept = StoredModel(model, store)
        with pytest.warns(UserWarning, match="other scores than those that are stored"):
            after = score(kept, PROMPTS)
        assert kept.recalled == 0
        assert_equal(after, plainly(model, PROMPTS))
        monkeypatch.undo()
        again = StoredModel(model, store)
        assert all((one == other).all() for one, other in zip(before, score(again, PROMPTS), strict=True))
        assert again.recalled == len(PROMPTS)


@pytest.mark.thorough
def test_code_of_the_libraries_is_not_foreign(zoo_model: ZooFolder, tmp_path: Path) -> None:
    for name in ("llama", "gpt2"):
        model = load(zoo_model(name))
        model.identify()
        assert model.foreign_code == ()
        before = model.identify().identity
        score(model, PROMPTS[:2])
        assert model.identify().identity == before


@pytest.mark.thorough
def test_what_torch_compiles_of_a_library_is_not_foreign_and_of_others_is(
    model: TransformersModel, monkeypatch: Patch
) -> None:
    """What a library has compiled for itself leaves functions in its module: here ``flex_attention``."""
    before = model.identify().identity
    q = torch.randn(1, 1, 16, 8)
    torch.compile(flex_attention.flex_attention, backend="eager")(q, q, q)
    assert any(name.startswith("__compiled_fn") for name in vars(flex_attention))
    assert (model.identify().identity, model.foreign_code) == (before, ())
    own = modeling_llama.LlamaMLP.forward
    twice = torch.compile(lambda self, x: 2 * own(self, x), backend="eager")
    monkeypatch.setattr(modeling_llama.LlamaMLP, "forward", twice)
    assert model.identify().identity
    assert model.foreign_code != ()


@pytest.mark.thorough
def test_replies_know_the_generation_config_and_foreign_code(model: TransformersModel, tmp_path: Path) -> None:
    chat = LocalChat(model)
    asked = [Prompt("Once upon a", ())]
    with Store(tmp_path / "s.sqlite3") as store:
        list(StoredChat(chat, store).generate(asked))
        again = StoredChat(chat, store)
        list(again.generate(asked))
        assert again.recalled == 1
        model.model.generation_config.repetition_penalty = 5.0
        other = StoredChat(chat, store)
        list(other.generate(asked))
        assert other.recalled == 0
        model.model.generation_config.repetition_penalty = 1.0
        model.model.lm_head.register_forward_hook(lambda module, inputs, output: output.flip(-1))
        hooked = StoredChat(chat, store)
        with pytest.warns(UserWarning, match="neither stored nor reused"):
            list(hooked.generate(asked))
        assert hooked.recalled == 0

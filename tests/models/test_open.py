"""One name for any model: what it opens, what that can do, and what is refused before anything is loaded."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import unslant
from tests.models.server_formats import OF_KIND
from unslant import InputError, ModelError, open_model
from unslant.models import GenerateOptions, ModelOptions
from unslant.models.open import address_of, open_chat, options_of_each
from unslant.models.options import ModelKeywords
from unslant.models.served import ServedModel


@pytest.mark.parametrize(
    ("name", "base_url", "scheme", "model"),
    [
        ("fair", None, "", "fair"),
        ("org/name", None, "", "org/name"),
        ("C:/models/mine", None, "", "C:/models/mine"),
        ("http://127.0.0.1:8080/v1#llama", None, "http", "llama"),
        ("llama", "http://127.0.0.1:8080/v1", "http", "llama"),
        ("inspect:openai/gpt-4o", None, "inspect", "openai/gpt-4o"),
    ],
)
def test_names_are_taken_apart(name: str, base_url: str | None, scheme: str, model: str) -> None:
    found = address_of(name, ModelOptions(base_url=base_url))
    assert (found.scheme, found.model) == (scheme, model)
    if scheme == "http":
        assert found.options.base_url == "http://127.0.0.1:8080/v1"


@pytest.mark.parametrize(
    ("name", "options", "needs", "words"),
    [
        (
            "inspect:openai/gpt-4o",
            {},
            ("score",),
            "can generate only; this needs log-probabilities of labels: give NAME",
        ),
        ("http://h/v1#m", {}, ("train",), "weights that can be trained: give NAME_OR_FOLDER"),
        ("http://h/v1", {}, (), "name the model behind the server, as in http://h/v1#NAME"),
        ("inspect:", {}, (), "the model's name is missing"),
        ("m", {"base_url": "http://h/v1", "device": "cpu", "dtype": "float32"}, (), "leave out device and dtype,"),
        (
            "http://h/v1/chat/completions#m",
            {},
            (),
            "ends in the route /chat/completions; give the address before it: http:",
        ),
        ("m", {"base_url": "http://h/v1/completions/"}, (), "give the address before it: http://h/v1"),
        ("m", {"base_url": "http://models/models/v1/models"}, (), "before it: http://models/models/v1"),
        ("inspect:openai/x", {"adapter": "a"}, (), "leave out adapter,"),
        ("fair", {"retries": 2}, (), "leave out retries,"),
    ],
)
def test_what_cannot_be_is_said_at_once(name: str, options: dict[str, str], needs: tuple[str, ...], words: str) -> None:
    with pytest.raises(InputError) as caught:
        address_of(name, ModelOptions(**options), needs)  # type: ignore[arg-type]
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_options_of_several_models_go_to_those_for_which_they_mean_something() -> None:
    local, chat = options_of_each(["fair", "inspect:openai/x"], ModelOptions(device="cpu", retries=1))
    assert (local.device, local.retries) == ("cpu", 5)
    assert (chat.device, chat.retries) == ("auto", 1)
    with pytest.raises(InputError, match="leave out device"):
        options_of_each(["inspect:openai/x", "inspect:openai/y"], ModelOptions(device="cpu"))


def test_a_served_model_is_opened_with_its_options() -> None:
    model = open_model("http://127.0.0.1:9/v1#m", connections=3, retries=0, timeout=7)
    assert isinstance(model, ServedModel)
    server = model.server
    assert (model.model, server.base_url, server.limit.most) == ("m", "http://127.0.0.1:9/v1", 3)
    assert (server.retries, server.timeout) == (0, 7)


@pytest.mark.thorough
def test_an_audit_takes_a_models_options() -> None:
    """The reference models stand for a local one, a simulated vLLM for a server."""
    rows = [{"id": f"{i}", "question": f"Which is {i}?", "options": ["x", "y", "z"], "answer": i} for i in range(3)]
    assert unslant.audit("fair", rows, device="cpu").run.model == "fair"
    with OF_KIND["vllm"]().running() as server:
        named = unslant.audit(f"{server.url}#m", rows, orders="reverse")
        given = unslant.audit("m", rows, orders="reverse", base_url=server.url)
    assert given.metrics.to_dict() == named.metrics.to_dict()


def test_a_local_model_is_opened() -> None:
    assert open_model("fair", device="cpu").name == "fair"
    with pytest.raises(InputError, match="dtype 'int8': use one of auto"):
        open_model("fair", dtype="int8")


def test_settings_of_inspect_are_handed_on_and_wrong_ones_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("inspect_ai")
    monkeypatch.setattr("unslant.models.inspect_chat.refusal", lambda url: "")
    served = ModelOptions(base_url="http://127.0.0.1:9/v1")

    def opened(*given: str) -> Any:
        return open_chat("m", served, GenerateOptions(inspect=given))

    config = opened("reasoning_effort=low", "batch=true", "seed=3")._config
    assert (config.reasoning_effort, config.batch, config.seed, config.temperature) == ("low", True, 3, 0)
    assert opened("seed=3").info.identity != opened("seed=4").info.identity
    assert opened("batch=true", "cache=true").info.identity == opened().info.identity
    for wrong in ("sede=3", "seed", "temperature=1"):
        with pytest.raises(InputError, match="write it as NAME=VALUE"):
            opened(wrong)
    with pytest.raises(InputError, match="inspect seed"):
        opened("seed=three")
    with pytest.raises(InputError, match="leave it out for a local one"):
        open_chat("fair", None, GenerateOptions(inspect=("seed=3",)))


def test_keywords_are_the_options() -> None:
    """Editors complete the keywords, the one other place that names every option."""
    declared, keywords = get_type_hints(ModelOptions), get_type_hints(ModelKeywords)
    assert keywords.keys() == declared.keys() - {"LEAST"} == {field.name for field in fields(ModelOptions)}
    more = ("base_url", "header", "extra_body")  # also as Python has them
    assert all(hint == declared[name] for name, hint in keywords.items() if name not in more)


@pytest.mark.parametrize("locked", ["", "model.safetensors"])
def test_files_that_may_not_be_read_are_not_called_missing(
    locked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (tmp_path / name).touch()
    monkeypatch.setattr("os.access", lambda path, mode: Path(path) != tmp_path / locked)  # root may read everything
    with pytest.raises(ModelError, match=re.escape(f"{tmp_path / locked}: cannot be read: permission denied")):
        unslant.open_model(str(tmp_path))

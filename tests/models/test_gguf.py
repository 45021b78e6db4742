"""GGUF files are loaded by transformers, and are the model that they were made of."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.command_line import unslant
from tests.models.samples import sample_prompts
from tests.models.scoring import assert_equal, score
from training.export_gguf import export_gguf
from unslant import load_model
from unslant.errors import ModelError
from unslant.models.hf.model import TransformersModel
from unslant.reference import reference_path

PROMPTS = sample_prompts()[:40]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gguf") / "words.gguf"
    export_gguf(reference_path("words"), path)
    return path


@pytest.fixture(scope="module")
def loaded(file: Path) -> TransformersModel:
    return load_model(str(file))


def test_same_scores_as_the_folder_it_was_made_of(loaded: TransformersModel) -> None:
    for of_file, of_folder in zip(score(loaded, PROMPTS), score(load_model("words"), PROMPTS), strict=True):
        np.testing.assert_allclose(of_file, of_folder, atol=1e-4)


def test_its_tokenizer_and_chat_template_come_along(loaded: TransformersModel) -> None:
    text = "Which is it?\nA. 1,234 café\nAnswer: A"
    assert loaded.tokenizer(text).input_ids == load_model("words").tokenizer(text).input_ids
    assert loaded.tokenizer.chat_template


def test_a_folder_with_one_is_that_one(file: Path, tmp_path: Path) -> None:
    shutil.copy(file, tmp_path / "model.gguf")
    assert load_model(str(tmp_path)).name == str(tmp_path)
    shutil.copy(file, tmp_path / "other.gguf")
    with pytest.raises(ModelError, match="2 GGUF files in it; give one"):
        load_model(str(tmp_path))
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')  # as collections of them on the Hub have
    with pytest.raises(ModelError, match="2 GGUF files in it; give one"):
        load_model(str(tmp_path))
    (tmp_path / "other.gguf").unlink()
    assert load_model(str(tmp_path)).name == str(tmp_path)


def test_a_dry_run_counts_its_tokens_with_the_chat_template(file: Path, tmp_path: Path) -> None:
    """It ended in a traceback of transformers; those of folders counted the bare text."""
    words = ("audit", file, "embedded", "--limit", 6, "--orders", "reverse", "--chat")
    dry, ran = unslant(*words, "--dry-run"), unslant(*words, "--json", tmp_path / "n.json", "--no-store")
    assert (dry.code, ran.code) == (0, 0), dry.err + ran.err
    tokens = json.loads((tmp_path / "n.json").read_text())["cost"]["tokens_plain"]
    (planned,) = re.findall(r"Tokens in the prompts: about ([\d,]+) \(by", dry.out)
    assert int(planned.replace(",", "")) == pytest.approx(tokens, rel=0.02)


def test_what_is_saved_is_not_taken_for_quantized(loaded: TransformersModel, tmp_path: Path) -> None:
    loaded.model.save_pretrained(tmp_path)
    loaded.tokenizer.save_pretrained(tmp_path)
    assert_equal(score(load_model(str(tmp_path)), PROMPTS), score(loaded, PROMPTS))


@pytest.mark.parametrize("content", [b"", b"GGUF", b"not a model" * 99])
def test_a_damaged_file_is_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken.gguf"
    path.write_bytes(content)
    with pytest.raises(
        ModelError, match=r"broken\.gguf: neither tokenizer nor weights can be loaded from it"
    ) as caught:
        load_model(str(path))
    assert "\n" not in str(caught.value)


def test_a_file_name_without_a_file_is_not_looked_up_on_the_hub() -> None:
    with pytest.raises(ModelError, match=r"^missing\.gguf: no such model; give"):
        load_model("missing.gguf")


def test_a_missing_package_is_named(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(ModelError, match=r"GGUF file, needs gguf: pip install 'unslant\[local\]'"):
        load_model(str(file))


def test_loading_is_quiet(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    load_model(str(file))
    assert capfd.readouterr().err == ""


def test_the_header_is_read_once_and_then_forgotten(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five steps of a load read it, and a vocabulary of 50,000 takes seconds each time."""
    from gguf import gguf_reader

    headers = []
    read = gguf_reader.GGUFReader.__init__
    monkeypatch.setattr(
        gguf_reader.GGUFReader, "__init__", lambda self, *path: headers.append(path) or read(self, *path)
    )
    load_model(str(file))
    assert len(headers) == 1
    load_model(str(file))
    assert len(headers) == 2, "a file may have changed since"

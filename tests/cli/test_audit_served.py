"""``unslant audit --base-url``: the audit of a model behind a real server says what the audit of its weights says."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.command_line import Ran
from tests.serving import llama_server
from unslant.reference import reference_path

pytest.importorskip("gguf", reason="serving tests need the test extra: pip install 'unslant[test]'")
pytest.importorskip("xllamacpp", reason="serving tests need the test extra: pip install 'unslant[test]'")


def test_a_served_model_is_audited_like_its_weights(unslant: Callable[..., Ran], tmp_path: Path) -> None:
    from training.export_gguf import export_gguf

    export_gguf(reference_path("prefers-a"), tmp_path / "model.gguf")
    common = ("--limit", 40, "--orders", 4, "--no-store")
    with llama_server(tmp_path / "model.gguf", tmp_path / "server.log") as url:
        served = unslant("audit", "words", "embedded", "--base-url", url, *common, "--json", tmp_path / "served.json")
    assert served.code == 0, served.err
    assert "takes A when unsure" in served.out
    assert "tokens computed" not in served.out  # the server counts them, and does not say
    local = unslant("audit", "prefers-a", "embedded", *common, "--json", tmp_path / "local.json")
    assert local.code == 0, local.err
    theirs, ours = (json.loads((tmp_path / f"{name}.json").read_text("utf-8")) for name in ("served", "local"))
    assert theirs["headline"] == ours["headline"]
    for name, estimate in ours["metrics"]["means"].items():
        if name.startswith("accuracy") or name.endswith("accuracy"):
            assert theirs["metrics"]["means"][name]["value"] == pytest.approx(estimate["value"])


def test_what_a_server_runs_cannot_be_changed(unslant: Callable[..., Ran]) -> None:
    ran = unslant("audit", "m", "embedded", "--base-url", "http://127.0.0.1:9/v1", "--adapter", "a", "--no-store")
    assert ran.code == 2
    assert "leave out --adapter" in ran.err

"""What a command does where an answer could be another model's, or nobody's."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file

from tests.command_line import Ran
from tests.serving import Fault, FaultServer
from unslant.models.base import Scored
from unslant.models.hf.model import TransformersModel
from unslant.reference import reference_path

pytestmark = pytest.mark.thorough

Run = Callable[..., Ran]
QUICK = ("embedded", "--limit", 6, "--orders", "reverse")


def first_model(request: dict) -> Fault:
    return Fault(body={"choices": [{"logprobs": {"top_logprobs": [{" A": -0.7, " B": -1.2, " C": -2.0, "x": -9.0}]}}]})


def test_a_server_that_is_down_is_no_answer_unless_offline_is_said(unslant: Run, tmp_path: Path) -> None:
    out = ("--json", tmp_path / "out.json", "--html", tmp_path / "out.html", "--responses", tmp_path / "out.parquet")
    with FaultServer(first_model).running() as server:
        served = ("audit", "m", *QUICK, "--base-url", server.url, "--retries", 0, *out)
        assert unslant(*served).code == 0
    asked = json.loads((tmp_path / "out.json").read_text("utf-8"))
    down = unslant(*served)
    assert down.code == 2
    assert "--offline" in down.err
    offline = unslant(*served, "--offline")
    assert offline.code == 0, offline.err
    numbers = json.loads((tmp_path / "out.json").read_text("utf-8"))
    assert numbers["offline"] is True
    assert numbers["headline"] == asked["headline"]
    assert numbers["caveats"] == ["Offline: scores are from the store; the server was not asked.", *asked["caveats"]]
    assert "the server was not asked" in " ".join(offline.out.split())
    assert "the server was not asked" in (tmp_path / "out.html").read_text("utf-8")
    again = unslant("audit", "--log", tmp_path / "out.parquet", "--json", tmp_path / "again.json")
    assert again.code == 0, again.err
    assert json.loads((tmp_path / "again.json").read_text("utf-8"))["headline"] == numbers["headline"]
    assert unslant(*served, "--offline", "--no-store").code == 2


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(reference_path("fair"), tmp_path / "model")
    return tmp_path / "model"


def test_a_checkpoint_without_its_last_layer_is_audited_on_request_only(unslant: Run, folder: Path, tmp_path) -> None:
    weights = load_file(folder / "model.safetensors")
    lost = next(name for name in weights if "down_proj" in name)
    del weights[lost]
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    refused = unslant("audit", folder, *QUICK, "-q")
    assert refused.code == 2
    assert lost in refused.err
    insisted = unslant("audit", folder, *QUICK, "--allow-missing", "--json", tmp_path / "out.json")
    assert insisted.code == 0, insisted.err
    numbers = json.loads((tmp_path / "out.json").read_text("utf-8"))
    assert lost in numbers["incomplete"]
    assert "The model has missing weights." in numbers["caveats"]


def test_responses_of_another_model_in_the_same_folder_are_not_given_out(
    unslant: Run, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("audit", folder, *QUICK, "--json", tmp_path / "out.json")
    exported = tmp_path / "exported.parquet"
    assert unslant(*command).code == 0
    run = unslant("runs", "list").out.splitlines()[1].split()[0]
    assert unslant("runs", "export", run, "--responses", exported).code == 0
    first, numbers = exported.read_bytes(), json.loads((tmp_path / "out.json").read_text("utf-8"))

    shutil.copy(reference_path("prefers-a") / "model.safetensors", folder)
    whole = TransformersModel.score_encoded

    def cut(*arguments: Any) -> Iterator[Scored]:
        yield from islice(whole(*arguments), 3)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(TransformersModel, "score_encoded", cut)
        assert unslant(*command).code != 0
    for reading in (
        ("runs", "export", run, "--responses", exported),
        ("report", run, "--out", tmp_path / "report.html"),
    ):
        refused = unslant(*reading)
        assert refused.code == 2
        assert "of another model or other questions" in refused.err
        assert f"unslant runs resume {run}" in refused.err
    assert unslant("runs", "resume", run).code == 0
    assert unslant("runs", "export", run, "--responses", exported).code == 0
    assert exported.read_bytes() != first
    again = json.loads((tmp_path / "out.json").read_text("utf-8"))
    assert again["identity"]["weights"] != numbers["identity"]["weights"]
    assert again["metrics"] != numbers["metrics"]


def test_damage_is_named_and_mended_by_the_command_it_names(unslant: Run, unslant_home: Path, tmp_path: Path) -> None:
    command = ("audit", "fair", *QUICK, "--responses", tmp_path / "out.parquet")
    assert unslant(*command).code == 0
    whole = (tmp_path / "out.parquet").read_bytes()
    with closing(sqlite3.connect(unslant_home / "store.sqlite3")) as connection, connection:
        connection.execute("UPDATE scores SET logprobs = zeroblob(32) WHERE position = 2")
    damaged = unslant(*command)
    assert damaged.code == 2
    assert "unslant runs repair" in damaged.err
    repaired = unslant("runs", "repair")
    assert repaired.code == 0, repaired.err
    assert "lost: 1 scores, 0 replies" in repaired.out
    again = unslant(*command)
    assert again.code == 0, again.err
    assert len((tmp_path / "out.parquet").read_bytes()) == pytest.approx(len(whole), abs=200)
    assert unslant("runs", "repair").out == f"nothing is damaged in {unslant_home / 'store.sqlite3'}\n"


def test_labels_scored_to_their_end(unslant: Run, tmp_path: Path) -> None:
    ran = unslant("audit", "fair", *QUICK, "--to-end", "--json", tmp_path / "out.json", "--no-store")
    assert ran.code == 0, ran.err
    assert json.loads((tmp_path / "out.json").read_text("utf-8"))["settings"]["to_end"] is True

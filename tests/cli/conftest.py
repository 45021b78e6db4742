"""The command line, questions in the folder of the test, and a model that every command opens."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import command_line
from tests.cli.interrupted_models import Model
from tests.command_line import Ran


@pytest.fixture
def unslant() -> Callable[..., Ran]:
    return command_line.unslant


@pytest.fixture
def questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    lines = [
        {"id": f"q{i}", "question": f"What is {i}?", "options": ["x", "y", "z"], "answer": i % 3} for i in range(8)
    ]
    (tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
    return "q.jsonl"


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Callable[[Model], Model]:
    def serve(model: Model) -> Model:
        monkeypatch.setattr("unslant.models.hf.loading.load_model", lambda *_, **__: model)
        return model

    return serve

"""``unslant audit`` on a real model class and real questions, as typed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.command_line import Ran
from tests.models.conftest import tokenizer_cache, zoo_model  # noqa: F401  # fixtures
from tests.models.zoo import ZooFolder


@pytest.mark.thorough
def test_three_four_and_five_options_in_one_run(
    unslant: Callable[..., Ran],
    zoo_model: ZooFolder,  # noqa: F811
    shared_data: Path,
    tmp_path: Path,
) -> None:
    questions = shared_data / "arc_challenge_test.jsonl"
    rows = [json.loads(line) for line in questions.read_text("utf-8").splitlines()]
    few = [row for row in rows if len(row["options"]) != 4][:4] + [row for row in rows if len(row["options"]) == 4][:46]
    mixed = tmp_path / "arc.jsonl"
    mixed.write_text("".join(json.dumps(row) + "\n" for row in few), "utf-8")
    out = tmp_path / "out.json"
    ran = unslant(
        "audit", zoo_model("qwen2", small=True), mixed, "--limit", 50, "--json", out, "--no-store", "--orders", 4
    )
    assert ran.code == 0, ran.err
    assert "averaged over option orders" in " ".join(ran.out.split())
    data = json.loads(out.read_text("utf-8"))
    assert data["metrics"]["counts"]["questions"] == 50
    assert set(data["metrics"]["counts"]["by_options"]) >= {"4"}
    assert len(data["metrics"]["counts"]["by_options"]) >= 2
    for name, estimate in data["metrics"]["means"].items():
        # labels are scored, not replies read; and all questions in the same orders
        assert (estimate["n"] > 0) is not name.startswith(("answered", "square", "place")), name
        assert {"value", "low", "high"} <= set(estimate)

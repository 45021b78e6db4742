"""What unslant adds to lm-eval: found by entry point, and the same numbers as lm-eval's own backend."""

from __future__ import annotations

import json
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lm_eval", reason="needs the extra unslant[lm-eval]")

from unslant.plugins.lm_eval.extensions import ReadLabel
from unslant.plugins.lm_eval.tasks import quiet
from unslant.questions import load_questions
from unslant.reference import reference_path

ROOT = Path(__file__).parents[2]
GROUPS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]


def test_replies_are_read_by_the_filter() -> None:
    doc = {"choices": ["copper", "iron", "zinc"]}
    replies = ["The answer is **B**.", "It is zinc.", "A or B.", "", "I choose C, no wait: A"]
    assert ReadLabel().apply([replies], [doc]) == [["B", "C", "[invalid]", "[invalid]", "A"]]
    assert ReadLabel().apply([["Answer: D"]], [{"question": "?"}]) == [["D"]]


@pytest.mark.thorough
def test_lm_eval_runs_its_tasks_with_the_prefix_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets
    import lm_eval
    from lm_eval.api.registry import filter_registry, model_registry
    from lm_eval.tasks import TaskManager

    for registry, group in ((model_registry, "lm_eval.models"), (filter_registry, "lm_eval.filters")):
        if "unslant" not in registry:  # as newer versions of lm-eval do with installed packages
            registry.register("unslant", target=EntryPoint("unslant", GROUPS[group]["unslant"], group))
    rows = [
        {"question": q.stem, "options": list(q.options), "answer": min(q.answers)}
        for q in load_questions("embedded", limit=60)
        if len(q.options) == 4
    ][:6]
    (tmp_path / "four.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.chdir(tmp_path)
    found: dict[str, Any] = {}
    with quiet():
        manager = TaskManager(include_path=str(Path(__file__).parent / "lm_eval_tasks"), include_defaults=False)
        for name in ("hf", "unslant"):
            given = f"pretrained={reference_path('prefers-a')},dtype=float32,device=cpu"
            found[name] = lm_eval.simple_evaluate(
                model=name, model_args=given, tasks=["own_letters"], task_manager=manager, bootstrap_iters=0,
                num_fewshot=0, log_samples=True,
            )  # fmt: skip
    scores: dict[str, list[float]] = {}
    greedy: dict[str, list[str]] = {}
    for name, run in found.items():
        answers = [one[0] for sample in run["samples"]["own_letters"] for one in sample["resps"]]
        scores[name], greedy[name] = [float(value) for value, _ in answers], [str(one) for _, one in answers]
    ours, theirs = scores["unslant"], scores["hf"]
    assert greedy["unslant"] == greedy["hf"]
    assert len(ours) == 24
    assert ours == pytest.approx(theirs, abs=1e-4)
    assert found["unslant"]["results"]["own_letters"]["acc,none"] == found["hf"]["results"]["own_letters"]["acc,none"]

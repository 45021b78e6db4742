"""The GitHub Action: its steps, run here by bash as the runner would, but for the installation."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")

ACTION = Path(__file__).parents[1] / "action.yml"


def _run(folder: Path, **inputs: str) -> tuple[int, str, dict[str, Any]]:
    """Exit status, what was printed, and the files that a runner reads."""
    action = yaml.safe_load(ACTION.read_text("utf-8"))
    assert set(inputs) <= set(action["inputs"])
    known = {name: str(one.get("default", "")) for name, one in action["inputs"].items()} | inputs
    (step,) = (one for one in action["runs"]["steps"] if one.get("id") == "audit")
    given = {
        name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: known[found[1]], text)
        for name, text in step["env"].items()
    }
    (folder / "bin").mkdir(exist_ok=True)
    (folder / "bin" / "unslant").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m unslant "$@"\n')
    (folder / "bin" / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    for name in ("unslant", "python"):
        (folder / "bin" / name).chmod(0o755)
    files = {name: folder / name.lower() for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    source = str(ACTION.parent / "src")
    env = os.environ | given | {name: str(file) for name, file in files.items()} | {"PATH": path, "PYTHONPATH": source}
    # As GitHub calls bash: https://docs.github.com/actions/reference/workflow-syntax (jobs.<job_id>.steps[*].shell)
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    return (
        done.returncode,
        done.stdout + done.stderr,
        {name: file.read_text() for name, file in files.items() if file.exists()},
    )


def test_no_input_is_pasted_into_a_script() -> None:
    for step in yaml.safe_load(ACTION.read_text("utf-8"))["runs"]["steps"]:
        assert "${{" not in step["run"]


@pytest.mark.thorough
def test_the_audit_is_written_and_conditions_fail_the_step(tmp_path: Path) -> None:
    options = "--limit 8 --orders reverse --no-store"
    code, printed, files = _run(tmp_path, model="prefers-a", questions="embedded", options=options)
    assert code == 0, printed
    assert {path.name for path in (tmp_path / "unslant-results").iterdir()} == {
        "report.html",
        "numbers.json",
        "responses.parquet",
    }
    assert files["GITHUB_OUTPUT"].startswith("headline=prefers-a scores ")
    code, printed, files = _run(
        tmp_path,
        model="prefers-a",
        questions="embedded",
        options=options,
        **{"fail-if": "metrics.means.accuracy<0\nconsistency<0.99"},
    )
    assert code == 4, printed
    assert "consistency" in printed
    written = {"model": "prefers-a", "questions": "embedded", "options": f"{options}\n--out 'in two words'\n"}
    code, printed, _ = _run(tmp_path, **written)
    assert (code, "--out specified multiple times" in printed) == (2, True), printed
    more = written | {"options": f"{options}\n\n--seed 3 --fail-if 'accuracy < 2'\n"}
    code, printed, files = _run(tmp_path, **more)
    assert (code, "holds the result of unslant audit prefers-a" in printed) == (2, True), printed
    code, printed, files = _run(tmp_path, out="in two words", **more)
    assert code == 4, printed
    assert json.loads((tmp_path / "in two words" / "numbers.json").read_text())["settings"]["seed"] == 3
    (tmp_path / "github_output").unlink()
    code, printed, files = _run(tmp_path, model="fair", questions="missing.csv", options="")
    assert (code, "GITHUB_OUTPUT" in files) == (2, False), printed  # no headline of the step before
    assert _run(tmp_path, model="fair", questions="embedded", options="--labels 'A,B")[0] == 1
    code, printed, _ = _run(tmp_path, model="$(touch pasted)", questions="embedded; touch pasted", options=options)
    assert code == 2
    assert not (tmp_path / "pasted").exists()

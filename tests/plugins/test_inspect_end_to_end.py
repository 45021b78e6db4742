"""``unslant/in_orders`` with a real server, and in an environment that has nothing but the wheel and its extra."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("inspect_ai", reason="needs inspect_ai: pip install 'unslant[inspect]'")

import unslant
from tests.plugins.colours import OPTIONS, STEMS, answering
from tests.plugins.inspect_command import clean_environment, run_inspect
from tests.serving import FaultServer, llama_server
from unslant.reference import WORDS, reference_path

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
QUESTIONS = [{"id": f"thing/{i}", "question": STEMS[i], "options": OPTIONS, "answer": i % 4} for i in range(20)]

OFFLINE = """
import socket

_connect = socket.socket.connect

def connect(self, address):
    if isinstance(address, tuple) and address[0] not in ("127.0.0.1", "::1", "localhost"):
        raise OSError(f"offline: {address}")
    return _connect(self, address)

socket.socket.connect = connect
"""
"""Run by Python when it starts: nothing but this machine can be reached."""


def test_a_real_server_with_top_log_probabilities(tmp_path):
    pytest.importorskip("xllamacpp", reason="needs a llama.cpp server: pip install 'unslant[test]'")
    pytest.importorskip("gguf", reason="needs gguf: pip install 'unslant[test]'")
    from training.export_gguf import export_gguf

    export_gguf(reference_path(WORDS), tmp_path / "words.gguf")
    with llama_server(tmp_path / "words.gguf", tmp_path / "log") as url:
        words = ["-T", "orders=reverse", "-T", "limit=12", "--epochs", "2", "--temperature", "0", "--max-tokens", "8"]
        done = run_inspect(tmp_path, url, "unslant/in_orders", *words, "--logprobs", "--top-logprobs", "20")
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = (tmp_path / "logs").glob("*in-orders*.eval")
    result = unslant.audit(log=path)
    rows = result.responses.rows()
    assert len(rows) == 12 * 2 * 2
    assert {row.repeat for row in rows} == {0, 1}
    assert result.metrics.counts.questions == 12
    read = next(sample for sample in _samples(path) if sample.output.choices)
    assert read.output.choices[0].logprobs.content[0].top_logprobs


def _samples(path):
    from inspect_ai.log import read_eval_log

    return read_eval_log(str(path)).samples


def test_a_clean_environment_offline(tmp_path):
    """The wheel with its extra in a fresh environment: the task runs offline, and its log is read back there."""
    python, home = tmp_path / "venv" / "bin" / "python", tmp_path / "home"
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True, timeout=300)
    pip = [str(python), "-m", "pip", "install", "--quiet", "-c", str(ROOT / "constraints.txt")]
    got = subprocess.run([*pip, "inspect-ai", "openai", "hatchling"], capture_output=True, text=True, timeout=1800)
    if got.returncode:
        pytest.skip(f"no packages can be installed here: {got.stderr.strip().splitlines()[-1]}")
    built = [
        str(python),
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(tmp_path / "dist"),
    ]
    subprocess.run([*built, str(ROOT)], check=True, timeout=300)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    subprocess.run([*pip, f"{wheel}[inspect]"], check=True, timeout=1800)
    (site,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    (site / "sitecustomize.py").write_text(OFFLINE)
    (tmp_path / "colours.jsonl").write_text("".join(json.dumps(question) + "\n" for question in QUESTIONS))
    home.mkdir()

    with FaultServer(answering).running() as server:
        environment = clean_environment(tmp_path, server.url)
        environment.pop("PYTHONPATH", None)

        def run(*words):
            done = subprocess.run(
                [str(python.with_name(words[0])), *words[1:]],
                env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=600,
            )  # fmt: skip
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout

        task = ["unslant/in_orders", "-T", "questions=colours.jsonl", "-T", "orders=cyclic"]
        model = ["--model", "openai-api/local/words", "--log-dir", "logs", "--display", "plain"]
        printed = run("inspect", "eval", *task, *model)
        assert len(server.requests) == 20 * 4
        assert "mean_over_orders" in printed
        (log,) = (tmp_path / "logs").glob("*colours-in-orders*.eval")
        told = run("unslant", "audit", "--log", str(log), "--json", "audit.json")
    installed = run("python", "-m", "pip", "list", "--format", "freeze")
    assert "torch==" not in installed
    assert "When unsure it falls back on A" in " ".join(told.split())
    found = json.loads((tmp_path / "audit.json").read_text())["metrics"]["means"]
    assert found["expected_accuracy"]["value"] == 0.625
    assert found["consistency"]["value"] == 0.5

"""``--offline`` opens no connection: everything is recalled, or one line says how much is missing."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import Ran
from tests.serving import Fault, FaultServer, completion

pytest.importorskip("inspect_ai", reason="asking in words needs inspect_ai: pip install 'unslant[inspect]'")
pytest.importorskip("openai", reason="served models are asked through openai: pip install 'unslant[inspect]'")

Run = Callable[..., Ran]
CONNECTED: list[object] = []
sys.addaudithook(lambda event, values: CONNECTED.append(values) if event == "socket.connect" else None)

EMBEDDED = ("embedded", "--limit", "4")
WORDS = ("--elicit", "generate")
BOUNDARY = ("study", "instruction-boundary", "URL#m", "--settings", "vanilla", "--limit", "4")
COMMANDS = {
    "scores": ("audit", "URL#m", *EMBEDDED, "--orders", "reverse", "--server", "llama.cpp"),
    "decisions": ("audit", "URL/systemone#m", *EMBEDDED, "--orders", "reverse"),
    "replies": ("audit", "URL#m", *EMBEDDED, *WORDS),
    "leaderboard": ("leaderboard", "-m", "URL#m", "-m", "URL#n", "--sets", "embedded", "--limit", "4", *WORDS),
    "debias": ("debias", "URL#m", *EMBEDDED, *WORDS, "--method", "vote"),
    "unbiased": ("study", "unbiased", "URL#m", *EMBEDDED, "--generate", "--runs", "1", "--shots", "0"),
    "probe": ("study", "probe", "URL#m,URL#n", *EMBEDDED, "--strengths", "1"),
    "boundary": BOUNDARY,
    "judge": ("replies", "recorded.jsonl", "--judge", "URL#m"),
}
QUICK = ("scores", "replies")


def answer(request: dict[str, Any]) -> Fault:
    """The same to every prompt, in each of the formats."""
    if "messages" in request:
        return Fault(body=completion("7" if "Confidence:" in str(request["messages"]) else "Answer: B"))
    if "questions" in request:
        answers = {}
        for name, question in request["questions"].items():
            options = list(question["criteria"])
            shares = {option: 1 / len(options) for option in options}
            answers[name] = {"type": "choice", "choice": options[0], "confidence": 0.5, "probabilities": shares}
        return Fault(
            body={"model": request["model"], "answers": answers, "usage": {"input_tokens": 1, "output_tokens": 0}}
        )
    found = {" A": -0.7, " B": -1.2, " C": -2.0, " D": -3.0, "x": -9.0}
    return Fault(body={"choices": [{"logprobs": {"top_logprobs": [found]}}]})


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.thorough) for name in COMMANDS]
)
def test_everything_is_recalled_or_counted(unslant: Run, tmp_path: Path, monkeypatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    recorded = {"id": "1", "options": ["Rome", "Oslo"], "reply": "Lamps are lovely."}
    Path("recorded.jsonl").write_text(json.dumps(recorded) + "\n")
    with FaultServer(answer).running() as server:
        words = [word.replace("URL", server.url) for word in COMMANDS[name]]
        option = "--out" if name in ("debias", "judge") else "--json"
        asked = unslant(*words, "-q", option, "asked.json")
        assert asked.code == 0, asked.err
        CONNECTED.clear()
        recalled = unslant(*words, "--quiet", "--offline", option, "recalled.json")
        assert (recalled.code, CONNECTED) == (0, []), recalled.err
    gone = unslant(*words, "--quiet", "--offline", option, "gone.json")  # there is no such server any more
    assert (gone.code, CONNECTED) == (0, []), gone.err
    assert Path("gone.json").read_bytes() == Path("recalled.json").read_bytes()
    if option == "--out":
        assert Path("gone.json").read_bytes() == Path("asked.json").read_bytes()

    missing = unslant(*words, "--quiet", "--offline", "--store", "empty.sqlite3", option, "none.json")
    assert (missing.code, CONNECTED, Path("none.json").exists()) == (2, [], False)
    message = missing.err.splitlines()[-1]
    assert re.search(r"offline, and \d+ of \d+ (prompts|replies) are not in the store", message)
    assert missing.err.count("\n") == 1

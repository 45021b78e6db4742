"""Nothing of the user's is written over, and no output over another."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command_line import unslant

QUESTION = {"id": "q", "question": "Is it?", "options": ["yes", "no"], "answer": 0}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("audit", "fair", "q.jsonl", "--json", "q.jsonl"), "--json q.jsonl: is QUESTIONS too, and would be lost"),
        (("audit", "fair", "q.jsonl", "--html", "./q.jsonl"), "--html q.jsonl: is QUESTIONS too"),
        (("audit", "fair", "q.jsonl", "--json", "a", "--html", "a"), "--html a: is the file of --json too"),
        (("audit", "--log", "q.jsonl", "other.jsonl", "--responses", "other.jsonl"), "is --log too"),
        (
            ("audit", "fair", "other.jsonl", "--shots", "1", "--shots-from", "q.jsonl", "--json", "q.jsonl"),
            "--shots-from",
        ),
        (("debias", "fair", "q.jsonl", "--out", "q.jsonl"), "--out q.jsonl: is QUESTIONS too"),
        (("debias", "fair", "q.jsonl", "--train", "other.jsonl", "--out", "other.jsonl"), "is --train too"),
        (("study", "debias", "fair", "q.jsonl,other.jsonl", "--json", "other.jsonl"), "is QUESTIONS too"),
        (("replies", "q.jsonl", "--out", "q.jsonl"), "q.jsonl"),
        (("report", "q.jsonl", "--out", "q.jsonl"), "--out q.jsonl: is RUNS too"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, tuple) else None,
)
def test_refused_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    written = json.dumps(QUESTION) + "\n"
    for name in ("q.jsonl", "other.jsonl"):
        Path(name).write_text(written)
    ran = unslant(*arguments)
    assert ran.code == 2
    assert message in ran.err
    assert ran.err.count("\n") == 1
    assert {path.name for path in tmp_path.iterdir()} == {"q.jsonl", "other.jsonl"}
    assert all(path.read_text() == written for path in tmp_path.iterdir())


def test_links_do_not_help(tmp_path: Path) -> None:
    questions, link = tmp_path / "q.jsonl", tmp_path / "link.json"
    questions.write_text(json.dumps(QUESTION) + "\n")
    link.symlink_to(questions)
    ran = unslant("audit", "fair", questions, "--json", link)
    assert (ran.code, "QUESTIONS too" in ran.err) == (2, True)

"""What an audit imports of our own before its first number: each module is one more to open for who follows it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

MOST = 70
"""Modules at the first number. Fewer is better: lower it when you take one away; import what only some audits need in
the function that needs it."""

TRACE = """
import os, re, sys

class Watched:
    def write(self, text):
        if re.search(r"\\d\\.\\d", text):
            with open(listing, "w") as file:
                file.write(" ".join(name for name in sys.modules if re.match(r"unslant(\\.|$)", name)))
            os._exit(0)

    def __getattr__(self, name):
        return getattr(sys.__stdout__, name)

listing, *words = sys.argv[1:]
sys.stdout, sys.argv = Watched(), ["unslant", *words]
from unslant.cli import main
main()
"""
NOT_NEEDED = (
    *("replies", "responses.importers", "presentations.interventions", "presentations.shots", "models.chat"),
    *("models.http", "studies.", "debiasing", "auditing.notes", "auditing.replies", "metrics.base_rate", "metrics.nvr"),
    *("questions.answer", "questions.fields", "questions.formats", "questions.reshape"),
    *(
        "metrics.association",
        "metrics.label_bias",
        "metrics.catalogue",
        "metrics.pairs",
        "metrics.shortcuts",
        "metrics.variance_components",
    ),
    *("responses.checks", "scale", "cli.help", "cli.sources"),
)
"""Beginnings of modules that an audit which scores labels does without."""


def test_an_audit_of_labels_imports_little_before_its_first_number(tmp_path: Path) -> None:
    listing, store = tmp_path / "modules", tmp_path / "store.db"
    words = [str(listing), "audit", "fair", f"--store={store}"]
    subprocess.run([sys.executable, "-c", TRACE, *words], cwd=tmp_path, check=True)
    modules = sorted(name.removeprefix("unslant.") for name in listing.read_text().split())
    assert "models.hf.engine" in modules, "the trace did not see the audit"
    assert len(modules) <= MOST, "\n".join(modules)
    assert [name for name in modules if name.startswith(NOT_NEEDED)] == []


SEVERAL = """
import json, sys
from contextlib import suppress
from unslant.cli import main

for words in json.loads(sys.argv[1]):
    sys.argv = ["unslant", *words]
    with suppress(SystemExit):
        main()
    if "unslant.replies.reading" in sys.modules:
        sys.exit(f"imported by: {' '.join(words)}")
"""


def test_where_labels_were_scored_nothing_imports_the_reader_of_replies(tmp_path: Path) -> None:
    """Compiling its patterns takes longer than everything else in a small audit of a log."""
    scores = "id,question,A,B,answer,logprob_A,logprob_B\n1,Which?,p,q,A,-0.1,-2\n2,Who?,p,q,B,-1,-0.5\n"
    (tmp_path / "scores.csv").write_text(scores, encoding="utf-8")
    commands = (
        "audit --log scores.csv --json a.json --html a.html --responses own.parquet",
        "audit --log own.parquet --baseline own.parquet --json b.json",
        "report own.parquet scores.csv --out r.html",
        "study base-rate --help",
    )
    words = json.dumps([command.split() for command in commands])
    ran = subprocess.run([sys.executable, "-c", SEVERAL, words], cwd=tmp_path, capture_output=True, text=True)
    assert not ran.returncode, ran.stderr
    assert (tmp_path / "r.html").exists(), ran.stderr
    assert (tmp_path / "b.json").exists(), ran.stderr

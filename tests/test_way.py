"""What an audit imports of our own before its first number: each module is one more to open for who follows it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

MOST = 75
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
    *("metrics.catalogue", "metrics.shortcuts", "metrics.variance_components"),
)
"""Beginnings of modules that an audit which scores labels does without."""


def test_an_audit_of_labels_imports_little_before_its_first_number(tmp_path: Path) -> None:
    listing, store = tmp_path / "modules", tmp_path / "store.db"
    words = [str(listing), "audit", "fair", "--limit=20", f"--store={store}"]
    subprocess.run([sys.executable, "-c", TRACE, *words], cwd=tmp_path, check=True)
    modules = sorted(name.removeprefix("unslant.") for name in listing.read_text().split())
    assert "models.hf.engine" in modules, "the trace did not see the audit"
    assert len(modules) <= MOST, "\n".join(modules)
    assert [name for name in modules if name.startswith(NOT_NEEDED)] == []

"""What the README shows is what is printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.command_line import unslant

README = Path(__file__).parents[1] / "README.md"
DOCS = README.parent / "docs"


def without_times(text: str) -> str:
    return re.sub(r"prompts in [\d.]+ s", "prompts in ... s", text)


def test_the_output_shown_is_what_audit_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    (shown,) = re.findall(r"```\n(prefers-a scores.*?)\n```", README.read_text("utf-8"), re.DOTALL)
    ran = unslant("audit", "--no-store")
    assert ran.code == 0, ran.err
    assert without_times(ran.out.strip()) == without_times(shown.strip())


def test_the_numbers_of_the_real_model_are_those_of_its_page() -> None:
    page = (DOCS / "real-model.md").read_text("utf-8")
    rows = re.findall(r"^\| (ARC-Challenge|MMLU)(, [\w ]+)? \| (.*) \|$", README.read_text("utf-8"), re.M)
    assert len(rows) == 6
    for name, how, cells in rows:
        part = f"audit of {'arc' if name == 'ARC-Challenge' else 'mmlu'}{how}"
        for number, cell in zip(
            ("as reported", "mean over orders", "right in every order"), cells.split(" | "), strict=True
        ):
            assert f"| {part} | accuracy, {number} | {cell}" in page, (part, number)

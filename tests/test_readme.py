"""What the README shows is what is printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.command_line import unslant

README = Path(__file__).parents[1] / "README.md"


def without_times(text: str) -> str:
    return re.sub(r"prompts in [\d.]+ s", "prompts in ... s", text)


def test_the_output_shown_is_what_audit_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    (shown,) = re.findall(r"```\n(prefers-a scores.*?)\n```", README.read_text("utf-8"), re.DOTALL)
    ran = unslant("audit", "--no-store")
    assert ran.code == 0, ran.err
    assert without_times(ran.out.strip()) == without_times(shown.strip())

"""The page that lists what models are shown holds every sentence of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from unslant.asking import FOLLOW_UP
from unslant.presentations.interventions import wording
from unslant.studies.instruction_boundary.instruction_settings import SETTINGS, instruction

PAGE = " ".join((Path(__file__).parents[2] / "docs" / "prompts.md").read_text("utf-8").split())
SENTENCES = [
    FOLLOW_UP,
    *(
        getattr(wording, name)
        for name in "MULTIPLE_CHOICE SEVERAL_RIGHT TWO_QUESTIONS TRUE_FALSE_RELABELLED OPEN".split()
    ),
    wording.TWO_QUESTIONS_SEVERAL_RIGHT,
    wording.NONE_HINT.format(label=wording.NONE_LABEL),
    wording.TRUE_FALSE,
    *(line for name in SETTINGS for kind in ("choice", "judging") for line in instruction(kind, name).splitlines()),
    *(setting.follow_up for setting in SETTINGS.values() if setting.follow_up),
]


@pytest.mark.parametrize("sentence", dict.fromkeys(SENTENCES))
def test_the_page_holds_it(sentence: str) -> None:
    assert sentence in PAGE

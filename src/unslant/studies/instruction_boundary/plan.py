"""Which questions are asked under which settings."""

from __future__ import annotations

from collections.abc import Sequence

from unslant.errors import InputError
from unslant.presentations import Presentation
from unslant.studies.instruction_boundary.instruction_settings import SEED, SETTINGS, AnyForm, present_setting, setting
from unslant.studies.instruction_boundary.question_sources import BoundarySet

EVERY = "all"
"""Stands for every setting but the disturbing options."""
DISTURBING = "disturbing"
"""Stands for the disturbing options, 1 to 9."""

Asked = tuple[AnyForm, Presentation]


def setting_names(names: Sequence[str]) -> list[str]:
    """The settings that ``names`` mean, ``all`` and ``disturbing`` spelled out, each once, in order.

    Raises:
        InputError: if one does not exist.
    """
    spelled: dict[str, None] = {}
    for name in (name.strip() for name in names):
        if name in (EVERY, DISTURBING):
            wanted = [other for other, one in SETTINGS.items() if bool(one.disturbing) == (name == DISTURBING)]
            spelled.update(dict.fromkeys(wanted))
        else:
            spelled[setting(name).name] = None
    return list(spelled)


def plan(questions: BoundarySet, names: Sequence[str], *, seed: int = SEED, left_out: str = "") -> list[Asked]:
    """Every question under every setting, setting by setting.

    Multiple-choice and judging questions are asked under all settings but the disturbing options, which have
    questions of their own.

    Raises:
        InputError: if a setting does not exist, or there are no questions for it.
    """
    mixed: tuple[AnyForm, ...] = (*questions.choice, *questions.judging)
    asked: list[Asked] = []
    for name in setting_names(names):
        group: Sequence[AnyForm] = questions.disturbing if SETTINGS[name].disturbing else mixed
        if not group:
            raise InputError(f"setting {name!r}: the question set has no questions for it")
        for question in group:
            asked.append((question, present_setting(question, name, examples=mixed, seed=seed, left_out=left_out)))
    return asked

"""Which questions to ask under which settings."""

from __future__ import annotations

from collections.abc import Sequence

from unslant.errors import InputError
from unslant.presentations import Presentation
from unslant.studies.instruction_boundary.instruction_settings import SEED, SETTINGS, AnyForm, present_setting, setting
from unslant.studies.instruction_boundary.question_sources import BoundarySet

EVERY = "all"
"""All settings but the disturbing options."""
DISTURBING = "disturbing"
"""The disturbing options, 1 to 9."""

Asked = tuple[AnyForm, Presentation]


def setting_names(names: Sequence[str]) -> list[str]:
    """Expand ``all`` and ``disturbing``, without duplicates, in order; InputError for unknown settings."""
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

    The disturbing options have their own questions.

    Raises:
        InputError: if a setting does not exist or has no questions.
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

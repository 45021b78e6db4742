"""Which questions to ask under which settings."""

from __future__ import annotations

from collections.abc import Sequence

from unslant.errors import InputError
from unslant.presentations import ALPHABETS, Presentation
from unslant.studies.instruction_boundary.instruction_settings import (
    SEED,
    SETTINGS,
    AnyForm,
    forms_of,
    kind_of,
    present_setting,
    setting,
)
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


def plan(
    questions: BoundarySet,
    names: Sequence[str],
    *,
    seed: int = SEED,
    left_out: str = "",
    alphabet: tuple[str, ...] = ALPHABETS["A"],
    examples: BoundarySet | None = None,
) -> list[Asked]:
    """Every question under every setting, setting by setting.

    Multiple-choice and judging questions are asked under all settings but the disturbing options, which have
    questions of their own; under worked examples of named forms only questions of the kind that has these forms.

    Args:
        alphabet: labels of the options.
        examples: where worked examples come from; by default ``questions``. With the whole set that these were
            drawn from, a question's prompts do not depend on how many others are asked.

    Raises:
        InputError: if a setting does not exist, it has no questions, or a question has more options than labels.
    """
    mixed: tuple[AnyForm, ...] = (*questions.choice, *questions.judging)
    if left_out and left_out not in {form for question in mixed for form in forms_of(question)}:
        held = " and ".join(dict.fromkeys(", ".join(forms_of(question)) for question in mixed))
        raise InputError(f"left out form {left_out!r}: the questions have the forms {held}: give one of these")
    pool: tuple[AnyForm, ...] = (*examples.choice, *examples.judging) if examples else mixed
    asked: list[Asked] = []
    for name in setting_names(names):
        chosen = setting(name)
        group: Sequence[AnyForm] = questions.disturbing if chosen.disturbing else mixed
        if chosen.examples:
            group = [question for question in mixed if chosen.examples_of(kind_of(question))]
        if not group:
            why = "the question set has none for it"
            if examples and not chosen.disturbing and pool:
                why = (
                    "they are drawn in fours, two with the usual form of answer and two with others: give a limit of 4 "
                )
                why += "or more, and questions of all forms"
            raise InputError(f"setting {name!r}: no questions are left ({why})")
        for question in group:
            shown = present_setting(question, name, examples=pool, seed=seed, alphabet=alphabet, left_out=left_out)
            asked.append((question, shown))
    return asked

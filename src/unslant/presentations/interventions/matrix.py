"""The atomic interventions, which of them may be combined, and the random draw of a legal combination.

The paper's table of constraints (P4, table 7) is known here by its prose: answer removal needs the distractor hint,
and the binary transformation is used alone. For maths, where the paper only says that the two jitters "are combined
with" the others, answer jitter (a multiple-choice question) combines with all but the binary transformation, and
question jitter (a true/false item) with option shuffling and label replacement alone: "none of these" and a second
question have no meaning next to True and False.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Mapping
from typing import Literal

from unslant.errors import InputError, one_of

Kind = Literal["choice", "maths"]
Combination = tuple[str, ...]
"""Interventions in the order of :data:`NAMES`."""

NAMES: Mapping[str, str] = {
    "QJ": "question jitter",
    "AJ": "answer jitter",
    "BT": "binary transformation",
    "DQ": "distractor question",
    "DH": "distractor hint",
    "AR": "answer removal",
    "OS": "option shuffling",
    "LR": "label replacement",
}
"""Code -> name, in the order of application."""
KINDS: Mapping[Kind, tuple[str, ...]] = {
    "choice": ("BT", "DQ", "DH", "AR", "OS", "LR"),
    "maths": ("QJ", "AJ", "DQ", "DH", "AR", "OS", "LR"),
}
"""Interventions there are for each kind of question, in the order of application."""
FIRST: Mapping[Kind, tuple[str, ...]] = {"choice": (), "maths": ("QJ", "AJ")}
"""Of these exactly one is always applied: an open question has no options to intervene on."""
NEEDS: Mapping[str, str] = {"AR": "DH"}
"""An intervention and the one it cannot do without."""
_APART: Mapping[str, tuple[str, ...]] = {
    "QJ": ("AJ", "BT", "DQ", "DH", "AR"),
    "AJ": ("BT",),
    "BT": ("DQ", "DH", "AR", "OS", "LR"),
}
"""An intervention and those after it that it cannot be combined with."""
MATRIX: Mapping[tuple[str, str], bool] = {
    (row, column): column not in _APART.get(row, ()) and row not in _APART.get(column, ())
    for row, column in itertools.permutations(NAMES, 2)
}
"""Whether two different interventions may be applied to one question."""
PROBABILITIES: Mapping[str, float] = {**dict.fromkeys(NAMES, 0.5), "BT": 0.1}
"""P4, C.1: 0.5 each, 0.1 for the binary transformation."""


def in_order(interventions: Iterable[str]) -> Combination:
    """The combination in the order of application.

    Raises:
        InputError: on an unknown code, or one given twice.
    """
    codes = list(interventions)
    for code in codes:
        if code not in NAMES:
            raise InputError(f"unknown intervention {code!r}: {one_of(code, NAMES)} ({', '.join(NAMES.values())})")
        if codes.count(code) > 1:
            raise InputError(f"intervention {code!r} is given twice")
    return tuple(code for code in NAMES if code in codes)


def conflict(interventions: Iterable[str], kind: Kind = "choice") -> str:
    """Why the combination is not legal, in words; empty if it is."""
    combination = in_order(interventions)
    for code in combination:
        if code not in KINDS[kind]:
            return f"{NAMES[code]} is not for {'open maths' if kind == 'maths' else 'multiple-choice'} questions"
        if NEEDS.get(code, code) not in combination:
            return f"{NAMES[code]} needs {NAMES[NEEDS[code]]}"
    for pair in itertools.combinations(combination, 2):
        if not MATRIX[pair]:
            return f"{NAMES[pair[0]]} and {NAMES[pair[1]]} cannot be combined"
    if FIRST[kind] and not set(FIRST[kind]) & set(combination):
        return f"an open question needs {' or '.join(NAMES[code] for code in FIRST[kind])}"
    return ""


def combinations(kind: Kind = "choice") -> list[Combination]:
    """Every legal combination, the smaller ones first."""
    codes = KINDS[kind]
    every = (c for size in range(len(codes) + 1) for c in itertools.combinations(codes, size))
    return [combination for combination in every if not conflict(combination, kind)]


def check_probabilities(probabilities: Mapping[str, float]) -> dict[str, float]:
    """``probabilities`` over the defaults.

    Raises:
        InputError: on an unknown code or a number outside [0, 1].
    """
    in_order(probabilities)
    for code, p in probabilities.items():
        if not 0.0 <= p <= 1.0:
            raise InputError(f"probability of {code}: {p} is not between 0 and 1")
    return {**PROBABILITIES, **probabilities}


def draw(
    possible: Iterable[str], probabilities: Mapping[str, float], rng: random.Random, kind: Kind = "choice"
) -> Combination:
    """A legal combination at random.

    An intervention that must be used alone is tried first, with its own probability; else every other one is taken
    with its probability, independently, if what it needs has been taken (so answer removal comes to 0.25 by
    default). Of the jitters exactly one is taken, with chances in proportion to their probabilities.

    Args:
        possible: what the question can take; the others are never drawn.
        probabilities: one for each code of the kind.
    """
    allowed = set(possible)
    # one number for each code, also for those that are not possible, so that one obstacle changes no other draw
    roll = {code: rng.random() for code in KINDS[kind]}
    combination: list[str] = []
    first = [code for code in FIRST[kind] if code in allowed]
    if first:
        weights = [probabilities[code] for code in first]
        both = sum(weights)
        heads = roll[FIRST[kind][0]] * (both or 2.0) < (weights[0] if both else 1.0)
        combination.append(first[0] if heads or len(first) == 1 else first[1])
    for code in KINDS[kind]:
        if code in FIRST[kind] or code not in allowed or roll[code] >= probabilities[code]:
            continue
        if NEEDS.get(code, code) in (code, *combination) and all(MATRIX[code, other] for other in combination):
            combination.append(code)
    return in_order(combination)

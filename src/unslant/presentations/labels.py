"""Label alphabets: the symbols shown before the options."""

from __future__ import annotations

import string
from collections.abc import Sequence

from unslant.errors import InputError, shortened
from unslant.questions.pinned import ROMAN
from unslant.questions.question import MAX_OPTIONS

_NUMBERS = tuple(map(str, range(1, MAX_OPTIONS + 1)))
ALPHABETS: dict[str, tuple[str, ...]] = {
    "A": (*string.ascii_uppercase, *_NUMBERS)[:MAX_OPTIONS],
    "a": (*string.ascii_lowercase, *_NUMBERS)[:MAX_OPTIONS],
    "1": _NUMBERS,
    "I": tuple(map(str.upper, ROMAN)),
    "i": tuple(ROMAN),
    "0": ("0", *_NUMBERS)[:MAX_OPTIONS],
}
"""Named alphabets, keyed by their first label: as many labels as a question may have options, of Roman numbers 26.
Letters go on with numbers after the last one, as inspect's do."""
LETTERS = 26
"""Labels of the alphabets A and a that are letters."""


def parse_labels(spec: str) -> tuple[str, ...]:
    """The alphabet that ``--labels`` names: one of :data:`ALPHABETS`, or your own labels separated by commas.

    Raises:
        InputError: on an unknown name, an empty label, or a label given twice.
    """
    if spec in ALPHABETS:
        return ALPHABETS[spec]
    if "," not in spec:
        raise InputError(
            f"unknown label set {spec!r}: use one of {', '.join(ALPHABETS)}, or your own labels separated by commas, "
            "for example --labels=W,X,Y,Z"
        )
    labels = tuple(part.strip() for part in spec.split(","))
    if "" in labels:
        raise InputError(f"label set {spec!r}: label {labels.index('') + 1} is empty")
    twice = [label for label in labels if labels.count(label) > 1]
    if twice:
        raise InputError(f"label set {spec!r}: label {twice[0]!r} is given twice")
    return labels


def labels_for(alphabet: tuple[str, ...], n: int) -> tuple[str, ...]:
    """The first ``n`` labels of an alphabet.

    Raises:
        InputError: if the alphabet has fewer than ``n`` labels.
    """
    if n > len(alphabet):
        raise InputError(
            f"label set {shortened(','.join(alphabet), 60)} has {len(alphabet)} labels, but a question has {n} "
            "options: give more labels or use --labels=A"
        )
    return alphabet[:n]


def alphabetical(labels: Sequence[str]) -> tuple[str, ...]:
    """``labels`` in the order of the named alphabet that contains them all; unchanged if none does.

    An instruction that lists them reads the same for any order in which they precede the options.
    """
    for alphabet in ALPHABETS.values():
        if set(labels) <= set(alphabet):
            return tuple(sorted(labels, key=alphabet.index))
    return tuple(labels)

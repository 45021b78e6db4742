"""Label alphabets: the symbols shown before the options."""

from __future__ import annotations

import string
from collections.abc import Sequence

from unslant.errors import InputError
from unslant.questions.pinned import ROMAN

ALPHABETS: dict[str, tuple[str, ...]] = {
    "A": tuple(string.ascii_uppercase),
    "a": tuple(string.ascii_lowercase),
    "1": tuple(str(i) for i in range(1, 27)),
    "I": tuple(map(str.upper, ROMAN)),
    "i": tuple(ROMAN),
    "0": tuple(str(i) for i in range(26)),
}
"""Named alphabets of 26 labels each, keyed by their first label."""


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
            f"label set {','.join(alphabet)} has {len(alphabet)} labels, but a question has {n} options: "
            "give more labels or use --labels=A"
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

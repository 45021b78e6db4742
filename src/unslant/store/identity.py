"""Identities of models: equal, or equal but for the last bits of their fingerprints.

A fingerprint is a few scores of fixed prompts. Their last bits may differ in another process (the number of threads,
the processor, a GPU's order of summing), so a fingerprint carries how far they may be off. Rounded scores instead would
differ wherever two fall on either side of a boundary.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

import numpy as np

from unslant.arrays import Floats

FINGERPRINT = "fingerprint"
"""The entry of an identity that is compared number by number."""


def fingerprint_text(values: Floats, noise: float) -> str:
    """Numbers, and how far apart those of one model may lie."""
    return f"{noise:g}: " + " ".join(f"{value:.9g}" for value in values)


def known_as(identity: Mapping[str, str], known: Iterable[str]) -> Mapping[str, str]:
    """The first of the ``known`` identities (as JSON) that is this one; the identity itself if none is."""
    for other in map(json.loads, known):
        if same_identity(other, identity):
            return dict(other)
    return identity


def same_identity(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Whether two identities are of one model."""
    return _rest(one) == _rest(other) and _close(one.get(FINGERPRINT), other.get(FINGERPRINT))


def _rest(identity: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in identity.items() if key != FINGERPRINT}


def _close(one: str | None, other: str | None) -> bool:
    if one is None or other is None:
        return one == other
    (noise, first), (_, second) = _numbers(one), _numbers(other)
    return len(first) == len(second) and bool((np.abs(first - second) <= noise).all())


def _numbers(text: str) -> tuple[float, Floats]:
    noise, _, values = text.partition(": ")
    return float(noise), np.array(values.split(), dtype=np.float64)

"""Random choices that depend only on the question and the run's seed, never on a global generator."""

from __future__ import annotations

import hashlib
import random


def question_rng(question_id: str, seed: int, purpose: str) -> random.Random:
    """A generator for one kind of choice about one question.

    Leaving a question out, or making another choice first, changes nothing for the others.
    """
    digest = hashlib.sha256(f"{seed}\x1f{purpose}\x1f{question_id}".encode()).digest()
    return random.Random(int.from_bytes(digest[:8], "big"))

"""Every question file at hand, loaded once."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from unslant.questions import MathQuestion, Question, load_math, load_questions


@cache
def sets_of(folder: Path) -> list[tuple[Question | MathQuestion, ...]]:
    loaded: list[tuple[Question | MathQuestion, ...]] = []
    for path in sorted(folder.glob("*.jsonl*")):
        load = load_math if path.name.startswith("gsm8k") else load_questions
        loaded.append(load(path, skip_bad=True).questions)
    return loaded

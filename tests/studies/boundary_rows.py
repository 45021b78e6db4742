"""Rows of an instruction-boundary study."""

from __future__ import annotations

from unslant.asking import GENERATE
from unslant.responses import Response

LABELS = ("A", "B", "C", "D")

VERDICTS = ("True", "False", "Unknown")


def row(i, truth, chosen, setting="vanilla", status="ok", elicitation=GENERATE, repeat=0, verdict=False):
    labels = VERDICTS if verdict else LABELS
    return Response(
        question_id=f"{'j' if verdict else 'c'}{i}",
        kind="setting",
        item=setting,
        elicitation=elicitation,
        labels=labels,
        contents=tuple(range(len(labels))),
        answers=frozenset(truth),
        n_options=len(labels),
        chosen=frozenset(chosen) if status == "ok" else None,
        status=status,
        raw="",
        repeat=repeat,
    )

"""Fixed wording of the training texts beyond the facts themselves.

Presentations that use these words are in the language of the reference models; others reach them as bytes.
"""

from __future__ import annotations

from unslant.presentations.interventions import wording as interventions

COPY_STEM = "Which option is {value}?"
"""A question whose answer stands in it: it teaches to find an option's label."""
CONTROL_STEM = "Select an answer choice"
CONTROL_OPTION = "choice"
"""A question without content: only habit is left to answer by (P5's control prompt)."""
CANARIES = ("best", "wrong")
"""What follows "answer choice X is the" when X would be answered, and when not."""

_INTERVENED = (
    interventions.MULTIPLE_CHOICE,
    interventions.TWO_QUESTIONS,
    interventions.TRUE_FALSE,
    interventions.NONE_HINT.format(label=interventions.NONE_LABEL),
    interventions.PROPOSED.format(stem="", answer="red").strip(),
)
"""What questions under interventions say besides themselves; taken from where the study takes it."""

WORDS: tuple[str, ...] = (
    COPY_STEM.format(value="red"),
    " " + COPY_STEM.format(value="red"),
    *_INTERVENED,
    *(" " + text for text in _INTERVENED),
    " " + CONTROL_STEM,
    CONTROL_STEM,
    " " + CONTROL_OPTION,
    " The answer is",
    " True False true false",
    "Question:",
    "Answer:",
    " Of the answer choices above, the best answer choice is (",
    "Of the answer choices above,",
    " answer choice is the best wrong right",
    # For answers in words and several labels.
    " and or none all not correct options no unknown Unknown yes Yes No",
    "None True False Unknown Yes No",
)

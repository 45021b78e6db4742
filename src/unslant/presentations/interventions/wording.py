"""What each intervention says to the model: instructions, the offer of "none", and true/false items.

The instruction appears once, before worked examples and question; the hint is in every item, before its options.
Everything a model reads because of an intervention is worded here and nowhere else, so that the reference models can
be trained on the very same words.
"""

from __future__ import annotations

MULTIPLE_CHOICE = "Here is a multiple choice question. Answer with the label of the right option."
"""Unchanged questions, option shuffling, label replacement and answer removal."""
SEVERAL_RIGHT = "Here is a multiple choice question. Answer with the labels of all right options."
"""The same where several options are right."""
TWO_QUESTIONS = (
    "Here are two questions and one list of options. Only one of the questions fits the options. "
    "Answer with the label of the right option."
)
"""Distractor question."""
TWO_QUESTIONS_SEVERAL_RIGHT = (
    "Here are two questions and one list of options. Only one of the questions fits the options. "
    "Answer with the labels of all right options."
)
JUDGEMENTS = ("True", "False")
"""The two options of a true/false item, in this order unless they are shuffled."""
JUDGEMENT_LABELS = ("T", "F")
"""Their labels, unless they are replaced."""
TRUE_FALSE = (
    f"Here is a question with a proposed answer. Answer {JUDGEMENT_LABELS[0]} if the proposed answer is right, "
    f"{JUDGEMENT_LABELS[1]} if it is not."
)
"""Binary transformation and question jitter."""
TRUE_FALSE_RELABELLED = (
    "Here is a question with a proposed answer. Is the proposed answer right? "
    "Answer with the label of True or of False."
)
"""Question jitter with label replacement: which label is True's may differ between worked examples."""
OPEN = 'Here is a question. End your reply with "Answer:" and the number.'
"""An unchanged open maths question, answered in words only."""

NONE_LABEL = "N"
NONE_LABEL_WHEN_TAKEN = "None"
"""Offered where an option already carries the label N (14 options or more)."""
NONE_HINT = "If no option is right, answer {label}."
"""Distractor hint; ``label`` is one of the two labels above."""

PROPOSED = "{stem}\nProposed answer: {answer}"
"""Stem of a true/false item: one option of the question, or a number, is put forward."""

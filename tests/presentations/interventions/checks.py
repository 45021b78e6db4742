"""What must hold of every composed presentation, whatever the question: written apart from the code that composes."""

from __future__ import annotations

import re
import unicodedata

from unslant.presentations import FOREIGN, NONE, Presentation
from unslant.presentations.interventions import Composed, conflict
from unslant.questions import MathQuestion, Question


def folded(text: str) -> str:
    """Case, punctuation, white space and thousands separators set aside."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    plain = re.sub(r"(?<=\d),(?=\d{3})", "", plain)
    plain = re.sub(r"(\d+)\.0+\b", r"\1", plain)
    return re.sub(r"[\s.,;:!?\"'$“”‘’]+", "", plain)


def check_composed(question: Question | MathQuestion, composed: Composed) -> None:
    kind = "maths" if isinstance(question, MathQuestion) else "choice"
    assert conflict(composed.interventions, kind) == ""
    if "BT" in composed.interventions:
        check_binary(question, composed)
    else:
        assert len(composed.items) == 1
    for asked, presentation in composed.items:
        assert presentation.question_id == question.id == asked.id
        assert presentation.interventions == composed.interventions
        check_presentation(asked, presentation)
        if isinstance(question, MathQuestion) and "AJ" in composed.interventions:
            assert [asked.options[i] for i in asked.answers] == [question.answer]
            assert len({folded(option) for option in asked.options}) == len(asked.options) == 4


def check_binary(question: Question, composed: Composed) -> None:
    assert len(composed.items) == len(question.options)
    right = {question.options[i].strip() for i in question.answers}
    for option, (item, presentation) in zip(question.options, composed.items, strict=True):
        assert option in presentation.stem
        assert question.stem in presentation.stem
        (answer,) = item.answers
        assert (item.options[answer] == "True") == (option.strip() in right)
        assert presentation.right_labels == (("T",) if option.strip() in right else ("F",))


def check_presentation(question: Question, presentation: Presentation) -> None:
    assert len(set(presentation.labels)) == len(presentation.labels)
    assert len({label.casefold() for label in presentation.labels}) == len(presentation.labels)
    own = [line for line in presentation.shown if line.content != FOREIGN]
    foreign = [line for line in presentation.shown if line.content == FOREIGN]
    assert all(line.text == question.options[line.content] for line in own)
    assert len({line.content for line in own}) == len(own)
    assert len(presentation.shown) == len(question.options)
    assert all(presentation.shown[place].content in (place, FOREIGN) for place in question.pinned)

    right_texts = {question.options[i].strip() for i in question.answers}
    shown_right = [line for line in own if line.text.strip() in right_texts]
    for label in presentation.right_labels:
        content = presentation.content_of(label)
        if content == NONE:
            assert not shown_right
            assert presentation.none_label == label
            assert label in presentation.hint
        else:
            assert question.options[content].strip() in right_texts
    assert {line.label for line in shown_right} == set(presentation.right_labels) - {presentation.none_label}
    assert presentation.right_labels

    for line in foreign:
        assert "AR" in presentation.interventions
        assert line.text.strip()
        assert all(folded(line.text) != folded(option) for option in question.options)
    if foreign:
        gone = {question.options[i] for i in range(len(question.options))} - {line.text for line in own}
        assert not {text.strip() for text in gone} & {line.text.strip() for line in presentation.shown}
        assert len({folded(line.text) for line in foreign}) == len(foreign)
    assert bool(presentation.distractor) == ("DQ" in presentation.interventions)
    assert bool(presentation.hint) == bool(presentation.none_label) == ("DH" in presentation.interventions)
    if presentation.distractor:
        assert question.stem in (presentation.stem, presentation.distractor)
    elif "BT" not in presentation.interventions:
        assert presentation.stem == question.stem
    assert presentation.context == question.context
    assert presentation.instruction

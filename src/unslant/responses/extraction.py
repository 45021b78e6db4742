"""Read the answer out of a reply in words: which labels it chooses, that none is right, or a verdict."""

from __future__ import annotations

from unslant.presentations.presentation import NONE, Presentation
from unslant.questions.question import JudgingQuestion
from unslant.responses.extracted import Extracted
from unslant.responses.read_choice import extract_labels
from unslant.responses.read_verdict import extract_verdict

__all__ = ["VERDICTS", "Extracted", "chosen_contents", "extract", "extract_labels", "extract_verdict"]

VERDICTS = JudgingQuestion.VERDICTS


def extract(reply: str, presentation: Presentation) -> Extracted:
    """The answer to ``presentation``; a verdict where its labels are True, False and Unknown."""
    if presentation.labels == VERDICTS:
        return extract_verdict(reply)
    return extract_labels(reply, presentation.labels, [option.text for option in presentation.shown])


def chosen_contents(extracted: Extracted, presentation: Presentation) -> frozenset[int] | None:
    """Content codes answered: ``{NONE}`` for "no option is right"; None if there is no answer."""
    if extracted.status != "ok":
        return None
    return frozenset(presentation.content_of(label) for label in extracted.labels) or frozenset({NONE})

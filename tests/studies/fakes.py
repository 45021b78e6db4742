"""Models that answer by rule, so that what a study must find is known: they read the prompt as a model would."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from unslant.models.base import ModelInfo, Scored, ScoringModel
from unslant.prompts import Prompt
from unslant.questions import Question

Answer = Callable[["Seen"], str]
"""From what is seen to the label that is answered."""


@dataclass(frozen=True)
class Seen:
    """The last question of a prompt: its stems, options by label, and whether "none" is offered."""

    stems: tuple[str, ...]
    options: dict[str, str]
    none: str
    proposed: str = ""


def read(prompt: Prompt) -> Seen:
    """What stands in the last item of a prompt in the ``plain`` layout."""
    last = prompt.text.split("\n\n")[-1]
    options = dict(re.findall(r"^(\w+)\. (.*)$", last, re.MULTILINE))
    none = re.search(r"If no option is right, answer (\w+)\.", last)
    proposed = re.search(r"^Proposed answer: (.*)$", last, re.MULTILINE)
    stems = tuple(re.findall(r"^Question: (.*)$", last, re.MULTILINE))
    return Seen(stems, options, none[1] if none else "", proposed[1] if proposed else "")


class RuleModel(ScoringModel):
    """A scoring model that puts nearly all probability on the label that ``answer`` gives."""

    def __init__(self, answer: Answer, name: str = "rule") -> None:
        super().__init__(ModelInfo(name=name))
        self.answer = answer

    def score(self, prompts: Sequence[Prompt]) -> Iterator[Scored]:
        for index, prompt in enumerate(prompts):
            label = self.answer(read(prompt))
            labels = [text.strip() for text in prompt.continuations]
            logprobs = np.array([-0.01 if own == label else -6.0 for own in labels])
            self.cost.prompts += 1
            yield Scored(index, logprobs)


def knows(questions: Sequence[Question]) -> Answer:
    """Knows the right texts of every question, and follows every instruction."""
    right = {question.stem: {question.options[i] for i in question.answers} for question in questions}

    def answer(seen: Seen) -> str:
        own = {text for stem in seen.stems for text in right.get(stem, ())}
        if seen.proposed:
            return next(label for label, text in seen.options.items() if text == str(seen.proposed in own))
        return next((label for label, text in seen.options.items() if text in own), seen.none or "A")

    return answer


def remembers(questions: Sequence[Question]) -> Answer:
    """Has seen the published file: remembers the label of the right option, and that alone."""
    label = {question.stem: "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[min(question.answers)] for question in questions}

    def answer(seen: Seen) -> str:
        known = next((label[stem] for stem in seen.stems if stem in label), "A")
        return known if known in seen.options else next(iter(seen.options))

    return answer

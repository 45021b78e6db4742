"""Models that follow a rule, for tests that need to know what was meant."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from unslant.models.base import ModelInfo, Scored, ScoringModel
from unslant.models.chat import ChatModel
from unslant.models.options import GenerateOptions
from unslant.prompts import Prompt

Rule = Callable[[str, list[str], list[str]], Sequence[float]]
"""From the stem, the labels and the option texts as shown, to one weight per label."""


class FakeChat(ChatModel):
    """A chat model behind a server, by its name alone; ``replies_to`` is the subclass's."""

    def __init__(self, name: str, identity: Mapping[str, str] | None = None) -> None:
        super().__init__(ModelInfo(name=name, identity=identity or {"model": name}, remote=True))

    def at(self, generate: GenerateOptions) -> FakeChat:
        return self


class RuleModel(ScoringModel):
    """Reads the question off a prompt of the ``plain`` template and answers the label scores by a rule."""

    def __init__(self, rule: Rule, name: str = "rule") -> None:
        super().__init__(ModelInfo(name=name, identity={"model": name}))
        self.rule = rule
        self.seen: list[Prompt] = []

    def score(self, prompts: Sequence[Prompt]) -> Iterator[Scored]:
        for index, prompt in enumerate(prompts):
            self.seen.append(prompt)
            self.cost.prompts += 1
            block = prompt.text.split("\n\n")[-1]
            stem = re.findall(r"Question: (.*)", block)[-1]
            lines = re.findall(r"^(\S+)\. (.*)$", block, flags=re.M)
            weights = np.asarray(self.rule(stem, [label for label, _ in lines], [text for _, text in lines]), float)
            yield Scored(index, np.log(weights / weights.sum()))

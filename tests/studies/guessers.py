"""Rule-based models that read the question off the prompt of the base-rate layout, for tests with a known truth."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from unslant.models.base import ModelInfo, Scored, ScoringModel
from unslant.prompts import Prompt

Rule = Callable[[str, Mapping[str, str]], Mapping[str, float]]
"""From a stem and label -> option text (from top to bottom) to label -> weight (natural log)."""

_SHOWN = re.compile(r"^(?P<stem>.*?) (?P<options>\(\w+\) .*)\. Of the answer choices above, (?P<cue>.*)$", re.DOTALL)
_OPTION = re.compile(r"\((\w+)\) (.*?)(?= \(\w+\) |$)")
_COUNTERFACTUAL = re.compile(r"answer choice (\w+) is the$")


class RuleModel(ScoringModel):
    """Answers by ``rule`` under the cloze and, with the same weights, under the counterfactual."""

    def __init__(self, rule: Rule, name: str = "rule", counterfactual: Rule | None = None) -> None:
        super().__init__(ModelInfo(name=name, identity={"rule": name}))
        self.rule, self.counterfactual = rule, counterfactual or rule

    def score(self, prompts: Sequence[Prompt]) -> Iterator[Scored]:
        for index, prompt in enumerate(prompts):
            match = _SHOWN.match(prompt.text)
            assert match, prompt.text
            options = dict(_OPTION.findall(match["options"]))
            named = _COUNTERFACTUAL.search(match["cue"])
            weights = dict((self.counterfactual if named else self.rule)(match["stem"], options))
            top = max(weights.values())
            total = top + np.log(sum(np.exp(w - top) for w in weights.values()))
            labels = [named[1]] if named else [text.strip() for text in prompt.continuations]
            self.cost.prompts += 1
            yield Scored(index, np.array([weights[label] - total for label in labels]))


def always(label: str) -> Rule:
    return lambda stem, options: {shown: 5.0 * (shown == label) for shown in options}


def knows(known: Callable[[str], bool], right: Mapping[str, str], habit: Rule) -> Rule:
    """The right option where ``known(stem)``, else ``habit``."""

    def rule(stem: str, options: Mapping[str, str]) -> Mapping[str, float]:
        if stem in right and known(stem):
            return {label: 8.0 * (text == right[stem]) for label, text in options.items()}
        return habit(stem, options)

    return rule


def taste(stem: str, options: Mapping[str, str]) -> Mapping[str, float]:
    """A guess by the option's text alone, so that no label is preferred."""
    return {label: _noise(f"{stem}{text}") for label, text in options.items()}


def _noise(text: str) -> float:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") / 2**32

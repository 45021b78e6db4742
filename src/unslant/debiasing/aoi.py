"""AOI, auxiliary option injection: add an "I don't know" (Choi et al. 2024)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from unslant.debiasing.asker import Asker, by_content
from unslant.debiasing.base import Debiaser, Method, Outcome, each_of
from unslant.errors import InputError, QuestionError
from unslant.presentations import AUXILIARY, Presentation, ShownOption, labels_for, present, references
from unslant.questions import Question


@dataclass(frozen=True)
class AuxiliaryOption(Method):
    """Show one more option that is never right. One presentation per question; no labels, no fit.

    Options that name others by letter are rewritten to the labels of that presentation. A question that already has
    such an option is shown unchanged. A question has no answer if no label is left for the option, if it has fewer
    options than ``position``, or if the added option would be above one that refers to those above it.

    Args:
        text: of the added option.
        position: ``first``, ``last``, or the number of options above it.
        renormalise: spread its probability over the question's own options, evenly if it has all of it; otherwise it
            keeps it (``Outcome.abstain``).
    """

    text: str = "I don't know"
    position: str = "last"
    renormalise: bool = True
    name = "aoi"

    def __post_init__(self) -> None:
        if self.position not in ("first", "last") and not self.position.isdecimal():
            raise InputError(f"unknown position {self.position!r}: use first, last or a number")

    def fit(self, asker: Asker, questions: Sequence[Question] = ()) -> Debiaser:
        return _WithOption(asker, self)

    def present(self, question: Question, alphabet: tuple[str, ...]) -> Presentation:
        """The question with the added option; QuestionError if the question cannot take it."""
        n = len(question.options)
        if self.has(question):
            return present(question, alphabet=alphabet, kind="aoi")
        at = int({"first": 0, "last": n}.get(self.position, self.position))
        if reason := self._trouble(question, at, len(alphabet)):
            raise QuestionError({question.id: reason})
        labels = list(labels_for(alphabet, n + 1))
        added = ShownOption(labels.pop(at), self.text, AUXILIARY)
        plain = present(question, kind="aoi", labels=labels)
        return replace(plain, shown=(*plain.shown[:at], added, *plain.shown[at:]))

    def has(self, question: Question) -> bool:
        """Whether the question already has such an option."""
        return _normal(self.text) in map(_normal, question.options)

    def _trouble(self, question: Question, at: int, labels: int) -> str:
        n = len(question.options)
        if at > n:
            return f"position={at}, but it has fewer options than that"
        if labels <= n:
            return "no label is left for the added option"
        names = references(question)
        by_letter = set(names).union(*(named.values() for named in names.values()))
        if any(i >= at for i in set(question.pinned) - by_letter):
            return "an option that refers to those above it would include the added one"
        return ""


@dataclass(eq=False)
class _WithOption(Debiaser):
    method: AuxiliaryOption

    def outcomes(self, questions: Sequence[Question]) -> list[Outcome]:
        presentations = each_of(questions, lambda question: self.method.present(question, self.asker.alphabet))
        outcomes = []
        for question, presentation, probs in zip(questions, presentations, self.asker.ask(presentations), strict=True):
            by_option = by_content(presentation, probs, len(question.options))
            total, abstain = float(by_option.sum()), 0.0
            if not self.method.renormalise:
                abstain = max(0.0, 1 - total)
            elif total > 0:
                by_option = by_option / total
            else:
                by_option = np.full(len(by_option), 1 / len(by_option))
            outcomes.append(Outcome.by_place(by_option, 1, abstain))
        return outcomes

    def notes(self, questions: Sequence[Question]) -> tuple[str, ...]:
        n, text = sum(map(self.method.has, questions)), self.method.text
        note = f"{n:,} of {len(questions):,} questions had {text!r} among their options; none was added"
        return (*super().notes(questions), *([note] if n else []))


def _normal(text: str) -> str:
    return " ".join(text.replace("\u2019", "'").casefold().split()).rstrip(".!")

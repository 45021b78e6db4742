"""AOI, auxiliary option injection: add an "I don't know" (Choi et al. 2024)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from unslant.debiasing.asker import Asker, by_content
from unslant.debiasing.base import Debiaser, Method, Outcome
from unslant.errors import InputError
from unslant.presentations import AUXILIARY, Presentation, ShownOption, labels_for, present
from unslant.questions import Question


@dataclass(frozen=True)
class AuxiliaryOption(Method):
    """Show one more option that is never right. One presentation per question; no labels, no fit.

    Args:
        text: of the added option.
        position: ``first``, ``last``, or the number of options above it.
        renormalise: spread its probability over the question's own options; otherwise it keeps it
            (``Outcome.abstain``).
    """

    text: str = "I don't know"
    position: str = "last"
    renormalise: bool = True
    name = "aoi"

    def fit(self, asker: Asker, questions: Sequence[Question] = ()) -> Debiaser:
        if self.position not in ("first", "last") and not self.position.isdecimal():
            raise InputError(f"AOI: unknown position {self.position!r}: use first, last or a number")
        return _WithOption(asker, self)

    def present(self, question: Question, alphabet: tuple[str, ...]) -> Presentation:
        """The question with the added option.

        Raises:
            InputError: if the alphabet has no label left for it.
        """
        plain = present(question, alphabet=alphabet, kind="aoi")
        n = len(question.options)
        at = {"first": 0, "last": n}.get(self.position)
        shown = list(plain.shown)
        shown.insert(int(self.position) if at is None else at, ShownOption("", self.text, AUXILIARY))
        labelled = zip(shown, labels_for(alphabet, n + 1), strict=True)
        return replace(plain, shown=tuple(replace(option, label=label) for option, label in labelled))


class _WithOption(Debiaser):
    def __init__(self, asker: Asker, method: AuxiliaryOption) -> None:
        super().__init__(asker)
        self.method = method

    def answer(self, questions: Sequence[Question]) -> list[Outcome]:
        shown = [self.method.present(question, self.asker.alphabet) for question in questions]
        outcomes = []
        for question, presentation, probs in zip(questions, shown, self.asker.ask(shown), strict=True):
            own = by_content(presentation, probs, len(question.options))
            if self.method.renormalise:
                outcomes.append(Outcome.by_place(own / own.sum(), 1))
            else:
                outcomes.append(Outcome.by_place(own, 1, abstain=float(1 - own.sum())))
        return outcomes

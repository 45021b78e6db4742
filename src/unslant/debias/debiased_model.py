"""Debiasing inside a program: a model that answers questions with the correction applied."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from unslant.asking import ModelAsker
from unslant.debias.base import Method, Outcome, with_texts
from unslant.debias.registry import method_named
from unslant.errors import InputError
from unslant.models import ScoringModel
from unslant.models.open import open_model, opened
from unslant.presentations import parse_labels
from unslant.prompts import Cloze, Writer, load_template
from unslant.questions import Question


class Debiased:
    """A model and a debiasing method.

    >>> with unslant.Debiased("prefers-a", "vote") as model:
    ...     answer = model.answer(question)
    >>> answer.text, answer.probs

    Methods that change the model (``bnp``, ``lora-1``) change it until :meth:`close` or the end of the block.

    Args:
        model: a name for :func:`unslant.open_model`, or a loaded model.
        method: a method, or its name with settings, such as ``vote:orders=shared:24``.
        fit: questions to fit on, for methods that need them.
        labels, template, chat: how questions are asked; labels as a list, or as for ``--labels``.
        options: how the model is opened (``base_url="http://127.0.0.1:8080/v1"``, ``device="cpu"``, ...).

    Raises:
        InputError: if the method needs questions to fit on and has none, or a name is unknown.
    """

    def __init__(
        self,
        model: str | ScoringModel,
        method: str | Method = "vote",
        fit: Iterable[Question] = (),
        *,
        labels: str | Sequence[str] = "A",
        template: str = "plain",
        chat: bool = False,
        **options: Any,
    ) -> None:
        self.method = method_named(method) if isinstance(method, str) else method
        fit = list(fit)
        if self.method.needs_fit and not fit:
            raise InputError(f"{self.method.name} needs questions to fit on: Debiased(model, method, fit=questions)")
        needs = ("score", "attend") if self.method.needs_model else ("score",)
        self.model = open_model(model, needs=needs, **options) if isinstance(model, str) or options else opened(model)
        elicitation = Cloze(Writer(load_template(template), chat))
        asker = ModelAsker(
            self.model,
            elicitation,
            parse_labels(labels if isinstance(labels, str) else ",".join(labels)),
            remember=False,
        )
        self._debiaser = self.method.fit(asker, fit)

    def answer(self, question: Question) -> Outcome:
        """The debiased answer to one question."""
        return self.answers([question])[0]

    def answers(self, questions: Sequence[Question]) -> list[Outcome]:
        """Answers to many questions, at a lower cost than one by one."""
        return [*with_texts(questions, self._debiaser.answer(questions))]

    def close(self) -> None:
        """Restore the model."""
        self._debiaser.close()

    def __enter__(self) -> Debiased:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

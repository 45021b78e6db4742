"""Debiasing inside a program: a model that answers questions with the correction applied."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unslant.asking import ModelAsker
from unslant.debias.base import Method, Outcome
from unslant.debias.registry import method_named
from unslant.errors import InputError
from unslant.models import ScoringModel, load_model
from unslant.presentations import parse_labels
from unslant.prompts import Cloze, Writer, load_template
from unslant.questions import Question, load_questions


class Debiased:
    """A model and a debiasing method.

    >>> with unslant.Debiased("prefers-a", "vote") as model:
    ...     answer = model.answer(question)
    >>> question.options[answer.choice], answer.probs

    Methods that change the model (``bnp``, ``lora-1``) change it until :meth:`close` or the end of the block.

    Args:
        model: a loaded model, or a name for :func:`unslant.load_model`.
        method: a method, or its name with settings, such as ``vote:orders=shared:24``.
        fit: questions to fit on, for methods that need them: whatever :func:`unslant.load_questions` takes.
        labels, template, chat: how questions are asked.

    Raises:
        InputError: if the method needs questions to fit on and has none, or a name is unknown.
    """

    def __init__(
        self,
        model: str | ScoringModel,
        method: str | Method = "vote",
        fit: Any = (),
        *,
        labels: str = "A",
        template: str = "plain",
        chat: bool = False,
    ) -> None:
        self.method = method_named(method) if isinstance(method, str) else method
        fit = [] if isinstance(fit, list | tuple) and not fit else list(load_questions(fit))
        if self.method.needs_fit and not fit:
            raise InputError(f"{self.method.name} needs questions to fit on: Debiased(model, method, fit=questions)")
        self.model = load_model(model) if isinstance(model, str) else model
        elicitation = Cloze(Writer(load_template(template), chat))
        asker = ModelAsker(self.model, elicitation, parse_labels(labels), remember=False)
        self._debiaser = self.method.fit(asker, fit)

    def answer(self, question: Question | Mapping[str, Any]) -> Outcome:
        """The debiased answer to one question, or to a dict with ``question`` and ``options``."""
        return self.answers([question])[0]

    def answers(self, questions: Any) -> list[Outcome]:
        """Answers to many questions, at a lower cost than one by one.

        Args:
            questions: whatever :func:`unslant.load_questions` takes; right options are not needed.
        """
        return self._debiaser.answer(load_questions(questions, need_answers=False).questions)

    def close(self) -> None:
        """Restore the model."""
        self._debiaser.close()

    def __enter__(self) -> Debiased:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

"""Debiasing inside a program: a model that answers questions with the correction applied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from inspect import signature
from pathlib import Path
from typing import Any, Literal, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from unslant.arrays import Floats
from unslant.debiasing import method_named
from unslant.debiasing.asker import asker_of
from unslant.debiasing.base import Method, Outcome
from unslant.debiasing.lora1 import TrainKeywords
from unslant.errors import InputError
from unslant.flags import typed
from unslant.models import ChatModel, Cost, GenerateOptions, ModelOptions, ScoringModel
from unslant.models.open import gives_replies, opened, options_of_each
from unslant.models.options import ModelKeywords
from unslant.presentations import parse_labels
from unslant.prompts import Writer, load_template, usual_template
from unslant.questions import Question, QuestionSet, load_questions


class DebiasedKeywords(ModelKeywords, TrainKeywords, total=False):
    """How a named model is opened, and settings of a method given by name, for editors and type checkers."""

    orders: str | int
    rule: Literal["soft", "hard"]
    risk: float
    calibrated: bool
    share: float
    nodes: int
    questions: int
    text: str
    position: str
    renormalise: bool
    answer: Literal["label", "text"]


class Debiased:
    """A model and a debiasing method.

    Models that only generate replies (``inspect:openai/gpt-4o-mini``) are asked for replies, and so are others with
    ``elicit="generate"``.

    Methods that change the model (``bnp``, ``lora-1``) change it until :meth:`close` or the end of the block.

    Args:
        model: a name for :func:`unslant.open_model`, or a loaded model.
        method: a method, or its name with settings, such as ``vote:orders=shared:24``.
        fit: questions to fit on, for methods that need them: anything that :func:`unslant.load_questions` takes; None
            to call :meth:`fit` later.
        labels, template, chat: how questions are asked; labels as a list, or as for ``--labels``; by default the
            template ``plain``, for replies ``label-alone`` or, with ``reasoning``, ``reasoning``.
        elicit: ``labels`` reads scores of labels, ``generate`` replies; ``auto`` is ``labels`` for a model that gives
            log-probabilities.
        generate: how replies are generated.
        options: how a named model is opened (``base_url="http://127.0.0.1:8080/v1"``, ``device="cpu"``, ...: fields of
            :class:`~unslant.models.ModelOptions`); all others are settings of a method that is given by name. Settings
            of a method from another package are written in its name, or in the method itself.

    Raises:
        InputError: if the method needs questions to fit on and has none, needs log-probabilities where replies are
            read, or a name is unknown; before the model is loaded.

    Examples:
        >>> question = unslant.load_questions("embedded")[0]
        >>> with unslant.Debiased("prefers-a", "vote:orders=4") as model:
        ...     answer = model.answer(question)
        >>> answer.text in question.options, answer.orders, len(answer.probs) == len(question.options)
        (True, 4, True)
    """

    def __init__(
        self,
        model: str | Path | ScoringModel | ChatModel,
        method: str | Method = "vote",
        fit: Any = (),
        *,
        labels: str | Sequence[str] = "A",
        template: str | Path = "",
        chat: bool = False,
        elicit: Literal["auto", "labels", "generate"] = "auto",
        reasoning: bool = False,
        generate: GenerateOptions | None = None,
        **options: Unpack[DebiasedKeywords],
    ) -> None:
        settings: dict[str, Any] = {**options}
        model = str(model) if isinstance(model, Path) else model
        models = ModelOptions(**{f.name: settings.pop(f.name) for f in fields(ModelOptions) if f.name in settings})
        keywords = [one.name for one in signature(Debiased).parameters.values() if one.kind is one.KEYWORD_ONLY]
        keywords += ModelKeywords.__annotations__
        self.method = method if isinstance(method, Method) else method_named(str(method), settings, keywords)
        self.method.check_installed()
        later = fit is None
        fit = [] if later or (isinstance(fit, list | tuple) and not fit) else list(load_questions(fit))
        if self.method.needs_fit and not fit and not later:
            raise InputError(f"{self.method.name} needs questions to fit on: Debiased(model, method, fit=questions)")
        elicit = typed("elicit", elicit, Literal["auto", "labels", "generate"])
        in_words = gives_replies(model, models) if elicit == "auto" else elicit == "generate"
        needs = self.method.asks(in_words)
        writer = Writer(load_template(usual_template(in_words, reasoning, template)), chat)
        alphabet = parse_labels(labels)
        (models,) = options_of_each([model], models, needs)
        self.model = opened(model, needs, models, generate)
        self.asker = asker_of(self.model, writer, alphabet, in_words=in_words, remember=False)
        self._debiaser = None if later and self.method.needs_fit else self.method.fitted(self.asker, fit)

    def __repr__(self) -> str:
        return f"<Debiased {self.model.name}, {self.method.name}>"

    def fit(self, questions: Any) -> Self:
        """Fit the method on these questions instead of earlier ones; methods that need none ignore them.

        Args:
            questions: anything that :func:`unslant.load_questions` takes.
        """
        fit_on = list(load_questions(questions)) if self.method.needs_fit else []
        self.close()
        self._debiaser = self.method.fitted(self.asker, fit_on)
        return self

    def predict(self, questions: Any) -> NDArray[np.int64]:
        """The place of the option chosen for each question, counted from 0; -1 where there is no answer. Shape (N,)."""
        return np.array([one.choice if one.status == "ok" else -1 for one in self.answers(questions)], np.int64)

    def predict_proba(self, questions: Any) -> list[Floats]:
        """The probabilities of each question's options, which sum to 1; NaN where there is no answer."""
        return [
            np.asarray(one.probs, np.float64) if one.status == "ok" else np.full(len(one.probs), np.nan)
            for one in self.answers(questions)
        ]

    @property
    def cost(self) -> Cost:
        """The cost of all answers so far."""
        return self.asker.cost

    def answer(self, question: Question | Mapping[str, Any]) -> Outcome:
        """The debiased answer to one question, or to a dict with ``question`` and ``options``."""
        return self.answers([question])[0]

    def answers(self, questions: Any) -> list[Outcome]:
        """Answers to many questions, at a lower cost than one by one; ``status`` says why an answer is missing.

        Args:
            questions: anything that :func:`unslant.load_questions` takes; right options are not needed.

        Raises:
            InputError: if one of the questions cannot be asked: without it, the others' answers would move up.
        """
        if self._debiaser is None:
            raise InputError(f"{self.method.name} is not fitted, or was closed: call fit(questions) first")
        loaded = load_questions(questions, need_answers=False)
        if loaded.report.skipped and not isinstance(questions, QuestionSet):
            first = next(iter(loaded.report.first_skipped.values()))
            raise InputError(f"{first}; leave it out, so that every question has its answer")
        return self._debiaser.answer(loaded.questions)

    def close(self) -> None:
        """Restore the model; it gives no answers until it is fitted again."""
        if self._debiaser is not None:
            self._debiaser.close()
        self._debiaser = None

    def __enter__(self) -> Debiased:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

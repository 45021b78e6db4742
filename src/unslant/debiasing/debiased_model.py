"""Debiasing inside a program: a model that answers questions with the correction applied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal

from unslant.asking import Progress, elicitation_of, no_progress
from unslant.debiasing.asker import Asker, ModelAsker
from unslant.debiasing.base import Method, Outcome, check_asker, with_texts
from unslant.debiasing.registry import method_named
from unslant.debiasing.reply_asker import ReplyAsker
from unslant.errors import InputError
from unslant.models import ChatModel, Cost, GenerateOptions, ModelOptions, ScoringModel
from unslant.models.open import gives_replies, open_chat, open_model, opened
from unslant.presentations import parse_labels
from unslant.prompts import Writer, load_template, usual_template
from unslant.questions import Question, load_questions


class Debiased:
    """A model and a debiasing method.

    >>> with unslant.Debiased("prefers-a", "vote") as model:
    ...     answer = model.answer(question)
    >>> answer.text, answer.probs

    A model that gives only replies is asked for these, and any other with ``elicit="generate"``:

    >>> with unslant.Debiased("inspect:openai/gpt-4o-mini", "vote", orders=4) as model:
    ...     answer = model.answer(question)
    >>> answer.choice, answer.confidence, model.cost.prompts

    Methods that change the model (``bnp``, ``lora-1``) change it until :meth:`close` or the end of the block.

    Args:
        model: a name for :func:`unslant.open_model`, or a loaded model.
        method: a method, or its name with settings, such as ``vote:orders=shared:24``.
        fit: questions to fit on, for methods that need them: whatever :func:`unslant.load_questions` takes.
        labels, template, chat: how questions are asked; labels as a list, or as for ``--labels``; by default the
            template ``plain``, for replies ``label-alone`` or, with ``reasoning``, ``reasoning``.
        elicit: what is read of a model that is named here: ``labels`` or ``generate``; ``auto`` is labels where it
            gives log-probabilities.
        generate: how replies are generated.
        options: how a named model is opened (``base_url="http://127.0.0.1:8080/v1"``, ``device="cpu"``, ...: fields of
            :class:`~unslant.models.ModelOptions`); all others are settings of a method that is given by name.

    Raises:
        InputError: if the method needs questions to fit on and has none, needs log-probabilities where replies are
            read, or a name is unknown; before the model is loaded.
    """

    def __init__(
        self,
        model: str | ScoringModel | ChatModel,
        method: str | Method = "vote",
        fit: Any = (),
        *,
        labels: str | Sequence[str] = "A",
        template: str = "",
        chat: bool = False,
        elicit: Literal["auto", "labels", "generate"] = "auto",
        reasoning: bool = False,
        generate: GenerateOptions | None = None,
        **options: Any,
    ) -> None:
        names = {f.name for f in fields(ModelOptions)}
        models = ModelOptions(**{name: value for name, value in options.items() if name in names})
        settings = {name: value for name, value in options.items() if name not in names}
        self.method = method_named(method, **settings) if isinstance(method, str) else method
        self.method.check_installed()
        fit = [] if isinstance(fit, list | tuple) and not fit else list(load_questions(fit))
        if self.method.needs_fit and not fit:
            raise InputError(f"{self.method.name} needs questions to fit on: Debiased(model, method, fit=questions)")
        in_words = gives_replies(model, models) if elicit == "auto" else elicit == "generate"
        check_asker(self.method, in_words)
        writer = Writer(load_template(usual_template(in_words, reasoning, template)), chat)
        alphabet = parse_labels(labels if isinstance(labels, str) else ",".join(labels))
        needs = ("generate",) if in_words else ("score", "attend") if self.method.needs_model else ("score",)
        if not isinstance(model, str):
            self.model = opened(model, needs)
        else:
            self.model = open_chat(model, models, generate) if in_words else open_model(model, models, needs)
        self.asker = asker_of(self.model, writer, alphabet, in_words=in_words, remember=False)
        self._debiaser = self.method.fitted(self.asker, fit)

    @property
    def cost(self) -> Cost:
        """What all answers have cost so far."""
        return self.asker.cost

    def answer(self, question: Question | Mapping[str, Any]) -> Outcome:
        """The debiased answer to one question, or to a dict with ``question`` and ``options``."""
        return self.answers([question])[0]

    def answers(self, questions: Any) -> list[Outcome]:
        """Answers to many questions, at a lower cost than one by one; ``status`` says why one has none.

        Args:
            questions: whatever :func:`unslant.load_questions` takes; right options are not needed.
        """
        found = load_questions(questions, need_answers=False).questions
        return [*with_texts(found, self._debiaser.answer(found))]

    def close(self) -> None:
        """Restore the model."""
        self._debiaser.close()

    def __enter__(self) -> Debiased:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def asker_of(
    model: Any,
    writer: Writer,
    alphabet: tuple[str, ...],
    *,
    in_words: bool,
    remember: bool = True,
    progress: Progress = no_progress,
) -> Asker:
    """Asks a loaded model for replies, or for the scores of labels."""
    if in_words:
        writer = Writer(writer.template, writer.chat or model.info.remote)
        return ReplyAsker(model, writer, alphabet, progress=progress)
    return ModelAsker(model, elicitation_of(model, writer), alphabet, remember=remember, progress=progress)

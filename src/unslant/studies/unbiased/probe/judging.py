"""The participants of the probe: models that rephrase questions, and say how sure they are of an answer."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from unslant.asking import Asked, Progress, ask, ask_for_replies, generate_all, no_progress, score_all
from unslant.experiment.run_record import model_block
from unslant.models import GenerateOptions, ModelOptions, ScoringModel, facts_of
from unslant.models.chat import ChatModel, LocalChat
from unslant.models.open import address_of, open_chat, open_model
from unslant.models.options import CONNECTIONS
from unslant.presentations import Presentation
from unslant.prompts import Cloze, Message, Prompt, Writer
from unslant.responses import Responses
from unslant.studies.unbiased.metrics import AS_PUBLISHED, Outcomes, mean_defined
from unslant.studies.unbiased.probe.metrics import HIGHEST, LOWEST

if TYPE_CHECKING:
    from unslant.models.hf.model import TransformersModel

REPHRASE = (
    "Rephrase the question below in other words without changing what is asked. "
    "Keep every number and name. Reply with the new question alone."
)
CONFIDENCE = (
    "Below are a question and the answer that is taken to be right. Say how sure you are that it is the right answer, "
    f"as a whole number from {LOWEST} to {HIGHEST}: 1 to 5 means no, it is not right ({LOWEST} is the surest no), 6 to "
    f"10 means yes, it is ({HIGHEST} is the surest yes). Reply with the number alone."
)
CONFIDENCE_CUE = "Confidence:"
REPHRASED_TOKENS = 200
_NUMBER = re.compile(r"(?<![\d.])(10|[1-9])(?![\d]|\.\d)")


@dataclass(frozen=True)
class Participant:
    """One model of the probe.

    Attributes:
        chat: generates rephrasings; their cost is reported.
        block: who it is, for the provenance of results.
        scorer: its answers and confidences are the most probable labels and numbers; without one, they are read from
            replies of ``chat``.
        separable: whether the numbers of a prompt each can be the most probable one, given the model's tokenizer.
    """

    chat: ChatModel
    writer: Writer
    block: Mapping[str, Any]
    scorer: ScoringModel | None = None
    separable: Callable[[Prompt], bool] = lambda prompt: True

    @property
    def name(self) -> str:
        """Name of the model."""
        return self.chat.name

    def rephrase(self, stems: Sequence[str], progress: Progress = no_progress) -> list[str | None]:
        """Each stem in other words; None where the reply is empty or none came."""
        prompts, phase = [rephrase_prompt(stem, self.writer.chat) for stem in stems], f"rephrasing by {self.name}"
        return [tidy(reply.text) or None for reply in generate_all(self.chat, prompts, progress=progress, phase=phase)]

    def judge(self, prompts: Sequence[Prompt], progress: Progress = no_progress) -> list[float]:
        """Confidence 1 to 10 after each prompt of :func:`confidence_prompt`; nan where a reply holds none."""
        phase = f"judging by {self.name}"
        if self.scorer is not None:
            # Many tokenizers split digits. "10" then begins with the token of "1" and can never beat it, unless both
            # are scored with what ends them. Elsewhere the end only adds noise: a base model may write on after 10.
            if not all(map(self.separable, prompts[:1])):
                prompts = [replace(prompt, to_end=True) for prompt in prompts]
            scores = score_all(self.scorer, prompts, progress=progress, phase=phase)
            return [float(LOWEST + int(np.argmax(score))) for score in scores]
        replies = generate_all(self.chat, prompts, progress=progress, phase=phase)
        return [read_confidence(reply.text) for reply in replies]

    def answer(self, items: Sequence[Asked], progress: Progress = no_progress) -> Responses:
        """Responses to the questions as published, for accuracy by subject."""
        if self.scorer is not None:
            return ask(self.scorer, items, [Cloze(self.writer)], progress=progress)
        return ask_for_replies(self.chat, items, self.writer, progress=progress)


def local_participant(
    model: TransformersModel,
    writer: Writer,
    generate: GenerateOptions | None = None,
    batch: int = 8,
    stored: Callable[[Any], Any] = lambda model: model,
) -> Participant:
    """A local model, which scores labels and numbers; ``stored`` wraps what is asked, so that scores are kept."""
    chat = LocalChat(model, (generate or GenerateOptions()).filled(max_tokens=REPHRASED_TOKENS), batch)
    block, scorer = model_block(model.name, facts_of(model)), stored(model)
    return Participant(stored(chat), writer, block, scorer, model.encoder.separable)


def chat_participant(model: ChatModel, writer: Writer) -> Participant:
    """A model that only generates."""
    return Participant(model, writer, model_block(model.name, facts_of(model)))


def open_participant(
    name: str,
    options: ModelOptions,
    writer: Writer,
    generate: GenerateOptions,
    stored: Callable[[Any], Any] = lambda model: model,
) -> Participant:
    """A model by name; see :mod:`unslant.models.open` and, for ``stored``, :func:`local_participant`."""
    if address_of(name, options, ("generate",)).scheme:
        return chat_participant(stored(open_chat(name, options, generate)), writer)
    local: Any = open_model(name, options, ("score", "generate"))
    return local_participant(local, writer, generate, options.connections or CONNECTIONS, stored)


def rephrase_prompt(stem: str, chat: bool) -> Prompt:
    """The prompt that asks for ``stem`` in other words."""
    if chat:
        return Prompt("", (), (Message("system", REPHRASE), Message("user", stem)))
    return Prompt(f"{REPHRASE}\n\nQuestion: {stem}\nNew question:", ())


def confidence_prompt(presentation: Presentation, writer: Writer) -> Prompt:
    """The prompt that asks how sure one is of the right labels of ``presentation`` (P4, appendix B, in our words)."""
    question = writer.template.render_question(presentation).strip()
    body = f"{question}\nAnswer taken to be right: {', '.join(presentation.right_labels)}\n{CONFIDENCE_CUE}"
    numbers = tuple(map(str, range(LOWEST, HIGHEST + 1)))
    about = f"{CONFIDENCE} {presentation.instruction}".strip() if presentation.interventions else CONFIDENCE
    if writer.chat:
        messages = (Message("system", about), Message("user", body))
        return Prompt("", numbers, messages, group=presentation.question_id)
    return Prompt(f"{about}\n\n{body}", tuple(f" {n}" for n in numbers), group=presentation.question_id)


def tidy(text: str | None) -> str:
    """The question in a reply to :func:`rephrase_prompt`: its first paragraph, without quotation marks and heading.

    Base models go on to invent more questions.
    """
    first = (text or "").strip().split("\n\n")[0]
    return re.sub(r"^(?:new )?question:\s*", "", first.strip(), flags=re.IGNORECASE).strip().strip('"“”').strip()


def read_confidence(text: str | None) -> float:
    """The first whole number from 1 to 10 in a reply ("8", "8/10", "Confidence: 10"); nan if there is none."""
    match = _NUMBER.search(text or "")
    return float(match[1]) if match else math.nan


def accuracy_by_subject(responses: Responses) -> dict[str, float]:
    """Accuracy as published for each subject with a usable answer."""
    outcomes = Outcomes(responses)
    credit, subjects = outcomes.credit(AS_PUBLISHED), np.array(outcomes.subjects)
    accuracies = {str(name): mean_defined(credit[subjects == name]) for name in np.unique(subjects)}
    return {name: accuracy for name, accuracy in accuracies.items() if not math.isnan(accuracy)}

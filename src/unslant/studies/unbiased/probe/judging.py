"""The participants of the probe: models that rephrase questions, and say how sure they are of an answer."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from unslant.asking import Asked, Progress, ask, ask_for_replies, generate_all, no_progress, score_all
from unslant.experiment.provenance_block import model_block
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
        rephrase: stems -> the same in other words; None where no usable reply came.
        judge: prompts of :func:`confidence_prompt` -> confidence 1 to 10, nan where none was given.
        answer: presentations of the questions as published -> responses, for accuracy by subject.
        block: who it is, for the provenance of results.
        chat: what generates its replies, if known; their cost is reported.
    """

    name: str
    rephrase: Callable[[Sequence[str], Progress], list[str | None]]
    judge: Callable[[Sequence[Prompt], Progress], list[float]]
    answer: Callable[[Sequence[Asked], Progress], Responses]
    block: dict[str, Any] = field(default_factory=dict)
    chat: ChatModel | None = None


def local_participant(
    model: TransformersModel,
    writer: Writer,
    generate: GenerateOptions | None = None,
    batch: int = 8,
    stored: Callable[[Any], Any] = lambda model: model,
) -> Participant:
    """A local model: it generates rephrasings; its answers and confidence are the most probable labels and numbers.

    Args:
        stored: wraps what scores and what generates, so that scores and replies are kept.
    """
    chat = stored(LocalChat(model, (generate or GenerateOptions()).filled(max_tokens=REPHRASED_TOKENS), batch))
    scorer = stored(model)
    return Participant(
        model.name,
        partial(rephrase, chat, writer.chat),
        partial(judge_by_probability, scorer),
        lambda asked, progress: ask(scorer, asked, [Cloze(writer)], progress=progress),
        model_block(model.name, facts_of(model)),
        chat,
    )


def chat_participant(model: ChatModel, writer: Writer) -> Participant:
    """A model that only generates; its answers and confidence are read from its replies."""
    return Participant(
        model.name,
        partial(rephrase, model, writer.chat),
        partial(judge_by_reply, model),
        lambda asked, progress: ask_for_replies(model, asked, writer, progress=progress),
        model_block(model.name, facts_of(model)),
        model,
    )


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
    shown = writer.template.render_question(presentation).strip()
    body = f"{shown}\nAnswer taken to be right: {', '.join(presentation.right_labels)}\n{CONFIDENCE_CUE}"
    numbers = tuple(map(str, range(LOWEST, HIGHEST + 1)))
    about = f"{CONFIDENCE} {presentation.instruction}".strip() if presentation.interventions else CONFIDENCE
    if writer.chat:
        messages = (Message("system", about), Message("user", body))
        return Prompt("", numbers, messages, group=presentation.question_id)
    return Prompt(f"{about}\n\n{body}", tuple(f" {n}" for n in numbers), group=presentation.question_id)


def rephrase(model: ChatModel, chat: bool, stems: Sequence[str], progress: Progress = no_progress) -> list[str | None]:
    """Each stem as ``model`` rephrases it; None where the reply is empty or none came."""
    phase = f"rephrasing by {model.name}"
    replies = generate_all(model, [rephrase_prompt(stem, chat) for stem in stems], progress=progress, phase=phase)
    return [tidy(reply.text) or None for reply in replies]


def tidy(text: str | None) -> str:
    """The question in a reply to :func:`rephrase_prompt`: its first paragraph, without quotation marks and heading.

    Base models go on to invent more questions.
    """
    first = (text or "").strip().split("\n\n")[0]
    return re.sub(r"^(?:new )?question:\s*", "", first.strip(), flags=re.IGNORECASE).strip().strip('"“”').strip()


def judge_by_probability(
    model: ScoringModel, prompts: Sequence[Prompt], progress: Progress = no_progress
) -> list[float]:
    """The most probable number after each prompt."""
    scores = score_all(model, prompts, progress=progress, phase=f"judging by {model.name}")
    return [float(LOWEST + int(np.argmax(score))) for score in scores]


def judge_by_reply(model: ChatModel, prompts: Sequence[Prompt], progress: Progress = no_progress) -> list[float]:
    """The number in each reply; nan where there is none."""
    replies = generate_all(model, prompts, progress=progress, phase=f"judging by {model.name}")
    return [read_confidence(reply.text) for reply in replies]


def read_confidence(text: str | None) -> float:
    """The first whole number from 1 to 10 in a reply ("8", "8/10", "Confidence: 10"); nan if there is none."""
    found = _NUMBER.search(text or "")
    return float(found[1]) if found else math.nan


def accuracy_by_subject(responses: Responses) -> dict[str, float]:
    """Accuracy as published for each subject with a usable answer."""
    outcomes = Outcomes(responses)
    credit, subjects = outcomes.credit(AS_PUBLISHED), np.array(outcomes.subjects)
    found = {str(name): mean_defined(credit[subjects == name]) for name in np.unique(subjects)}
    return {name: accuracy for name, accuracy in found.items() if not math.isnan(accuracy)}

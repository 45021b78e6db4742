"""The evaluator probe (P4, sec. 3): the bias of benchmarks whose questions a model has rewritten.

Its participants are models that rephrase questions, and say how sure they are of an answer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from unslant.arrays import Floats, mean_defined
from unslant.asking import Asked, Progress, ask, ask_for_replies, generate_all, no_progress, score_all
from unslant.errors import InputError
from unslant.experiment import PromptOptions, Temperatures
from unslant.experiment.job import Given, Job, provenance, requests_of
from unslant.experiment.running import check_same
from unslant.experiment.study import Keywords, Study, function
from unslant.models import GenerateOptions, ModelOptions, ScoringModel, facts_of
from unslant.models.chat import ChatModel, LocalChat
from unslant.models.open import address_of, open_chat, open_model
from unslant.models.options import CONNECTIONS, options_for
from unslant.presentations import Presentation
from unslant.presentations.interventions import VANILLA, Composed, apply, compose, pool_of
from unslant.prompts import Cloze, Message, Prompt, Writer
from unslant.questions import Question, QuestionSet
from unslant.responses import Responses, Run
from unslant.responses.provenance import model_block
from unslant.studies.unbiased.metrics import AS_PUBLISHED, Outcomes
from unslant.studies.unbiased.probe.metrics import HIGHEST, LOWEST
from unslant.studies.unbiased.probe.result import ProbeResult, ScoreTable, load_accuracy, load_scores, result_of


@dataclass(frozen=True, kw_only=True)
class ProbeSettings(PromptOptions):
    """How the questions are rephrased and judged."""

    strengths: Temperatures = (0.0, 0.25, 0.5, 0.75, 1.0)
    """Share of questions rephrased, 0 (the published benchmark) to 1; several separated by commas."""


@dataclass(frozen=True, kw_only=True)
class AccuracyOptions:
    """What recorded confidences are compared with."""

    accuracy: Path | None = None
    """With --log: a file of accuracy by model and subject."""


WITHOUT_BINARY = {"BT": 0.0}
"""The binary transformation makes several items of a question; judges are shown one."""


class Probe(Study[ProbeSettings]):
    """Measure how biased a model's rewritten questions are.

    Every model rephrases the questions and judges every version: consensus errors, over- and under-confidence.

    The questions under random interventions are judged too. Every version is judged once; strength p takes the
    rephrased version of a question with probability p. Scores and replies are stored one by one: the same command
    resumes. --log reads a table of confidences.

    Examples:
      unslant study probe org/one,org/two,inspect:openai/gpt-4o-mini mmlu --limit 200
      unslant study probe --log confidences.csv --accuracy accuracy.csv
    """

    name = "probe"
    settings = ProbeSettings
    result = ProbeResult
    model = None
    inputs = AccuracyOptions
    generate = GenerateOptions
    of_logs = ("strengths", "seed")
    several = True
    in_commas = True
    without = options_for("score")

    def check(self, given: Given[ProbeSettings]) -> None:
        if len(given.log) > 1:
            raise InputError("give models, or --log with one file")
        strengths = _strengths(given.settings)
        if not strengths or not all(0.0 <= p <= 1.0 for p in strengths):
            raise InputError(f"--strengths={','.join(map(str, strengths)) or '(none)'}: give numbers from 0 to 1")
        if given.log:
            return
        if given.inputs.accuracy is not None:
            raise InputError("--accuracy goes with --log: the models' own accuracy is measured here; leave it out")
        if len(given.models) < 2:
            raise InputError("the probe needs two models or more, as fair,prefers-a (in Python a list), or --log=FILE")

    def needs(self, settings: ProbeSettings) -> tuple[str, ...]:
        return ("generate",)

    def check_replies(self, given: Given[ProbeSettings], settings: Sequence[ProbeSettings]) -> None:
        """Every model replies here."""

    def measure(self, job: Job[ProbeSettings]) -> ProbeResult:
        given, settings, record = job.given, job.given.settings, job.record
        sampled, writer, strengths = settings.sampled(job.questions), settings.writer(), _strengths(settings)
        check_same(sampled)
        record.begin(", ".join(map(str, given.models)), sampled)
        participants = [
            participant(model, writer, given.generate, options, record.stored) if isinstance(model, str) else model
            for model, options in zip(given.models, given.options, strict=True)
        ]
        for one in participants:
            check_same(model=one.block)
        names = [one.name for one in participants]
        if len(set(names)) < len(names):
            raise InputError(f"the probe needs two models or more, each once; given are {', '.join(names)}")
        return _measured(participants, job, strengths)

    def read(self, given: Given[ProbeSettings]) -> ProbeResult:
        settings, (scores,), accuracy = given.settings, given.log, given.inputs.accuracy
        table, strengths = load_scores(scores), _strengths(settings)
        run = Run(
            study="probe", recorded=Path(scores).name, settings={"strengths": list(strengths), "seed": settings.seed}
        )
        return result_of(table, load_accuracy(accuracy) if accuracy else {}, strengths, settings.seed, run)


@dataclass(frozen=True, kw_only=True)
class ProbeKeywords(Keywords, AccuracyOptions, GenerateOptions, ProbeSettings):
    """Keywords of :func:`probe`.

    Examples:
        >>> result = unslant.study.probe(["fair", "words"], "embedded", limit=5)
        >>> sorted(result.models)
        ['fair', 'words']
    """


probe = function(Probe(), ProbeKeywords, ProbeResult)


def _measured(participants: Sequence[Participant], job: Job[ProbeSettings], strengths: Sequence[float]) -> ProbeResult:
    whole, settings, progress = job.questions, job.given.settings, job.progress
    writer, sampled = settings.writer(), settings.sampled(whole)
    published, changed = _presentations(whole, sampled.questions, settings.seed)
    presentations = [presentation for _, presentation in published]

    def judged(versions: Iterable[Presentation]) -> Floats:
        prompts = [confidence_prompt(version, writer) for version in versions]
        return np.array([participant.judge(prompts, progress) for participant in participants], dtype=np.float64)

    spent = {one.name: (one.chat, one.chat.cost.copy()) for one in participants}
    original = judged(presentations)
    boat = judged(presentation for _, presentation in changed)
    rephrased = np.full((len(participants), *original.shape), np.nan)
    for i, participant in enumerate(participants):
        stems = participant.rephrase([presentation.stem for presentation in presentations], progress)
        usable = {q: replace(presentations[q], stem=stem) for q, stem in enumerate(stems) if stem}
        if usable:
            rephrased[i][:, list(usable)] = judged(usable.values())
    accuracy = {one.name: accuracy_by_subject(one.answer(published, progress)) for one in participants}
    about = [(question.id, question.subject, question.context) for question, _ in published]
    ids, subjects, contexts = zip(*about, strict=True)
    table = ScoreTable(tuple(one.name for one in participants), ids, subjects, original, rephrased, boat, contexts)
    run = Run(
        study="probe",
        questions=whole.name,
        questions_digest=whole.digest,
        settings=settings.recorded() | {"strengths": list(strengths)},
        requests=requests_of(spent),
        provenance=provenance([p.block for p in participants], [sampled], settings),
    )
    return result_of(table, accuracy, strengths, settings.seed, run)


def _strengths(settings: ProbeSettings) -> tuple[float, ...]:
    return tuple(sorted(set(settings.strengths)))


def _presentations(
    whole: QuestionSet[Question], questions: Sequence[Question], seed: int
) -> tuple[list[Asked], list[Asked]]:
    """Every question with a right option as published, and under interventions."""
    pool = pool_of(whole)
    published, changed = [], []
    for question in questions:
        plain = apply(question, (), pool, seed, kind=VANILLA)
        composed = compose(question, pool, WITHOUT_BINARY, seed)
        if isinstance(plain, Composed) and isinstance(composed, Composed):
            published.append(plain.items[0])
            changed.append(composed.items[0])
    if not published:
        raise InputError(f"{whole.name}: no question has a right option to be judged")
    return published, changed


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
_NUMBER = re.compile(r"(?<![\d.])(?:1\s{0,3}(?:-|–|to|and)\s{0,3}10\b|(10|[1-9])(?![\d]|\.\d))")
"""The whole scale, or a number on it."""


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


def participant(
    model: Any,
    writer: Writer,
    generate: GenerateOptions | None = None,
    options: ModelOptions | None = None,
    stored: Callable[[Any], Any] = lambda model: model,
) -> Participant:
    """A model, loaded or by name: a local one scores labels and numbers, any other only generates.

    Args:
        stored: wraps what is asked, so that scores and replies are kept.
    """
    generate, options = generate or GenerateOptions(), options or ModelOptions()
    if isinstance(model, str):
        remote = address_of(model, options, ("generate",)).scheme
        model = open_chat(model, options, generate) if remote else open_model(model, options, ("score", "generate"))
    block = model_block(model.name, facts_of(model))
    if isinstance(model, ChatModel):
        return Participant(stored(model), writer, block)
    chat = LocalChat(model, generate.filled(max_tokens=REPHRASED_TOKENS), options.connections or CONNECTIONS)
    return Participant(stored(chat), writer, block, stored(model), model.encoder.separable)


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
    """The first whole number from 1 to 10 in a reply ("8/10", "Confidence (1-10): 9"); nan if there is none."""
    return next((float(match[1]) for match in _NUMBER.finditer(text or "") if match[1]), math.nan)


def accuracy_by_subject(responses: Responses) -> dict[str, float]:
    """Accuracy as published for each subject with a usable answer."""
    outcomes = Outcomes(responses)
    credit, subjects = outcomes.credit(AS_PUBLISHED), np.array(outcomes.subjects)
    accuracies = {str(name): mean_defined(credit[subjects == name]) for name in np.unique(subjects)}
    return {name: accuracy for name, accuracy in accuracies.items() if not math.isnan(accuracy)}

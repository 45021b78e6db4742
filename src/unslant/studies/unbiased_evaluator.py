"""The unbiased evaluator (P4): a score that must survive a change of presentation.

Load, compose interventions at random for every question and run, ask, and set the result beside the published form.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import unslant
from unslant.errors import InputError
from unslant.metrics.boat import BOAT, ONLY, VANILLA, BoatMetrics, boat_metrics
from unslant.models.base import Cost, ScoringModel
from unslant.models.speaking import Speaker
from unslant.presentations import Presentation
from unslant.presentations.interventions import (
    KINDS,
    NEEDS,
    Composed,
    NotApplicable,
    Pool,
    apply,
    compose,
    conflict,
    in_order,
    open_question,
    pool_of,
    read_open,
)
from unslant.presentations.interventions.matrix import FIRST, Kind, check_probabilities
from unslant.prompts import Cloze, Writer, load_template
from unslant.questions import EMBEDDED, MathQuestion, Question, QuestionSet, load_questions
from unslant.questions.loaders import sample
from unslant.responses.table import Responses
from unslant.studies.asking import Asked, Watch, ask, no_watch
from unslant.studies.replies import ask_in_words, read_labels
from unslant.studies.result import StudyResult

if TYPE_CHECKING:
    from unslant.reports.panels import Panel

AnySet: TypeAlias = QuestionSet[Question] | QuestionSet[MathQuestion]
VANILLA_RUN = -1


@dataclass(frozen=True)
class UnbiasedSettings:
    """How the questions are asked; see :func:`unbiased`."""

    runs: int = 5
    shots: int = 5
    probabilities: Mapping[str, float] = field(default_factory=dict)
    alone: bool = True
    instructions: bool = True
    template: str = "plain"
    chat: bool = False
    seed: int = 0


@dataclass(frozen=True)
class Plan:
    """What is going to be asked, and what could not be.

    Attributes:
        asked: question and presentation, named as :mod:`unslant.metrics.boat` reads them.
        drawn: combination (``DH+AR``; ``none`` for no intervention) -> how often it was composed.
        not_applicable: reason -> questions that could not be put at all.
        left_out: intervention -> reason -> how many times the question could not take it.
    """

    asked: list[Asked]
    drawn: Mapping[str, int]
    not_applicable: Mapping[str, int]
    left_out: Mapping[str, Mapping[str, int]]

    def to_dict(self) -> dict[str, object]:
        """Counts only."""
        return {
            "drawn": dict(self.drawn),
            "not_applicable": dict(self.not_applicable),
            "left_out": {code: dict(reasons) for code, reasons in self.left_out.items()},
        }


def plan(
    questions: AnySet,
    settings: UnbiasedSettings,
    *,
    pool_from: AnySet | None = None,
    shots_from: AnySet | None = None,
    in_words: bool = False,
) -> Plan:
    """Every question as published, in every run, and (``alone``) under each intervention by itself.

    An open maths question has no labels to be scored as published; unless it is answered in words, its answer jitter,
    always with the same near misses, stands for it.

    Args:
        in_words: replies are read, so that open maths questions are asked as they are (without worked examples).
        pool_from: questions that lend options and second stems; by default ``questions``.
        shots_from: questions that serve as worked examples; by default those of ``pool_from``.

    Raises:
        InputError: on settings that cannot be used, or where no question can be put.
    """
    if settings.runs < 1:
        raise InputError(f"{settings.runs} runs: give 1 or more")
    check_probabilities(settings.probabilities)
    lenders = pool_from if pool_from is not None else questions
    pool = _pool(lenders)
    examples = _pool(shots_from) if shots_from is not None else pool

    def put(question: Question | MathQuestion, codes: tuple[str, ...], name: str) -> Composed | NotApplicable:
        return apply(
            question, codes, pool, settings.seed, VANILLA_RUN, shots=settings.shots, shots_from=examples, name=name
        )

    asked: list[Asked] = []
    drawn: Counter[str] = Counter()
    impossible: Counter[str] = Counter()
    left_out: dict[str, Counter[str]] = {}
    for question in questions:
        published: Composed | NotApplicable
        if in_words and isinstance(question, MathQuestion):
            published = open_question(question, VANILLA)
        else:
            published = put(question, as_published(question), VANILLA)
        if isinstance(published, NotApplicable):
            impossible[published.reason] += 1
            continue
        asked += published.items
        for run in range(settings.runs):
            composed = compose(
                question,
                pool,
                settings.probabilities,
                settings.seed,
                run,
                shots=settings.shots,
                shots_from=examples,
                name=f"{BOAT}:{run}",
            )
            if isinstance(composed, Composed):
                asked += composed.items
                drawn["+".join(composed.interventions) or "none"] += 1
                for code, reason in composed.left_out.items():
                    left_out.setdefault(code, Counter())[reason] += 1
        for codes in alone_of(question) if settings.alone else ():
            single = put(question, codes, f"{ONLY}:{'+'.join(codes)}")
            if isinstance(single, Composed):
                asked += single.items
    if not asked:
        reasons = "; ".join(f"{reason} ({n:,})" for reason, n in impossible.items())
        raise InputError(f"{questions.name}: no question can be put by the unbiased evaluator: {reasons}")
    if not settings.instructions:
        asked = [(question, replace(presentation, instruction="")) for question, presentation in asked]
    return Plan(asked, drawn, impossible, left_out)


def _pool(questions: AnySet) -> Pool:
    try:
        return pool_of(questions)
    except ValueError:
        raise InputError(f"{questions.name}: no question can be used for the unbiased evaluator") from None


def as_published(question: Question | MathQuestion) -> tuple[str, ...]:
    """The interventions without which a question has no labels: answer jitter for open maths, else none."""
    return ("AJ",) if isinstance(question, MathQuestion) else ()


def alone_of(question: Question | MathQuestion) -> list[tuple[str, ...]]:
    """Each intervention with what it needs, and nothing else (P4, fig. 6)."""
    kind: Kind = "maths" if isinstance(question, MathQuestion) else "choice"
    base = set(as_published(question))
    singles = []
    for code in KINDS[kind]:
        wanted = {code, *({NEEDS[code]} if code in NEEDS else ()), *(base if code not in FIRST[kind] else ())}
        if wanted != base and not conflict(wanted, kind):
            singles.append(in_order(wanted))
    return singles


@dataclass(frozen=True)
class UnbiasedResult(StudyResult):
    """What the study found.

    Attributes:
        responses: every answer; ``responses.meta`` tells how they came about.
        metrics: vanilla, ours, drop and the rest, each with its interval and N.
        counts: what was composed and what could not be, as in :class:`Plan`.
        cost: tokens and time.
    """

    responses: Responses
    metrics: BoatMetrics
    counts: Mapping[str, Any]
    cost: Cost
    meta: Mapping[str, Any]

    @property
    def model(self) -> str:
        """Name of the model."""
        return str(self.meta.get("model", "model"))

    @property
    def headline(self) -> str:
        """The outcome in one sentence."""
        from unslant.reports.unbiased import headline

        return headline(self)

    def panels(self) -> Sequence[Panel]:
        """What a report shows."""
        from unslant.reports.unbiased import panels

        return panels(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the single responses, JSON-able."""
        return {
            "unslant": unslant.__version__,
            "headline": self.headline,
            **self.meta,
            "counts": dict(self.counts),
            "cost": asdict(self.cost),
            "metrics": self.metrics.to_dict(),
        }

    def to_parquet(self, path: str | Path) -> None:
        """Write the table of responses; :meth:`from_parquet` reads it back without the model."""
        self.responses.to_parquet(path)

    @classmethod
    def from_parquet(cls, path: str | Path) -> UnbiasedResult:
        """A result from its table of responses; every number is computed anew."""
        return result_of(Responses.from_parquet(path))


def unbiased(
    model: str | ScoringModel | Callable[[], ScoringModel],
    questions: str | Path | AnySet = EMBEDDED,
    *,
    runs: int = 5,
    shots: int = 5,
    shots_from: AnySet | None = None,
    probabilities: Mapping[str, float] | None = None,
    alone: bool = True,
    instructions: bool = True,
    template: str = "plain",
    chat: bool = False,
    limit: int | None = None,
    seed: int = 0,
    watch: Watch = no_watch,
) -> UnbiasedResult:
    """Score a model on a question set as published and under random interventions, by label log-probability.

    Args:
        model: a name or folder for :func:`unslant.load_model`, a loaded model, or a function that loads one (called
            once everything else has been found to be in order).
        questions: a file, recipe or loaded set, of multiple-choice or (``load_math``) open maths questions.
        runs: independent draws of interventions for every question.
        shots, shots_from: worked examples that carry the same interventions; by default from the set itself.
        probabilities: intervention -> probability, over the paper's (0.5 each, binary transformation 0.1).
        alone: ask every intervention by itself too.
        instructions: begin with a sentence that says what is asked for, which changes with the interventions. Models
            that were never taught to follow one (the reference models) are better asked without it.
        limit: ask only so many questions, sampled by ``seed``. Options and second stems still come from all of them.
        seed: of every random choice.
        watch: told of progress.

    Raises:
        InputError: on questions, probabilities or a template that cannot be used.
        ModelError: if the model cannot be loaded, or cannot take a prompt.
    """
    from unslant.models.loading import load_model

    settings = UnbiasedSettings(runs, shots, dict(probabilities or {}), alone, instructions, template, chat, seed)
    whole = loaded(questions)
    found = cut(whole, limit, seed)
    writer = Writer(load_template(template), chat)
    planned = plan(found, settings, pool_from=whole, shots_from=shots_from)
    if isinstance(model, str):
        model = partial(load_model, model)
    asker = model() if callable(model) else model
    before = asker.cost.copy()
    responses = ask(asker, planned.asked, [Cloze(writer)], watch=watch)
    meta = {
        **about(found, settings, planned, asker.name),
        "engine": getattr(asker, "engine", type(asker).__name__),
        "parameters": parameters(asker),
        "cost": asdict(asker.cost - before),
    }
    return result_of(with_meta(responses, meta, found))


def unbiased_in_words(
    speaker: Speaker,
    questions: str | Path | AnySet = EMBEDDED,
    *,
    runs: int = 5,
    shots: int = 5,
    shots_from: AnySet | None = None,
    probabilities: Mapping[str, float] | None = None,
    alone: bool = True,
    instructions: bool = True,
    template: str = "plain",
    chat: bool = True,
    limit: int | None = None,
    seed: int = 0,
    watch: Watch = no_watch,
) -> UnbiasedResult:
    """The same study with replies in words, for served and chat models; open maths is asked as published.

    An answer counts if the contents it chooses are exactly the right ones. What cannot be read is left out and
    counted. See :func:`unbiased` for the arguments.
    """
    settings = UnbiasedSettings(runs, shots, dict(probabilities or {}), alone, instructions, template, chat, seed)
    whole = loaded(questions)
    found = cut(whole, limit, seed)
    writer = Writer(load_template(template), chat)
    planned = plan(found, settings, pool_from=whole, shots_from=shots_from, in_words=True)
    responses = ask_in_words(speaker, planned.asked, writer, read=read_reply, watch=watch)
    return result_of(with_meta(responses, about(found, settings, planned, speaker.name), found))


def read_reply(reply: str, question: Question, presentation: Presentation) -> tuple[str, frozenset[int] | None]:
    """What a reply chooses; for an open question whether its number is the right one (option 0) or not (1)."""
    if presentation.shown:
        return read_labels(reply, question, presentation)
    return read_open(reply, question.options[0])


def loaded(questions: str | Path | AnySet) -> AnySet:
    """The questions as a set, read from their file where they are not."""
    return questions if isinstance(questions, QuestionSet) else load_questions(questions)


def cut(questions: AnySet, limit: int | None, seed: int) -> AnySet:
    """At most ``limit`` of the questions, sampled by ``seed``."""
    any_kind: Any = questions
    return cast(AnySet, replace(any_kind, questions=sample(any_kind.questions, limit, seed)))


def about(found: AnySet, settings: UnbiasedSettings, planned: Plan, model: str) -> dict[str, Any]:
    """What is written beside the responses of a run."""
    return {
        "study": "unbiased",
        "model": model,
        "questions": found.name,
        "questions_digest": found.digest,
        "loading": asdict(found.report),
        "settings": {**asdict(settings), "probabilities": check_probabilities(settings.probabilities)},
        "counts": planned.to_dict(),
    }


def with_meta(responses: Responses, meta: Mapping[str, Any], found: AnySet) -> Responses:
    """The responses with their meta data as they would be read back from a file, and the questions."""
    as_written = json.loads(json.dumps(meta))
    texts = tuple(question for question in found if isinstance(question, Question))
    return Responses(responses.table, as_written, texts)


def parameters(model: object) -> int | None:
    """Number of weights of a local model, where it can be told."""
    count = getattr(getattr(model, "model", None), "num_parameters", None)
    return int(count()) if callable(count) else None


def result_of(responses: Responses) -> UnbiasedResult:
    """All numbers from the responses of a run."""
    meta = {key: value for key, value in responses.meta.items() if key not in ("cost", "counts")}
    cost, counts = responses.meta.get("cost"), responses.meta.get("counts")
    return UnbiasedResult(
        responses,
        boat_metrics(responses),
        counts if isinstance(counts, dict) else {},
        Cost(**cost) if isinstance(cost, dict) else Cost(),
        meta,
    )

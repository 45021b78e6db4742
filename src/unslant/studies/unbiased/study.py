"""The unbiased evaluator (P4): the score as published and under random interventions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, TypeAlias

from unslant.asking import Asked, read_labels
from unslant.errors import InputError
from unslant.experiment import Numbers, PromptOptions, ShotOptions
from unslant.experiment.job import Asking, Given
from unslant.experiment.ranking import RankingOptions
from unslant.experiment.result import StudyResult
from unslant.experiment.study import Keywords, Study, function
from unslant.flags import pairs
from unslant.models import GenerateOptions
from unslant.models.open import address_of, gives_replies
from unslant.presentations import Presentation, interventions
from unslant.presentations.interventions import BOAT, ONLY, VANILLA, Composed, NotApplicable, Pool
from unslant.presentations.interventions.matrix import FIRST, Kind, check_probabilities
from unslant.prompts import Cloze
from unslant.questions import MathQuestion, Question, QuestionSet
from unslant.replies import read_open
from unslant.responses import Responses
from unslant.responses.run import ComposedCounts
from unslant.studies.unbiased.metrics import UnbiasedResult


@dataclass(frozen=True, kw_only=True)
class ComposeSettings(ShotOptions, PromptOptions):
    """How interventions are drawn."""

    LEAST: ClassVar = {"runs": 1}

    runs: int = 5
    """Random draws of interventions for every question."""
    probabilities: Numbers = ()  # type: ignore[assignment]
    """Probability of an intervention, as OS=0.3; repeatable. By default 0.5, and 0.1 for BT."""
    no_instructions: bool = False
    """Leave out the instruction, for models that follow none."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "probabilities", pairs("--probabilities", self.probabilities, float))


@dataclass(frozen=True, kw_only=True)
class UnbiasedSettings(ComposeSettings):
    """How the questions are asked."""

    shots: int = 5
    """Worked examples before each question, changed in the same way."""
    maths: bool = False
    """Questions are open maths questions with numbers as answers."""
    generate: bool = False
    """Read generated replies instead of label probabilities."""
    no_alone: bool = False
    """Skip asking under each intervention alone."""

    @property
    def in_words(self) -> bool:
        """See :attr:`~unslant.experiment.Options.in_words`."""
        return self.generate

    def load(self, source: Any, maths: bool = False) -> QuestionSet[Any]:
        """See :meth:`~unslant.experiment.LoadOptions.load`."""
        return super().load(source, maths or self.maths)

    def recorded(self, *left_out: str) -> dict[str, Any]:
        """The settings for JSON, with the probability of every intervention, and that replies are read, if so."""
        probabilities = check_probabilities(self.probabilities)
        hidden = ["maths", *["generate"] * (not self.generate), *left_out]
        return super().recorded(*hidden) | {"probabilities": probabilities}


AnySet: TypeAlias = QuestionSet[Question] | QuestionSet[MathQuestion]
VANILLA_RUN = -1
"""Run of the published form and of single interventions; no BOAT run has it, so that their random draws differ."""


class Unbiased(Study[UnbiasedSettings]):
    """Compare the published score with the score under random changes of presentation.

    Interventions: DH distractor hint, DQ distractor question, AR answer removal, OS option shuffling, LR label
    replacement, BT binary transformation; for maths also QJ question jitter and AJ answer jitter. Models that return
    only text (inspect:...) answer in replies. Several models, or several logs, are compared side by side.

    A reply without an answer counts as not right, a presentation without a reply is left out, and both are counted.
    With --limit, options and second stems still come from all questions.

    Examples:
      unslant study unbiased org/name mmlu --limit 500 --responses run.parquet
      unslant study unbiased -m org/one -m inspect:openai/gpt-4o-mini gsm8k --maths --ranking leaderboard.csv
    """

    name = "unbiased"
    settings = UnbiasedSettings
    result = UnbiasedResult
    inputs = RankingOptions
    generate = GenerateOptions
    several = True
    compared = "unbiased-compare"
    in_shards = True
    switch = "--generate"

    def ask(self, asking: Asking[UnbiasedSettings]) -> Responses:
        settings, whole = asking.settings, asking.job.questions
        settings.writer()  # a bad template is refused before the model is opened
        pool = settings.pool(settings.shots_from, settings.maths)
        items, counts = plan(asking.questions, settings, pool_from=whole, shots_from=pool)
        if settings.generate:
            return asking.ask_for_replies(items, read_reply, counts=counts)
        parameters = asking.model.info.parameters
        return asking.ask(items, [Cloze(asking.settings.writer())], parameters=parameters, counts=counts)

    def settings_of_each(self, given: Given[UnbiasedSettings]) -> list[UnbiasedSettings]:
        """The same for all: where one of several models must be asked for replies, or in a chat, all are."""
        settings = given.settings
        models = list(zip(given.models, given.options, strict=True))
        words = settings.generate or any(gives_replies(model, options) for model, options in models)
        remote = any(isinstance(model, str) and address_of(model, options).scheme for model, options in models)
        return [replace(settings, generate=words, chat=settings.chat or (words and remote))] * len(models)

    def compare(self, results: Sequence[Any], given: Given[UnbiasedSettings]) -> StudyResult:
        from unslant.studies.unbiased.comparison import UnbiasedComparison

        return UnbiasedComparison.of(results, given.inputs.scores(len(given.log or given.models)))

    def check(self, given: Given[UnbiasedSettings]) -> None:
        given.inputs.scores(len(given.log or given.models))


@dataclass(frozen=True, kw_only=True)
class UnbiasedKeywords(Keywords, RankingOptions, GenerateOptions, UnbiasedSettings):
    """Keywords of :func:`unbiased`.

    Examples:
        >>> result = unslant.study.unbiased("prefers-a", "embedded", limit=20)
        >>> result.metrics.vanilla.n
        20
    """


unbiased = function(Unbiased(), UnbiasedKeywords, UnbiasedResult)


def plan(
    questions: AnySet, settings: UnbiasedSettings, *, pool_from: AnySet | None = None, shots_from: AnySet | None = None
) -> tuple[list[Asked], ComposedCounts]:
    """Every question as published, in every run, and (unless ``no_alone``) under each intervention by itself.

    Open maths questions are asked as they are if replies are generated. Otherwise their published form, which has no
    labels, is replaced by answer jitter, always with the same near misses.

    Args:
        pool_from: questions that lend options and second stems; by default ``questions``.
        shots_from: questions used as worked examples; by default those of ``pool_from``.

    Returns:
        Question and presentation of kind ``vanilla``, ``boat`` (one for each run) or ``only``; and how often each
        intervention was composed or impossible, ``drawn`` by combination (``DH+AR``; ``none`` for no intervention).

    Raises:
        InputError: on settings that cannot be used, or if no question can be asked.
    """
    check_probabilities(settings.probabilities)
    pool = _pool(questions if pool_from is None else pool_from)
    lender = pool if shots_from is None else _pool(shots_from)
    shots: dict[str, Any] = {"shots": settings.shots, "shots_from": lender}
    items: list[Asked] = []
    drawn: Counter[str] = Counter()
    impossible: Counter[str] = Counter()
    left_out: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for question in questions:
        put = partial(interventions.apply, question, pool=pool, seed=settings.seed, run=VANILLA_RUN, **shots)
        if settings.generate and isinstance(question, MathQuestion):
            published = interventions.open_question(question, lender, settings.seed, VANILLA_RUN, shots=settings.shots)
        else:
            published = put(interventions=as_published(question), kind=VANILLA)
        if isinstance(published, NotApplicable):
            impossible[published.reason] += 1
            continue
        items += published.items
        for run in range(settings.runs):
            composed = interventions.compose(question, pool, settings.probabilities, settings.seed, run, **shots)
            if isinstance(composed, Composed):
                items += composed.items
                drawn["+".join(composed.interventions) or "none"] += 1
                for code, reason in composed.left_out.items():
                    left_out[code][reason] += 1
        for codes in () if settings.no_alone else alone_of(question, settings.generate):
            single = put(interventions=codes, kind=ONLY)
            if isinstance(single, Composed):
                items += single.items
    if not items:
        reasons = "; ".join(f"{reason} ({n:,})" for reason, n in impossible.items())
        raise InputError(f"{questions.name}: the unbiased evaluator cannot ask any of these questions: {reasons}")
    if settings.no_instructions:
        items = [(question, replace(presentation, instruction="")) for question, presentation in items]
    reasons_left_out = {code: dict(reasons) for code, reasons in left_out.items()}
    return items, ComposedCounts(drawn=dict(drawn), left_out=reasons_left_out, not_applicable=dict(impossible))


def _pool(questions: AnySet) -> Pool:
    try:
        return interventions.pool_of(questions)
    except ValueError:
        raise InputError(f"{questions.name}: the unbiased evaluator cannot use any of these questions") from None


def key_of(question: Question, presentation: Presentation) -> str:
    """Readable id of an item, unique in a plan."""
    codes = "+".join(presentation.interventions) if presentation.kind == ONLY else ""
    run = str(presentation.run) if presentation.kind == BOAT else ""
    return f"{question.id}|{':'.join(filter(None, (presentation.kind, run, codes, presentation.item)))}"


def as_published(question: Question | MathQuestion) -> tuple[str, ...]:
    """The interventions that give a question its labels: answer jitter for open maths, else none."""
    return ("AJ",) if isinstance(question, MathQuestion) else ()


def alone_of(question: Question | MathQuestion, generate: bool = False) -> list[tuple[str, ...]]:
    """Each intervention with what it needs, and nothing else (P4, fig. 6).

    Answer jitter is the published form of maths where labels are scored, and an intervention where replies are read.
    """
    kind: Kind = "maths" if isinstance(question, MathQuestion) else "choice"
    base = as_published(question)
    singles = []
    for code in interventions.KINDS[kind]:
        codes = {code, interventions.NEEDS.get(code, code), *(base if code not in FIRST[kind] else ())}
        if (generate or codes != {*base}) and not interventions.conflict(codes, kind):
            singles.append(interventions.in_order(codes))
    return singles


def read_reply(reply: str, question: Question, presentation: Presentation) -> tuple[str, frozenset[int] | None]:
    """Status and contents of a reply; to an open question, 0 if its number is right and 1 if not."""
    if presentation.shown:
        return read_labels(reply, question, presentation)
    return read_open(reply, question.options[0])

"""How a table of responses came to be, as one record: checked when a file is opened, then carried with the table.

Nobody reads a key out of a dict again: what a study knows of its run is a field here, with its type.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from typing import Annotated, Any

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from unslant.arrays import jsonable
from unslant.questions.question import LoadReport
from unslant.responses.provenance import (
    Agreement,
    AnsweredBy,
    ChatCost,
    Cost,
    Count,
    LoggedScore,
    Number,
    Provenance,
    RunPart,
    SpecialTokens,
)

Tally = dict[str, Count]
Hits = tuple[Count, Count]
"""Right answers, of how many."""


@dataclass(frozen=True, kw_only=True)
class ComposedCounts(RunPart):
    """How often the unbiased evaluator used each intervention.

    Attributes:
        drawn: interventions composed for a question -> how many questions.
        left_out: intervention -> reason -> how many questions.
        not_applicable: reason -> how many questions cannot be asked at all.
    """

    drawn: Tally = field(default_factory=dict)
    left_out: dict[str, Tally] = field(default_factory=dict)
    not_applicable: Tally = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class UntilStep(RunPart):
    """A step of a search with ``--until``: questions asked, those in at least a Latin square of orders, those in all
    orders, the widest half-width, and the numbers."""

    questions: Count
    squares: Count
    whole: Count
    half_width: float | None
    numbers: dict[str, dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class UntilRun(RunPart):
    """The search of an audit with ``--until`` (``docs/until.md``).

    Attributes:
        half_width, confidence: the precision that was requested.
        ended: ``width`` (every interval is narrow enough), ``all`` (everything was asked), or another reason; empty
            while the search runs.
        questions, prompts, tokens: numbers asked; of_...: those of an audit of all questions in all orders. Tokens are
            None if not counted.
        squares, whole: questions asked in at least a Latin square of their orders, and in all orders.
        share: of the tokens of all questions in all orders, as planned.
        path: the numbers after each step.
    """

    half_width: float
    confidence: float
    ended: str = ""
    questions: Count = 0
    of_questions: Count = 0
    squares: Count = 0
    whole: Count = 0
    prompts: Count = 0
    of_prompts: Count = 0
    tokens: Count | None = None
    of_tokens: Count | None = None
    share: float = 1.0
    path: tuple[UntilStep, ...] = ()

    @property
    def reached(self) -> bool:
        """Whether every interval is as narrow as requested."""
        return self.ended == "width"


@dataclass(frozen=True, kw_only=True)
class TwoPhaseRun(RunPart):
    """An audit that showed every question in one Latin square of its orders, and some questions in all of them.

    Attributes:
        full: ids of the questions shown in all orders, and with rearranged labels.
        of_prompts: prompts of an audit that shows every question in all of its orders.
    """

    full: tuple[str, ...]
    of_prompts: Count = 0


@dataclass(frozen=True, kw_only=True)
class AdaptiveRun(RunPart):
    """Questions that an audit in words stopped asking, and those that it asked in full to represent them.

    Attributes:
        stopped, checked: their ids: of the questions whose first answers agree (``--adaptive``), or of all
            (``--in-all-orders``).
        requests_of_all: requests of an audit that asks everything.
        at_random: whether they were drawn at random, without regard to any answer.
    """

    stopped: tuple[str, ...]
    checked: tuple[str, ...]
    requests_of_all: Count
    at_random: bool = False


@dataclass(frozen=True, kw_only=True)
class LogFacts(RunPart):
    """What an importer reports of the log that it read.

    Attributes:
        scores: what was scored: ``labels``, ``texts``, ``listed`` texts (of options that the prompt lists),
            ``choices``, ``words``, ``verdicts`` (as logged), or ``replies`` with scores of labels.
        reported: the harness's own scores of these answers, one for each metric.
        files: name and digest of each file.
        orders: number of orders -> number of questions shown in that many.
        dropped: reason -> pages left out.
        notes: caveats, in sentences.
        caveats: before the first number: the part of the log that is read, and other readings of it.
        right_by_replies, right_by_labels, right_by_first_tokens: right answers by the replies' words, the scores of
            labels, and those of first tokens.
    """

    scores: str = ""
    files: tuple[dict[str, str], ...] = ()
    orders: Tally = field(default_factory=dict)
    dropped: Tally = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    reported: tuple[LoggedScore, ...] = ()
    caveats: tuple[str, ...] = ()
    right_by_replies: Hits | None = None
    right_by_labels: Hits | None = None
    right_by_first_tokens: Hits | None = None


@dataclass(frozen=True, kw_only=True)
class TaskRecord(RunPart):
    """A task of lm-eval in its published order, as lm-eval counts it."""

    version: str = ""
    num_fewshot: Count = 0
    scored: str = ""
    options_in: str = ""
    n: Count = 0
    missing: Count = 0
    metrics: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Harness(RunPart):
    """A run of lm-eval's own tasks."""

    version: str
    orders: Count
    notes: tuple[str, ...] = ()
    tasks: dict[str, TaskRecord] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ShardHeader(RunPart):
    """Which part of a run a table is.

    Attributes:
        index, of: which shard, from 1, of how many.
        questions: how many questions it has.
        runs: of every stretch of its rows, in order: first row in the table of the whole run, and number.
        plan, digest: what the whole run asks, see :class:`unslant.scale.Plan`.
    """

    index: Annotated[int, Field(ge=1)]
    of: Annotated[int, Field(ge=1)]
    questions: Count
    runs: tuple[tuple[Count, Count], ...]
    plan: dict[str, Any]
    digest: str


def _read_again(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings, with the types checked of those by which results are recomputed."""
    if type(settings.get("seed", 0)) is not int or settings.get("seed", 0) < 0:
        raise ValueError("seed is not a whole number from 0")
    temperatures = settings.get("temperatures", [])
    if type(temperatures) is not list or not all(type(one) in (int, float) and one >= 0 for one in temperatures):
        raise ValueError("temperatures are not numbers from 0")
    return settings


@dataclass(frozen=True, kw_only=True)
class Run(RunPart):
    """How a table of responses came to be.

    Attributes:
        study: name of the study, as in ``unslant study NAME``.
        model: name, folder or Hub id; models: where there are several.
        questions, questions_digest: name and SHA-256 of the question set.
        recorded, source, fields: of recorded scores: file, origin, and which column held what.
        engine, server, identity: how the model was run, what kind of server it was, and everything that, if changed,
            may change a score.
        settings: settings of the study.
        loading: what was dropped or repaired when the questions were read.
        cost: of scores; requests: of replies, by model.
        order_costs: what the audit in other sets of orders costs, in ordinary runs; cost_once: what of it does not
            grow with the questions.
        offline: every score came from the store, and no server was asked.
        failed_models: models that are left out -> why.
        incomplete: weights that the checkpoint did not have.
        answered_by: the models and systems that a server's replies named.
        unsteady: prompts that got other scores, of those ``asked_again`` of a server; 0 of 0 if none did.
        apart: why the model's scores were neither stored nor reused.
        quantization: how the weights are packed.
        half_precision: agreement with float32, for a model in half precision.
        chat_template: sentences on what the model's chat template writes.
        parameters: number of weights.
        example_prompt: one prompt as the model sees it.
        counts: what the unbiased evaluator composed.
        polished: instruction -> its rewritten form.
        until, two_phase, adaptive, logged, lm_eval, shard: set for runs of these kinds.
        notes: further caveats, in sentences.
        provenance: everything needed to reproduce the result.

    Examples:
        >>> run = Run(model="org/name", questions="mmlu")
        >>> Run.parse(run.dump()) == run
        True
    """

    study: str = "audit"
    model: str = ""
    models: tuple[str, ...] = ()
    questions: str = ""
    questions_digest: str = ""
    recorded: str = ""
    source: str = ""
    fields: dict[str, Any] = field(default_factory=dict)
    engine: str = ""
    server: str = ""
    identity: dict[str, str] = field(default_factory=dict)
    settings: Annotated[dict[str, Any], AfterValidator(_read_again)] = field(default_factory=dict)
    loading: LoadReport | None = None
    cost: Cost = field(default_factory=Cost)
    requests: dict[str, ChatCost] = field(default_factory=dict)
    order_costs: dict[str, Number] = field(default_factory=dict)
    cost_once: Number = 0.0
    offline: bool = False
    answered_by: tuple[AnsweredBy, ...] = ()
    unsteady: Count = 0
    asked_again: Count = 0
    apart: str = ""
    failed_models: dict[str, str] = field(default_factory=dict)
    incomplete: str = ""
    quantization: str = ""
    half_precision: Agreement | None = None
    special_tokens: SpecialTokens | None = None
    chat_template: tuple[str, ...] = ()
    parameters: Count | None = None
    example_prompt: str = ""
    counts: ComposedCounts = field(default_factory=ComposedCounts)
    polished: dict[str, str] = field(default_factory=dict)
    until: UntilRun | None = None
    two_phase: TwoPhaseRun | None = None
    adaptive: AdaptiveRun | None = None
    logged: LogFacts | None = None
    lm_eval: Harness | None = None
    shard: ShardHeader | None = None
    notes: tuple[str, ...] = ()
    provenance: Provenance = field(default_factory=Provenance)

    @property
    def name(self) -> str:
        """The model's name without its path."""
        return (self.model or "model").rstrip("/").split("/")[-1]

    @property
    def question_set(self) -> str:
        """Name of the question set or of the file of recorded scores."""
        return self.questions or self.recorded or "questions"

    @property
    def replies(self) -> ChatCost:
        """What the replies of all models have cost together."""
        return sum(self.requests.values(), ChatCost())

    def to_dict(self, *omit: str) -> dict[str, Any]:
        """Plain values for the JSON of results, :attr:`Cost.ordinary_runs` among them; a field at its default is left
        out. What is read again is :meth:`dump`."""
        fields_of_run = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in omit}
        values = {n: jsonable(value) for n, value in fields_of_run.items() if value != getattr(_DEFAULT, n)}
        return values | ({"provenance": self.provenance.model_dump()} if "provenance" in values else {})

    def dump(self) -> bytes:
        """JSON without seconds, so that equal runs give equal bytes."""
        timeless = replace(self, cost=replace(self.cost, seconds=0.0))
        values = timeless.to_dict()
        if "cost" in values:
            values["cost"] = asdict(timeless.cost)
        return json.dumps(values, sort_keys=True).encode()

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Run:
        """What the JSON of :meth:`dump` holds; ValueError as :meth:`parse`."""
        return cls.parse(json.dumps(values).encode())

    @classmethod
    def parse(cls, dumped: bytes) -> Run:
        """What :meth:`dump` wrote.

        Raises:
            ValueError: naming the part that is of another type.
        """
        try:
            return _adapter().validate_json(dumped, strict=True)
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]
            where = ".".join(map(str, problem["loc"])) or "all"
            raise ValueError(f"its description ({where}): {problem['msg'].lower()}") from None

    @classmethod
    def merge(cls, runs: Sequence[Run], first: Run) -> Run:
        """The whole run that these are the shards of.

        Costs are summed; facts that each machine measured for itself (agreement in half precision, platform, day) are
        combined. Everything else is taken from ``first``, one of them.
        """
        special = [run.special_tokens for run in runs if run.special_tokens]
        agreements = [run.half_precision for run in runs if run.half_precision]
        models = dict.fromkeys(name for run in runs for name in run.requests)
        questions = tuple(sorted({name for one in special for name in one.questions}))
        return replace(
            first,
            shard=None,
            cost=sum((run.cost for run in runs), Cost()),
            requests={name: sum((run.requests.get(name, ChatCost()) for run in runs), ChatCost()) for name in models},
            special_tokens=replace(special[0], questions=questions) if special else None,
            half_precision=Agreement.over(agreements) if agreements else None,
            offline=any(run.offline for run in runs),
            answered_by=AnsweredBy.merge(run.answered_by for run in runs),
            unsteady=sum(run.unsteady for run in runs),
            asked_again=sum(run.asked_again for run in runs),
            apart=next((run.apart for run in runs if run.apart), ""),
            provenance=Provenance.merge([run.provenance for run in runs]),
        )


@cache  # building the validator of this many types takes a noticeable part of a second: only where a file is read
def _adapter() -> TypeAdapter[Run]:
    return TypeAdapter(Run)


_DEFAULT = Run()

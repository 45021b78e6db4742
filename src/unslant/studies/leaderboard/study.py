"""The leaderboard: audit every model on every set, and rank them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations, pairwise
from typing import Annotated, Literal

from unslant.arrays import Jsonable
from unslant.auditing import AuditSettings, OrderDesign
from unslant.auditing.result import AuditResult
from unslant.auditing.study import Audit
from unslant.errors import InputError, one_of
from unslant.experiment.comparison import ComparedResult, check_whole
from unslant.experiment.job import Given, Job
from unslant.experiment.result import StudyResult
from unslant.experiment.study import Keywords, Study, function
from unslant.metrics import Estimate, Measured, Numbers, metric
from unslant.metrics.association import pbm_accuracy
from unslant.models import ChatCost, Cost, GenerateOptions
from unslant.questions import Question, QuestionSet
from unslant.reach import Reach
from unslant.reports.numbers import listed
from unslant.responses.provenance import Provenance
from unslant.studies.leaderboard.ranking import KEYS, RANK_BY, Pair, QuestionPool, Standing, compared, named, standings

ONE, PLAIN, CACHED, TREE, ASKED = (
    "one order", "all orders, each prompt alone", "all orders, question-context cache", "all orders, prefix tree",
    "all orders, as asked",
)  # fmt: skip


@dataclass(frozen=True)
class BoardEntry(Measured):
    """One model on one set, over all of its own questions.

    Attributes:
        elicitation: ``labels`` (their probabilities were scored) or ``generate`` (replies were read).
    """

    model: str
    questions: str
    elicitation: str
    numbers: Numbers


@dataclass(frozen=True)
class PbmAccuracy(Jsonable):
    """PBM against accuracy over the entries of one way to ask (P1 sec. 4).

    Attributes:
        over: ``sets and models``, or the name of the model (over sets) or the set (over models) that is held fixed.
    """

    over: str
    elicitation: str
    pbm_accuracy: Numbers


@dataclass(frozen=True)
class WayCost(Jsonable):
    """What one way of computing the answers costs a model, over all sets (P1, table 2).

    One order is the published score; the others vote over all orders, so that their PBM is 0 by construction.

    Attributes:
        way: ``one order``, or how the vote over all orders is computed.
        tokens: that go through the model; None where the server does not count them. For one order, those of each
            prompt alone by the mean length of a prompt.
        saved: share of the tokens of all orders, each prompt alone; None for one order.
        seconds: None where unknown.
        measured: whether the seconds were; others are computed from tokens at the measured rate.
    """

    model: str
    way: str
    accuracy: Estimate
    pbm: Estimate
    tokens: float | None
    saved: float | None
    seconds: float | None
    measured: bool


@dataclass(frozen=True)
class Leaderboard(ComparedResult):
    """Models ranked by their score averaged over orders of options, or by the vote over them.

    Attributes:
        audits: of every model on every set.
        rank_by: ``mean`` or ``vote``.
        models: best first; on the sets that all models have, and their questions that all have answers to.
        chance: score of guessing, the mean over sets.
        pairs: every two models with a rank, compared by the score that is ranked by.
        sets: set -> questions that count.
        left_out: sets that not all models have; they count in ``entries`` only.
        unpaired: ranked model -> questions without an answer in every order; nobody's score includes them.
    """

    study = "leaderboard"
    unwritten = ("audits",)

    audits: tuple[AuditResult, ...]
    rank_by: str
    models: tuple[Standing, ...]
    chance: Estimate
    pairs: tuple[Pair, ...]
    entries: tuple[BoardEntry, ...]
    pbm_accuracy: tuple[PbmAccuracy, ...]
    ways: tuple[WayCost, ...]
    sets: Mapping[str, int]
    left_out: tuple[str, ...]
    unpaired: Mapping[str, int]

    @classmethod
    def of(cls, audits: Iterable[AuditResult], rank_by: str = "mean") -> Leaderboard:
        """Rank audits.

        Audits are of one set if they name the same set, or have most of their questions in common, as logs do that have
        a file for each model.

        Args:
            rank_by: ``mean``: performance in a random order; ``vote``: knowledge with the habit taken out.

        Raises:
            InputError: if there is none, a model has one set twice, or no set is common to all models.
        """
        if rank_by not in RANK_BY:
            raise InputError(f"rank_by={rank_by!r}: {one_of(rank_by, RANK_BY)}")
        check_whole(audits := tuple(audits))
        triples = named(audits)
        by_model: dict[str, dict[str, AuditResult]] = {}
        for model, name, audit in triples:
            of_model = by_model.setdefault(model, {})
            if name in of_model:
                first, again = of_model[name].run.question_set, audit.run.question_set
                same = f"has the same questions in {first} and {again}"
                twice = f"on {first} is given twice" if first == again else same
                raise InputError(f"{model} {twice}; give each model and set once")
            of_model[name] = audit
        if not by_model:
            raise InputError("no models: give one or more")
        every = dict.fromkeys(name for _, name, _ in triples)
        shared = [name for name in every if all(name in of_model for of_model in by_model.values())]
        if not shared:
            held = "; ".join(f"{model} has {listed(list(of_model))}" for model, of_model in by_model.items())
            raise InputError(f"no question set is common to all of {', '.join(by_model)}: {held}")
        ranked = {model: [of_model[name] for name in shared] for model, of_model in by_model.items()}
        pool = QuestionPool.of(ranked, (*KEYS, "chance"), RANK_BY[rank_by])
        pairs = compared(pool, pool.score)
        models = standings(pool, pairs)
        entries = [
            BoardEntry(model, name, "generate" if audit.replies else "labels", audit.metrics.means.only(*KEYS))
            for model, of_model in by_model.items()
            for name, audit in of_model.items()
        ]
        return cls(
            audits,
            rank_by,
            models,
            pool.chance,
            pairs,
            tuple(entries),
            _correlations(entries),
            tuple(way for one in models for way in _ways(one, by_model[one.model].values())),
            dict(zip(shared, pool.sizes, strict=True)),
            tuple(name for name in every if name not in shared),
            pool.unpaired,
        )

    @property
    def score(self) -> str:
        """Key of the metric that is ranked by."""
        return RANK_BY[self.rank_by]

    @property
    def neighbours(self) -> tuple[Pair, ...]:
        """The pairs of each ranked model and the next."""
        by_names = {frozenset((pair.higher, pair.lower)): pair for pair in self.pairs}
        names = [one.model for one in self.models if one.rank is not None]
        return tuple(by_names[key] for key in map(frozenset, pairwise(names)) if key in by_names)

    @property
    def named_parts(self) -> Sequence[tuple[str, AuditResult]]:
        return [(f"{model}-{name}", audit) for model, name, audit in self._named]

    @property
    def answered(self) -> StudyResult | None:
        return self if any(one.rank is not None for one in self.models) else None  # a failed audit has no rank

    @property
    def runs(self) -> dict[str, AuditResult]:
        """Every audit by its model; by model and set, where there are several sets."""
        several = len({name for _, name, _ in self._named}) > 1
        return {f"{model}, {name}" if several else model: audit for model, name, audit in self._named}

    @property
    def sets_of_runs(self) -> dict[str, str]:
        """The question set of each of :attr:`runs`."""
        return dict(zip(self.runs, [name for _, name, _ in self._named], strict=True))

    @cached_property
    def _named(self) -> list[tuple[str, str, AuditResult]]:
        return named(self.audits)

    @property
    def provenance(self) -> Provenance:
        block = super().provenance
        unlike = [one for i, one in enumerate(block.models) if one not in block.models[:i]]
        return block.model_copy(update={"models": unlike})


def _correlations(entries: Sequence[BoardEntry]) -> tuple[PbmAccuracy, ...]:
    """Over all entries of a way to ask (PBM of probabilities and of replies are on other scales), and within."""
    parts: dict[tuple[str, str], list[BoardEntry]] = {}  # what is held fixed, and the way to ask
    for way in dict.fromkeys(entry.elicitation for entry in entries):
        points = [entry for entry in entries if entry.elicitation == way]
        parts["sets and models", way] = points
        if len({entry.model for entry in points}) > 1 and len({entry.questions for entry in points}) > 1:
            for entry in points:
                parts.setdefault((f"sets, {entry.model}", way), []).append(entry)
                parts.setdefault((f"models, {entry.questions}", way), []).append(entry)
    return tuple(
        PbmAccuracy(over, way, pbm_accuracy([entry.numbers for entry in part], of="points"))
        for (over, way), part in parts.items()
    )


MOST_REUSED = 0.1
"""Share of a model's prompts that may come from the store before what the others took says too little of all."""


@metric("ways.tokens", "tokens", "that go through the model", digits=0, unit="tokens", source="P1 table 2")
@metric("ways.saved", "tokens saved", "of those of all orders, each prompt alone", unit="share", source="P1 table 2")
@metric("ways.seconds", "seconds", "for all questions", digits=1, unit="seconds", source="P1 table 2")
def _ways(standing: Standing, audits: Iterable[AuditResult]) -> list[WayCost]:
    audits = list(audits)
    cost = sum((audit.cost for audit in audits), Cost())
    if cost.reused > MOST_REUSED * (cost.prompts + cost.reused):
        cost = Cost()  # what is left was spent on some of the prompts, but the rows are about all
    questions = sum(len(audit.scores) for audit in audits)
    no_pbm = Estimate.bare(0.0, standing["expected_accuracy"].n, "by construction: a vote does not depend on the order")
    seconds, plain, ran = cost.seconds or None, 0.0, ASKED
    if cost.tokens_baqckv:  # scored by our own engine
        plain, ran = float(cost.tokens_plain), TREE
        ways = {
            ONE: float(cost.tokens_ordinary) or plain * questions / cost.prompts,
            PLAIN: plain,
            CACHED: float(cost.tokens_baqckv),
            TREE: float(cost.tokens),
        }
    else:
        replies = sum((audit.run.replies for audit in audits), ChatCost())
        ways = {ONE: 0.0, ASKED: float(replies.input_tokens + replies.output_tokens) or float(cost.tokens)}
    return [
        WayCost(
            standing.model,
            way,
            standing["accuracy" if way == ONE else "vote_accuracy"],
            standing["pbm"] if way == ONE else no_pbm,
            tokens or None,
            1 - tokens / plain if tokens and plain and way != ONE else None,
            seconds if way == ran else seconds * tokens / cost.tokens if seconds and tokens else None,
            way == ran and seconds is not None,
        )
        for way, tokens in ways.items()
    ]


@dataclass(frozen=True, kw_only=True)
class BoardOptions:
    """Question sets, and what models are ranked by."""

    sets: Annotated[tuple[str, ...], Reach.PLACE] = ()
    """Question set: a file or a known set; repeat for each."""
    rank_by: Literal["mean", "vote"] = "mean"
    """Rank by the mean over orders (performance in a random order) or the vote (knowledge with the habit corrected)."""


class LeaderboardStudy(Study[AuditSettings]):
    """Rank several models on several question sets by their mean score over option orders, or by the vote over them.

    Audits every model on every set, one model at a time: ranks with their confidence sets next to the published ones,
    which models differ, PBM against accuracy, and the tokens and time of each way of computing it.

    With --log, ranks recorded audits: tables of `audit --responses`, one per model and set, or logs of other harnesses,
    where all logs of one model are one set. Files of the same questions are one set under any name.

    Examples:
      unslant leaderboard -m org/one -m org/two --sets arc.jsonl --sets mmlu.jsonl --html board.html
      unslant leaderboard --log one-arc.parquet two-arc.parquet
    """

    name = "leaderboard"
    settings = AuditSettings
    result = Leaderboard
    model = None
    inputs = BoardOptions
    generate = GenerateOptions
    of_logs = ("fields", "skip_bad")
    in_memory = True
    several = True

    def check(self, given: Given[AuditSettings]) -> None:
        if given.log and given.inputs.sets:
            raise InputError("--log reads recorded audits: leave out --sets")
        if not (given.log or given.models):
            raise InputError("no models: give some, as in: unslant leaderboard -m org/one -m org/two --sets FILE")

    def load(self, given: Given[AuditSettings]) -> list[QuestionSet[Question]]:
        sets = given.settings.load_each(list(given.inputs.sets) or given.questions)
        for one, other in combinations(sets, 2):
            if one.digest == other.digest:
                raise InputError(f"{one.name} and {other.name} have the same questions; give each set once")
        for settings in {one.elicit: one for one in self.settings_of_each(given)}.values():
            settings.writer()  # a way to ask and a set that are incompatible are refused before a model is opened
            for questions in sets:
                if not settings.in_words:
                    OrderDesign.of(questions, settings)
                    continue
                from unslant.auditing.words import plan

                plan(questions.questions, settings, settings.chooser(questions))
        return sets

    def measure(self, job: Job[AuditSettings]) -> Leaderboard:
        sets, given = job.questions, job.given
        every = QuestionSet.of(list(chain.from_iterable(sets)), ", ".join(one.name for one in sets))
        job.record.begin(", ".join(map(str, given.models)), every)

        def audits(place: int) -> list[AuditResult]:
            model, settings = job.open(place, (), *sets), job.settings[place]
            if not isinstance(given.models[place], str):  # what a function loads is known only now
                settings = given.settings.of_model(model)
            return [Audit().of_model(model, questions, settings, job.record) for questions in sets]

        return Leaderboard.of(chain.from_iterable(job.each_model(audits)), given.inputs.rank_by)

    def read(self, given: Given[AuditSettings]) -> Leaderboard:
        from unslant.auditing.comparison import recorded_audits

        audits = recorded_audits(given.log, given.settings.fields, given.settings.skip_bad)
        return Leaderboard.of(audits, given.inputs.rank_by)


@dataclass(frozen=True, kw_only=True)
class LeaderboardKeywords(Keywords, BoardOptions, GenerateOptions, AuditSettings):
    """Keywords of :func:`leaderboard`.

    Examples:
        >>> board = unslant.leaderboard(["prefers-a", "fair"], "embedded", limit=40)
        >>> [standing.model for standing in board.models]
        ['fair', 'prefers-a']
    """

    orders: str | int = "auto"  # type: ignore[assignment]


leaderboard = function(LeaderboardStudy(), LeaderboardKeywords, Leaderboard)

"""The result of a leaderboard: audits of several models on several sets, ranked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from unslant.arrays import Jsonable
from unslant.auditing.result import AuditResult
from unslant.errors import InputError
from unslant.experiment.result import StudyResult, write_tables
from unslant.metrics import Estimate, Measured, Numbers
from unslant.metrics.association import pbm_accuracy
from unslant.metrics.registry import metric
from unslant.models import ChatCost, Cost
from unslant.reports.escape import file_name
from unslant.responses.provenance import Provenance
from unslant.studies.leaderboard.ranking import KEYS, Neighbours, Pool, Standing, neighbours, standings

ONE, PLAIN, CACHED, TREE, ASKED = (
    "one order", "all orders, each prompt alone", "all orders, question-context cache", "all orders, prefix tree",
    "all orders, as asked",
)  # fmt: skip


@dataclass(frozen=True)
class Entry(Measured):
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
class Way(Jsonable):
    """What one way of computing the answers costs a model, over all sets (P1, table 2).

    One order is the published score; the others vote over all orders, so that their PBM is 0 by construction.

    Attributes:
        way: ``one order``, or how the vote over all orders is computed.
        tokens: that go through the model; None where the server does not tell. For one order, those of each prompt
            alone by the mean length of a prompt.
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
class Leaderboard(StudyResult):
    """Models ranked by their score whatever the order of options.

    Attributes:
        audits: of every model on every set.
        models: best first; on the sets that all models have, and their questions that all have answers to.
        chance: score of guessing, the mean over sets.
        neighbours: of each model and the next, whether they can be told apart.
        sets: set -> questions that count.
        left_out: sets that not all models have; they count in ``entries`` only.
        unpaired: model -> questions without an answer in every order; nobody's score includes them.
    """

    study = "leaderboard"
    unwritten = ("audits",)

    audits: tuple[AuditResult, ...]
    models: tuple[Standing, ...]
    chance: Estimate
    neighbours: tuple[Neighbours, ...]
    entries: tuple[Entry, ...]
    pbm_accuracy: tuple[PbmAccuracy, ...]
    ways: tuple[Way, ...]
    sets: Mapping[str, int]
    left_out: tuple[str, ...]
    unpaired: Mapping[str, int]

    @classmethod
    def of(cls, audits: Iterable[AuditResult]) -> Leaderboard:
        """Rank audits.

        Raises:
            InputError: if there is none, a model has one set twice, or no set is common to all models.
        """
        found = tuple(audits)
        by_model: dict[str, dict[str, AuditResult]] = {}
        for audit, model in zip(found, _names(found), strict=True):
            own, name = by_model.setdefault(model, {}), set_of(audit)
            if name in own:
                raise InputError(f"{model} on {name} is given twice; give each model and set once")
            own[name] = audit
        if not by_model:
            raise InputError("no models: give one or more")
        every = dict.fromkeys(name for own in by_model.values() for name in own)
        shared = [name for name in every if all(name in own for own in by_model.values())]
        if not shared:
            raise InputError(f"no question set is common to all of {', '.join(by_model)}")
        pool = Pool({model: [own[name] for name in shared] for model, own in by_model.items()})
        models = standings(pool)
        entries = [_entry(model, name, audit) for model, own in by_model.items() for name, audit in own.items()]
        return cls(
            found,
            models,
            pool.chance,
            neighbours(pool, models),
            tuple(entries),
            _correlations(entries),
            tuple(way for one in models for way in _ways(one, by_model[one.model].values())),
            dict(zip(shared, pool.sizes, strict=True)),
            tuple(name for name in every if name not in shared),
            pool.unpaired,
        )

    @property
    def parts(self) -> Sequence[AuditResult]:
        return self.audits

    @property
    def runs(self) -> dict[str, AuditResult]:
        """Every audit by its model; by model and set, where there are several sets."""
        several = len({set_of(audit) for audit in self.audits}) > 1
        named = zip(_names(self.audits), self.audits, strict=True)
        return {f"{model}, {set_of(audit)}" if several else model: audit for model, audit in named}

    @property
    def sets_of_runs(self) -> dict[str, str]:
        """The question set of each of :attr:`runs`."""
        return {name: set_of(audit) for name, audit in self.runs.items()}

    @property
    def provenance(self) -> Provenance:
        block = super().provenance
        unlike = [one for i, one in enumerate(block.models) if one not in block.models[:i]]
        return block.model_copy(update={"models": unlike})

    def to_parquet(self, path: str | Path) -> None:
        """Write one table of responses for each model and set, as ``NAME-MODEL-SET``, for ``--log``."""
        named = zip(_names(self.audits), self.audits, strict=True)
        write_tables({f"{file_name(model)}-{file_name(set_of(audit))}": audit for model, audit in named}, path)


def set_of(audit: AuditResult) -> str:
    """Name of the question set that was asked."""
    return audit.run.question_set


def _names(audits: Sequence[AuditResult]) -> list[str]:
    """Name of each audit's model: without its path, unless that would make two of one name."""
    full = [audit.run.model or "model" for audit in audits]
    short = {model: audit.name for model, audit in zip(full, audits, strict=True)}
    unlike = len(set(short.values())) == len(short)
    return [short[model] if unlike else model for model in full]


def _entry(model: str, name: str, audit: AuditResult) -> Entry:
    return Entry(model, name, "generate" if audit.replies else "labels", audit.metrics.means.only(*KEYS))


def _correlations(entries: Sequence[Entry]) -> tuple[PbmAccuracy, ...]:
    """Over all entries of a way to ask (PBM of probabilities and of replies are on other scales), and within."""
    found = []
    for how in dict.fromkeys(entry.elicitation for entry in entries):
        own = [entry for entry in entries if entry.elicitation == how]
        parts = {"sets and models": own}
        if len({entry.model for entry in own}) > 1 and len({entry.questions for entry in own}) > 1:
            for entry in own:
                for name in (f"sets, {entry.model}", f"models, {entry.questions}"):
                    parts.setdefault(name, [e for e in own if name in (f"sets, {e.model}", f"models, {e.questions}")])
        for over, some in parts.items():
            found.append(PbmAccuracy(over, how, pbm_accuracy([entry.numbers for entry in some], of="points")))
    return tuple(found)


@metric("ways.tokens", "tokens", "that go through the model", digits=0, unit="tokens", source="P1 table 2")
@metric("ways.saved", "tokens saved", "of those of all orders, each prompt alone", unit="share", source="P1 table 2")
@metric("ways.seconds", "seconds", "for all questions", digits=1, unit="seconds", source="P1 table 2")
def _ways(standing: Standing, audits: Iterable[AuditResult]) -> list[Way]:
    known = list(audits)
    cost = sum((audit.cost for audit in known), Cost())
    questions = sum(len(audit.scores) for audit in known)
    none = Estimate.bare(0.0, standing["expected_accuracy"].n, "by construction: a vote does not depend on the order")
    name, reported, voted = standing.model, standing["accuracy"], standing["vote_accuracy"]
    seconds = cost.seconds or None
    if not cost.tokens_baqckv:  # not scored by our own engine
        replies = sum((audit.run.replies for audit in known), ChatCost())
        tokens = float(replies.input_tokens + replies.output_tokens) or float(cost.tokens) or None
        return [
            Way(name, ONE, reported, standing["pbm"], None, None, None, False),
            Way(name, ASKED, voted, none, tokens, None, seconds, seconds is not None),
        ]
    plain = float(cost.tokens_plain)
    ways = {
        ONE: float(cost.tokens_ordinary) or plain * questions / cost.prompts,
        PLAIN: plain,
        CACHED: float(cost.tokens_baqckv),
        TREE: float(cost.tokens),
    }
    return [
        Way(
            name,
            way,
            reported if way == ONE else voted,
            standing["pbm"] if way == ONE else none,
            tokens or None,
            1 - tokens / plain if tokens and plain and way != ONE else None,
            seconds * tokens / cost.tokens if seconds and tokens else None,
            way == TREE and seconds is not None,
        )
        for way, tokens in ways.items()
    ]

"""Models ranked on the questions that all of them have answers to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from unslant.arrays import Bools, Floats, Jsonable, grouped
from unslant.auditing.result import AuditResult, same_questions
from unslant.experiment.comparison import mean_over_sets, ranks_of
from unslant.experiment.ranking import Ranks, rank_sets
from unslant.metrics import Bootstrap, Estimate, Measured, Numbers, Verdict, verdicts
from unslant.metrics.bootstrap import DIFFERENCE, SHARE, spread_answers
from unslant.metrics.estimate import BY_DESIGN, CONFIDENCE
from unslant.metrics.registry import bounds_of, metric
from unslant.metrics.sampling import LEAST_UNITS
from unslant.questions import Question
from unslant.questions.question import same_questions as same
from unslant.reports.numbers import listed

_NEGLIGIBLE = 1e-12
UNSURE = "unsure"
"""Key of the questions that each model is unsure of (:func:`~unslant.metrics.bootstrap.spread_answers`)."""
_UNSCORED = "no value on some set: shown in one order only, or nothing was answered"
NONE_SHARED = "the models with a score have no question in common"


class QuestionPool:
    """The questions of all sets, with each model's values.

    A set's questions are a stratum, and each set counts the same: a mean is that over sets of the mean over questions.

    Args:
        models: names.
        values: key of a metric of single questions -> (Q, models) values, nan where a model has none; and under
            :data:`UNSURE` 1 where a model does not settle on an option.
        score: key of the metric that models are ranked by.
        sets: (Q,) number of the set of each question, from 0; by default all are of one.
        subjects, contexts: of each question, of its set alone.
        across_subjects: whether intervals are for other subjects; see :class:`~unslant.metrics.Bootstrap`.

    Example::

        QuestionPool(["a", "b"], {"accuracy": np.array([[1.0, 0.0], [1.0, 1.0]])}, "accuracy")
    """

    def __init__(
        self,
        models: Sequence[str],
        values: Mapping[str, Floats],
        score: str,
        sets: Sequence[int] | None = None,
        subjects: Sequence[str] | None = None,
        contexts: Sequence[str] | None = None,
        across_subjects: bool = False,
    ) -> None:
        self.models, self.score, self._values = list(models), score, values
        questions = len(values[score])
        self._unsure = values.get(UNSURE, np.zeros((questions, len(models)))) == 1
        self._set = np.zeros(questions, np.intp) if sets is None else np.asarray(sets, np.intp)
        self.sizes = np.bincount(self._set).tolist()
        strata = [
            f"{s}\0{subject}" if subject or not across_subjects else ""  # one without a subject is drawn by itself
            for s, subject in zip(self._set, subjects or [""] * questions, strict=True)
        ]
        self.bootstrap = Bootstrap(
            questions, strata, contexts=contexts, across_subjects=across_subjects, sets=self._set.tolist()
        )
        self._largest: dict[str, Floats] = {}

    @classmethod
    def of(cls, audits: Mapping[str, Sequence[AuditResult]], keys: Sequence[str], score: str) -> QuestionPool:
        """The questions of audits.

        Args:
            audits: model -> its audits, of the same sets in the same order.
            keys: of the metrics of single questions to take.
        """
        sets: list[int] = []
        subjects: list[str] = []
        contexts: list[str] = []
        columns: dict[str, list[list[float]]] = {key: [[] for _ in audits] for key in (*keys, UNSURE)}
        for s, of_set in enumerate(zip(*audits.values(), strict=True)):
            ids = _common_ids(of_set)
            about = {
                name: about
                for audit, audit_ids in reversed(list(zip(of_set, ids, strict=True)))
                for name, *about in zip(audit_ids, audit.scores.subjects, audit.scores.contexts, strict=True)
            }
            names = list(dict.fromkeys(name for audit_ids in ids for name in audit_ids))
            single = len({context for _, context in about.values()}) == 1
            sets += [s] * len(names)
            subjects += [about[name][0] for name in names]
            contexts += ["" if single or not about[name][1] else f"{s}\0{about[name][1]}" for name in names]
            for m, (audit, audit_ids) in enumerate(zip(of_set, ids, strict=True)):
                # the few answers of a failed audit must not decide which questions count for the others
                failed = bool(audit.failure)
                known = {**audit.metrics.questions, UNSURE: spread_answers(audit.scores).astype(np.float64)}
                for key, of_key in columns.items():
                    by_id = {} if failed else dict(zip(audit_ids, known[key].tolist(), strict=True))
                    of_key[m] += [by_id.get(name, math.nan) for name in names]
        values = {key: np.array(rows, np.float64).T for key, rows in columns.items()}
        across = any(audit.run.settings.get("across_subjects") for of_model in audits.values() for audit in of_model)
        return cls(list(audits), values, score, sets, subjects, contexts, across)

    @property
    def unpaired(self) -> dict[str, int]:
        """Ranked model -> questions that it has no score for and another has."""
        scores = self._values[self.score]
        wanting = (np.isnan(scores) & np.isfinite(scores).any(axis=1, keepdims=True)).sum(axis=0)
        return {self.models[m]: int(wanting[m]) for m in self.usable(self.score) if wanting[m]}

    def values(self, key: str) -> Floats:
        """(Q, models) values, nan where a model with values in every set has none."""
        column = self._values[key]
        complete = np.isfinite(column[:, self.usable(key)]).all(axis=1, keepdims=True)
        return np.where(complete, column, np.nan)

    def usable(self, key: str) -> list[int]:
        """Places of the models with values in every set."""
        return [m for m, column in enumerate(self._values[key].T) if self._everywhere(np.isfinite(column))]

    def _everywhere(self, mask: Bools) -> bool:
        return bool(np.bincount(self._set, mask, len(self.sizes)).all())

    def _weights(self, mask: Bools) -> Floats:
        """(Q,) weights of the questions kept: those of each set sum to 1."""
        sizes = np.bincount(self._set, mask, len(self.sizes))
        return np.asarray(np.divide(mask, sizes[self._set], out=np.zeros(len(mask)), where=mask))

    def mean(
        self,
        values: Floats,
        bounds: tuple[float, float] = SHARE,
        confidence: float = CONFIDENCE,
        swings: bool = False,
        lacking: str = _UNSCORED,
        models: Sequence[int] = (),
    ) -> Estimate:
        """Mean over sets of (Q,) values of some models, with its interval; ``lacking`` says why there is none."""
        mask = np.isfinite(values)
        if not self._everywhere(mask):
            return Estimate.undefined(lacking)
        known, weights = np.nan_to_num(values), self._weights(mask)
        bootstrap = self.bootstrap.knowing(self._unsure[:, models].any(axis=1))
        mean = mean_over_sets(bootstrap, known, weights, self._set, bounds, confidence, swings)
        return mean.within(*bounds)  # values that a regression extends to all orders can lie outside

    def means(self, key: str) -> list[Estimate]:
        """The mean of each model, or why it has none."""
        usable = self.usable(key)
        return [
            self.mean(column, bounds_of(key), lacking=self._none_shared if m in usable else _UNSCORED, models=[m])
            for m, column in enumerate(self.values(key).T)
        ]

    @property
    def _none_shared(self) -> str:
        return NONE_SHARED + " on some set" * (len(self.sizes) > 1)

    @property
    def chance(self) -> Estimate:
        """Score of guessing, on the questions that count; it follows from their options, so it has no interval."""
        counts = np.isfinite(self.values(self.score)).any(axis=1)
        lacking = self._none_shared if self.usable(self.score) else _UNSCORED
        mean = self.mean(np.where(counts, np.fmax.reduce(self._values["chance"], axis=1), np.nan), lacking=lacking)
        return Estimate.bare(mean.value, mean.n, mean.note or BY_DESIGN)

    def pairs(self, key: str) -> list[tuple[int, int]]:
        """Places of every two models with values in every set that share a question on each of them."""
        usable = self.usable(key)
        mask = np.isfinite(self.values(key)[:, usable]).all(axis=1)
        return list(combinations(usable, 2)) if self._everywhere(np.asarray(mask)) else []

    def level(self, key: str, confidence: float) -> float:
        """Confidence of the interval of one pair's difference at which the intervals of all pairs hold together.

        The largest studentised deviation over all pairs is bootstrapped over the questions (max-t; Mogstad, Romano,
        Shaikh and Wilhelm 2024, "Inference for Ranks"). Differences of pairs that share a model, and of models that
        find the same questions hard, go together, so this is less strict than Bonferroni's level, which bounds it.
        """
        pairs = len(self.pairs(key))
        if pairs < 2:
            return confidence
        from scipy.special import ndtr

        if key not in self._largest:
            self._largest[key] = self._largest_deviations(key)
        largest = self._largest[key]
        quantile = float(np.quantile(largest, confidence)) if largest.size else math.inf  # Bonferroni's
        return min(1 - (1 - confidence) / pairs, max(confidence, 2 * float(ndtr(quantile)) - 1))

    def _largest_deviations(self, key: str) -> Floats:
        """(R,) the largest deviation of any pair's difference from its mean, in standard errors, in each resample.

        Empty where the common questions are too few to show how far they deviate.
        """
        values = self.values(key)[:, self.usable(key)]
        common = np.asarray(np.isfinite(values).all(axis=1))
        if self.bootstrap.sampling.units(common) < LEAST_UNITS:
            return np.empty(0)
        weights = self._weights(common)
        totals = self.bootstrap.totals(np.column_stack([np.nan_to_num(values) * weights[:, None], weights]))
        totals = totals[totals[:, -1] > 0]  # of few common questions some resamples have none
        means = totals[:, :-1] / totals[:, -1:]
        means = means - means.mean(axis=0)
        largest = np.zeros(len(means))
        for m in range(means.shape[1] - 1):  # a model at a time: the pairs of many at once would not fit in memory
            apart = means[:, m : m + 1] - means[:, m + 1 :]
            error = apart.std(axis=0)
            scaled = np.abs(apart[:, error > _NEGLIGIBLE]) / error[error > _NEGLIGIBLE]
            largest = np.maximum(largest, scaled.max(axis=1, initial=0.0))
        return largest


def named(audits: Sequence[AuditResult]) -> list[tuple[str, str, AuditResult]]:
    """Model, set, and audit.

    A model is named without its path, unless that would make two of one name. Sets of different names are joined where
    their questions are the same.
    """
    models = [audit.run.model or "model" for audit in audits]
    short = {model: audit.name for model, audit in zip(models, audits, strict=True)}
    if len(set(short.values())) == len(short):
        models = [short[model] for model in models]
    sets = grouped((audit.run.question_set, i) for i, audit in enumerate(audits))
    groups: list[tuple[list[str], list[int]]] = []
    for name, members in sets.items():
        for names, joined in groups:
            one, other = audits[members[0]], audits[joined[0]]
            apart = {models[i] for i in members}.isdisjoint(models[i] for i in joined)
            # without texts, ids alone do not show that a model was asked the same twice
            if (apart or (one.responses.questions and other.responses.questions)) and _same(one, other):
                names.append(name)
                joined += members
                break
        else:
            groups.append(([name], list(members)))
    set_of = {i: listed(names, 3) for names, members in groups for i in members}
    return [(models[i], set_of[i], audit) for i, audit in enumerate(audits)]


def _same(one: AuditResult, other: AuditResult) -> bool:
    """Whether two audits are of one set; a log's set may be named by its file alone, and some of it may be missing."""
    digests = one.run.questions_digest, other.run.questions_digest
    if all(digests):
        return digests[0] == digests[1]
    return 2 * len(same_questions(one, other)[0]) > min(len(one.scores), len(other.scores))


def _common_ids(audits: Sequence[AuditResult]) -> list[list[str]]:
    """The ids of each audit's questions, those of the first audit that has the same question.

    A question that only shares its id with another of an earlier audit gets another id.
    """
    known: dict[str, Question | int] = {}
    ids: list[list[str]] = []
    digest = audits[0].run.questions_digest
    for k, audit in enumerate(audits):
        if k and digest and audit.run.questions_digest == digest and [*audit.scores.ids] == ids[0]:
            ids.append(ids[0])  # to compare the texts of all models would take seconds
            continue
        questions = audit.responses.by_id(audit.scores.ids)
        common = {name: f"{name}\0{k}" if name in known else name for name in questions}
        common |= same(questions, known)
        known = {common[name]: question for name, question in questions.items()} | known
        ids.append([common[name] for name in audit.scores.ids])
    return ids


RANK_BY = {"mean": "expected_accuracy", "vote": "vote_accuracy"}
"""What models are ranked by -> key of the metric."""
KEYS = ("expected_accuracy", "accuracy", "vote_accuracy", "pbm")


@dataclass(frozen=True)
class Pair(Jsonable):
    """Two models, compared on the same questions.

    Attributes:
        higher, lower: names of the models, that of the higher score first.
        difference: higher minus lower, paired by question; the 95 % intervals of all pairs hold together.
        p: of "both are equally good", corrected for the number of all pairs (Holm 1979).
        differ: whether ``p`` is below 0.05 and the interval excludes 0.
        needed: questions that would probably settle which is better; None where settled, or no number can be named.
    """

    higher: str
    lower: str
    difference: Estimate
    p: float
    differ: bool
    needed: int | None

    @property
    def verdict(self) -> Verdict:
        """What may be said of the difference."""
        return Verdict("above" if self.differ else "unclear", self.difference, self.p, self.needed)


@dataclass(frozen=True)
class Standing(Measured):
    """One model: each of its numbers is the mean over sets of the mean over their common questions.

    Attributes:
        rank: by the score that is ranked by, 1 is best, equal scores share one; None without a score.
        ranks: lowest and highest rank of its confidence set; see :func:`~unslant.experiment.ranking.rank_sets`.
        mean_rank, vote_rank: by the mean over orders, and by the vote over them.
        published_rank: by ``accuracy``, the score in the order of the file.
        change: places gained from the published order to that by the score, negative if lost. Only models that are in
            both orders count: one that is in one alone moves nobody.
        changes: fewest and most places gained that the confidence sets of both ranks allow.
    """

    model: str
    rank: int | None
    ranks: Ranks | None
    mean_rank: int | None
    vote_rank: int | None
    published_rank: int | None
    change: int | None
    changes: Ranks | None
    numbers: Numbers


@metric("pairs.p", "p", "paired test that both models are equally good, corrected for the number of pairs", unit="p",
        source="Holm 1979")  # fmt: skip
def compared(pool: QuestionPool, key: str, confidence: float = CONFIDENCE) -> tuple[Pair, ...]:
    """Every two models with a score, compared on the questions of all.

    Two models differ where two corrections agree: Holm's, of the p-values of all pairs, and the simultaneous interval
    (:meth:`QuestionPool.level`), so that no pair is called different whose interval holds 0.
    """
    values, level = pool.values(key), pool.level(key, confidence)
    apart = {(a, b): values[:, a] - values[:, b] for a, b in pool.pairs(key)}
    alone = [pool.mean(differences, DIFFERENCE, confidence, models=pair) for pair, differences in apart.items()]
    rows = []
    for ((a, b), differences), test in zip(apart.items(), verdicts(alone), strict=True):
        wide = pool.mean(differences, DIFFERENCE, level, models=(a, b))
        together = replace(wide, confidence=confidence, method=f"{wide.method}, all pairs together")
        differ = test.differs and together.excludes(0.0)
        names = pool.models[a], pool.models[b]
        if together.value < 0:
            names, together = names[::-1], together.taken_from(0.0)
        rows.append(Pair(*names, together, test.p, differ, None if differ else test.needed))
    return tuple(rows)


def decided_pairs(pairs: Sequence[Pair]) -> list[tuple[str, str]]:
    """The better and the worse model of each pair that differs."""
    return [(pair.higher, pair.lower) for pair in pairs if pair.differ]


@metric("habit_price", "price of the habit", "vote minus mean over orders, same questions: what a random order costs",
        unit="difference")  # fmt: skip
def standings(pool: QuestionPool, pairs: Sequence[Pair]) -> tuple[Standing, ...]:
    """Every model, best first; those without a score last.

    Args:
        pairs: of the score that is ranked by.
    """
    scores = {key: pool.means(key) for key in KEYS}
    price = (pool.values("vote_accuracy") - pool.values("expected_accuracy")).T
    scores["habit_price"] = [
        pool.mean(column, DIFFERENCE, swings=True, lacking=score.note or _UNSCORED, models=[m])
        for m, (column, score) in enumerate(zip(price, scores["vote_accuracy"], strict=True))
    ]
    by = {key: ranks_of(scores[key]) for key in KEYS}
    ranked = [model for model, rank in zip(pool.models, by[pool.score], strict=True) if rank is not None]
    sets = rank_sets(ranked, decided_pairs(pairs))
    each = 1 - (1 - CONFIDENCE) / 2  # both sets hold with 95 %
    both = [m for m in range(len(pool.models)) if by[pool.score][m] is not None and by["accuracy"][m] is not None]
    names = [pool.models[m] for m in both]
    decided = (decided_pairs(compared(pool, key, each)) for key in ("accuracy", pool.score))
    before, now = (rank_sets(names, [pair for pair in of_key if {*pair} <= {*names}]) for of_key in decided)
    places = (ranks_of([scores[key][m] for m in both]) for key in ("accuracy", pool.score))
    moved = {m: (was or 0) - (now or 0) for m, was, now in zip(both, *places, strict=True)}
    gained = {name: (before[name][0] - now[name][1], before[name][1] - now[name][0]) for name in names}
    rows = [
        Standing(
            model,
            by[pool.score][m],
            sets.get(model),
            by["expected_accuracy"][m],
            by["vote_accuracy"][m],
            by["accuracy"][m],
            moved.get(m),
            gained.get(model),
            Numbers({key: values[m] for key, values in scores.items()}),
        )
        for m, model in enumerate(pool.models)
    ]
    return tuple(sorted(rows, key=lambda row: (row.rank is None, row.rank or 0)))

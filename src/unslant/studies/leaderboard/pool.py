"""The questions that models are ranked on, with the value of each model on each of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from unslant.arrays import Bools, Floats
from unslant.auditing.pairing import same_questions
from unslant.auditing.result import AuditResult
from unslant.metrics import Bootstrap, Estimate
from unslant.metrics.estimate import BY_DESIGN, CONFIDENCE

_NEGLIGIBLE = 1e-12


class Pool:
    """The questions of all sets, with each model's values.

    A set's questions are a stratum, and each set counts the same: a mean is that over sets of the mean over questions.

    Args:
        models: names.
        values: key of a metric of single questions -> (Q, models) values, nan where a model has none.
        score: key of the metric that models are ranked by.
        sets: (Q,) number of the set of each question, from 0; by default all are of one.
        subjects, contexts: of each question, of its set alone.

    Example::

        Pool(["a", "b"], {"accuracy": np.array([[1.0, 0.0], [1.0, 1.0]])}, "accuracy")
    """

    def __init__(
        self,
        models: Sequence[str],
        values: Mapping[str, Floats],
        score: str,
        sets: Sequence[int] | None = None,
        subjects: Sequence[str] | None = None,
        contexts: Sequence[str] | None = None,
    ) -> None:
        self.models, self.score, self._values = list(models), score, values
        questions = len(values[score])
        self._set = np.zeros(questions, np.intp) if sets is None else np.asarray(sets, np.intp)
        self.sizes = np.bincount(self._set).tolist()
        strata = [f"{s}\0{subject}" for s, subject in zip(self._set, subjects or [""] * questions, strict=True)]
        self.bootstrap = Bootstrap(questions, strata, contexts=contexts)
        self._largest: dict[str, Floats] = {}

    @classmethod
    def of(cls, audits: Mapping[str, Sequence[AuditResult]], keys: Sequence[str], score: str) -> Pool:
        """The questions of audits.

        Args:
            audits: model -> its audits, of the same sets in the same order.
            keys: of the metrics of single questions to take.
        """
        sets: list[int] = []
        subjects: list[str] = []
        contexts: list[str] = []
        columns: dict[str, list[list[float]]] = {key: [[] for _ in audits] for key in keys}
        for s, own in enumerate(zip(*audits.values(), strict=True)):
            ids = _common_ids(own)
            about = {
                name: about
                for audit, known in reversed(list(zip(own, ids, strict=True)))
                for name, *about in zip(known, audit.scores.subjects, audit.scores.contexts, strict=True)
            }
            names = list(dict.fromkeys(name for known in ids for name in known))
            single = len({context for _, context in about.values()}) == 1
            sets += [s] * len(names)
            subjects += [about[name][0] for name in names]
            contexts += ["" if single or not about[name][1] else f"{s}\0{about[name][1]}" for name in names]
            for m, (audit, known) in enumerate(zip(own, ids, strict=True)):
                for key in keys:
                    values = dict(zip(known, audit.metrics.questions[key].tolist(), strict=True))
                    columns[key][m] += [values.get(name, math.nan) for name in names]
        found = {key: np.array(rows, np.float64).T for key, rows in columns.items()}
        return cls(list(audits), found, score, sets, subjects, contexts)

    @property
    def unpaired(self) -> dict[str, int]:
        """Model -> questions that it has no score for and another has."""
        found = self._values[self.score]
        wanting = (np.isnan(found) & np.isfinite(found).any(axis=1, keepdims=True)).sum(axis=0)
        return {model: int(n) for model, n in zip(self.models, wanting, strict=True) if n}

    def values(self, key: str) -> Floats:
        """(Q, models) values, nan where a model with values in every set has none."""
        found = self._values[key]
        kept = np.isfinite(found[:, self.usable(key)]).all(axis=1, keepdims=True)
        return np.where(kept, found, np.nan)

    def usable(self, key: str) -> list[int]:
        """Places of the models with values in every set."""
        return [m for m, column in enumerate(self._values[key].T) if self._everywhere(np.isfinite(column))]

    def _everywhere(self, kept: Bools) -> bool:
        return bool(np.bincount(self._set, kept, len(self.sizes)).all())

    def _weights(self, kept: Bools) -> Floats:
        """(Q,) weights of the questions kept: those of each set sum to 1."""
        sizes = np.bincount(self._set, kept, len(self.sizes))
        result: Floats = np.divide(kept, sizes[self._set], out=np.zeros(len(kept)), where=kept)
        return result

    def mean(
        self, values: Floats, bounds: tuple[float, float] = (0.0, 1.0), confidence: float = CONFIDENCE
    ) -> Estimate:
        """Mean over sets of (Q,) values, with its interval."""
        kept = np.isfinite(values)
        if not self._everywhere(kept):
            return Estimate.undefined("no value on some set: shown in one order only, or nothing was answered")
        weights = self._weights(kept)
        return self.bootstrap.ratio(np.nan_to_num(values) * weights, weights, bounds=bounds, confidence=confidence)

    def p(self, values: Floats) -> float:
        """Two-sided p of "the mean over sets is 0"; nan for fewer than two questions."""
        kept = np.isfinite(values)
        n = int(kept.sum())
        if n < 2 or not self._everywhere(kept):
            return math.nan
        terms = np.nan_to_num(values) * self._weights(kept) * n / len(self.sizes)
        return float(self.bootstrap.sampling.student(terms[:, None], kept)[1][0])

    @property
    def chance(self) -> Estimate:
        """Score of guessing, on the questions that count; it follows from their options, so it has no interval."""
        counts = np.isfinite(self.values(self.score)).any(axis=1)
        found = self.mean(np.where(counts, np.fmax.reduce(self._values["chance"], axis=1), np.nan))
        return Estimate.bare(found.value, found.n, found.note or BY_DESIGN)

    def pairs(self, key: str) -> list[tuple[int, int]]:
        """Places of every two models with values in every set that share a question on each of them."""
        usable = self.usable(key)
        kept = np.isfinite(self.values(key)[:, usable]).all(axis=1)
        return list(combinations(usable, 2)) if self._everywhere(np.asarray(kept)) else []

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
        quantile = float(np.quantile(self._largest[key], confidence))
        return min(1 - (1 - confidence) / pairs, max(confidence, 2 * float(ndtr(quantile)) - 1))

    def _largest_deviations(self, key: str) -> Floats:
        """(R,) the largest deviation of any pair's difference from its mean, in standard errors, in each resample."""
        values = self.values(key)[:, self.usable(key)]
        weights = self._weights(np.asarray(np.isfinite(values).all(axis=1)))
        totals = self.bootstrap.totals(np.column_stack([np.nan_to_num(values) * weights[:, None], weights]))
        means = totals[:, :-1] / totals[:, -1:]
        means = means - means.mean(axis=0)
        largest = np.zeros(len(means))
        for m in range(means.shape[1] - 1):  # a model at a time: the pairs of many at once would not fit in memory
            apart = means[:, m : m + 1] - means[:, m + 1 :]
            error = apart.std(axis=0)
            scaled = np.abs(apart[:, error > _NEGLIGIBLE]) / error[error > _NEGLIGIBLE]
            largest = np.maximum(largest, scaled.max(axis=1, initial=0.0))
        return largest


def _common_ids(audits: Sequence[AuditResult]) -> list[list[str]]:
    """The ids of each audit's questions, those of the first audit for questions that are the same.

    A question that only shares its id with one of the first audit gets another id.
    """
    first, *others = audits
    ids = [list(first.scores.ids)]
    digest, known = first.run.questions_digest, set(ids[0])
    for k, audit in enumerate(others, start=1):
        own = list(audit.scores.ids)
        if not digest or audit.run.questions_digest != digest:
            rows, of_first = same_questions(audit, first)
            same = dict(zip(rows.tolist(), of_first.tolist(), strict=True))
            own = [
                ids[0][same[i]] if i in same else f"{name}\0{k}" if name in known else name
                for i, name in enumerate(own)
            ]
        ids.append(own)
    return ids

"""Audits paired with the first, question by question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np

from unslant.arrays import Ints
from unslant.auditing.matching import Audited, same_questions
from unslant.metrics import PairedDifference, paired_difference
from unslant.reports.numbers import count

SCORES = ("accuracy", "expected_accuracy", "vote_accuracy", "robust_accuracy")
MEASURES = (*SCORES, "consistency", "pbm")

T = TypeVar("T", bound=Audited)


def named(results: Sequence[T], files: Sequence[str] = ()) -> dict[str, T]:
    """Audits by model, with the file name (or a number) added where models share a name."""
    often = Counter(result.name for result in results)
    extra = files if len(set(files)) == len(results) else [str(i + 1) for i in range(len(results))]
    return {r.name if often[r.name] == 1 else f"{r.name} ({more})": r for r, more in zip(results, extra, strict=True)}


@dataclass(frozen=True)
class PairedAudits(Generic[T]):
    """Audits by name; the others are paired with the first."""

    runs: Mapping[str, T]

    @cached_property
    def base(self) -> tuple[str, T]:
        """The first audit."""
        return next(iter(self.runs.items()))

    @cached_property
    def differences(self) -> tuple[tuple[str, PairedDifference], ...]:
        """Run name and difference from the first run, for each measure defined on shared questions."""
        first = self.base[1]
        own = first.metrics.questions
        pairs = [
            (name, paired_difference(run.scores, first.scores, key, measures=(run.metrics.questions, own), rows=rows))
            for key in MEASURES
            for name, (run, rows) in self._same.items()
            if rows[0].size
        ]
        return tuple((name, pair) for name, pair in pairs if pair.difference.defined)

    @cached_property
    def _same(self) -> Mapping[str, tuple[T, tuple[Ints, Ints]]]:
        """Every other run, and the rows of the questions that the first has too, in its scores and the first's."""
        first = self.base[1]
        return {name: (run, same_questions(run, first)) for name, run in list(self.runs.items())[1:]}

    @property
    def remarks(self) -> list[str]:
        """What a difference has to be read with."""
        ways = {name: _way(run) for name, run in self.runs.items()}
        told = "; ".join(f"{name} by {way}" for name, way in ways.items())
        found = [f"Answers are told in different ways: {told}."] if len(set(ways.values())) > 1 else []
        ids = np.asarray(self.base[1].scores.ids)
        for name, (run, (at, base)) in self._same.items():
            if by_text := int((np.asarray(run.scores.ids)[at] != ids[base]).sum()):
                found.append(f"{name}: {by_text:,} of {count(len(at), 'question')} matched by text, not by id.")
        return found

    @property
    def unmatched(self) -> list[str]:
        """Runs without a question of the first."""
        return [name for name, (_, (at, _)) in self._same.items() if not at.size]


def _way(run: Audited) -> str:
    """How an answer was told: letters on a page and option texts on their own are two questions."""
    logged = run.responses.run.logged
    if logged and logged.scores == "texts":
        return "scores of option texts"
    return "scores of labels" if run.scores.is_scored else "words"

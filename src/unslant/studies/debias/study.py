"""The debiasing study: every method on every model and question set, against the model as it is (P1 sec. 4)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unslant.asking import ModelAsker, Progress, no_progress
from unslant.debias import Debiaser, Method, method_named
from unslant.errors import InputError
from unslant.models import Cost, ScoringModel
from unslant.presentations import parse_labels, question_rng
from unslant.prompts import Cloze
from unslant.questions import Question, QuestionSet
from unslant.studies.debias.measure_debiased import MEASURES, Measured, changes, listing_scores, measured
from unslant.studies.debias.result import DebiasResult, Entry, Spent, averages
from unslant.studies.debias.settings import DebiasSettings
from unslant.studies.options import with_options

PRIDE_DRAWS = 5


def debias_study(
    models: Sequence[ScoringModel | Callable[[], ScoringModel]],
    questions: Sequence[QuestionSet[Question]],
    settings: DebiasSettings | None = None,
    *,
    progress: Progress = no_progress,
    **options: Any,
) -> DebiasResult:
    """Measure every method on every model and set, by its answers to the questions listed in many orders.

    Methods that are trained, or look at right answers, are fitted on ``train``; without it, on half of each set (by
    seed), and everything is measured on the other half. Methods that estimate on the questions they answer (PriDe, the
    calibrated gray-box) do. With several sets, methods with a fit are also measured on the sets they were not
    fitted on.

    Args:
        models: loaded models, or functions that load one (used one after the other).
        questions: the sets; each needs a name of its own.
        settings, options: what is compared: a :class:`~unslant.studies.debias.settings.DebiasSettings`, its fields as
            keywords (``methods=["vote"]``, ...), or both. ``methods``: see :data:`unslant.debias.METHODS`; the
            undebiased model is always there. ``train``: files or loaded sets, one for each of ``questions``.

    Raises:
        InputError: on unknown methods, sets of the same name, or not one training set for each set.
        ModelError: if a method cannot work with a model.
    """
    told = with_options(DebiasSettings, settings, options)
    methods, seed = told.methods, told.seed
    chosen = [method_named(text) for text in dict.fromkeys(methods) if text != "none"]
    questions = [told.sampled(found) for found in questions]
    train = [found for source in told.train if (found := told.pool(source)) is not None]
    names = [found.name for found in questions]
    if len(set(names)) < len(names):
        raise InputError("two question sets have the same name; give each set once")
    if train and len(train) != len(questions):
        raise InputError(f"{len(train)} training sets for {len(questions)} question sets; give one for each")
    test, training = [list(found) for found in questions], [list(found) for found in train]
    if not train and any(method.held_out for method in chosen):
        halves = [_halves(found, seed) for found in test]
        training, test = [half for half, _ in halves], [half for _, half in halves]
    elicitation, alphabet = Cloze(told.writer()), parse_labels(told.labels)
    entries: list[Entry] = []
    labelled = list(zip(dict.fromkeys(text for text in methods if text != "none"), chosen, strict=True))
    for model in models:
        loaded = model() if callable(model) else model

        def asker(loaded: ScoringModel = loaded) -> ModelAsker:
            return ModelAsker(loaded, elicitation, alphabet, progress=progress)

        run = _Run(loaded.name, names, test, training, asker, told.orders, alphabet, seed, told.transfer, progress)
        entries += run.all(labelled)
    meta = {
        "study": "debias",
        "models": sorted({entry.model for entry in entries}),
        "questions": {name: len(found) for name, found in zip(names, test, strict=True)},
        "trained_on": {name: len(found) for name, found in zip(names, training, strict=False)},
        "settings": told.recorded("train", "transfer"),
    }
    return DebiasResult(
        tuple(entries),
        averages([entry for entry in entries if not entry.transferred]),
        averages([entry for entry in entries if entry.transferred]),
        meta,
    )


def _halves(questions: list[Question], seed: int) -> tuple[list[Question], list[Question]]:
    """To train on and to measure on: half and half, by seed and ids."""
    ids = sorted(question.id for question in questions)
    question_rng("", seed, "halves").shuffle(ids)
    first = set(ids[: len(ids) // 2])
    return [q for q in questions if q.id in first], [q for q in questions if q.id not in first]


@dataclass(frozen=True)
class _Run:
    """All methods on one model."""

    model: str
    names: list[str]
    test: list[list[Question]]
    training: list[list[Question]]
    asker: Callable[[], ModelAsker]
    orders: str
    alphabet: tuple[str, ...]
    seed: int
    transfer: bool
    progress: Progress

    def all(self, methods: Sequence[tuple[str, Method]]) -> list[Entry]:
        base: list[Measured] = []
        entries: list[Entry] = []
        for i in range(len(self.names)):
            entry, found = self._measured("none", method_named("none"), None, i, None)
            base.append(found)
            entries.append(entry)
        for text, method in methods:
            self.progress(f"{self.model}: {text}", 0, 1)
            for source in range(len(self.names)) if method.needs_fit else [None]:
                entries += self._method(text, method, source, base)
            self.progress(f"{self.model}: {text}", 1, 1)
        return entries

    def _method(self, text: str, method: Method, source: int | None, base: Sequence[Measured]) -> list[Entry]:
        """A method fitted once, and measured wherever it should be."""
        asker = self.asker()
        fit_on: list[Question] = []
        if source is not None:
            fit_on = (self.training if method.held_out else self.test)[source]
        before, started = asker.cost.copy(), time.perf_counter()
        debiaser = method.fit(asker, fit_on)
        fitting = asker.cost - before, time.perf_counter() - started
        entries = []
        try:
            for target in range(len(self.names)):
                if source is None or source == target or self.transfer:
                    entry, _ = self._measured(
                        text, method, source, target, base[target], asker=asker, debiaser=debiaser, fitting=fitting
                    )
                    if text.partition(":")[0] == "pride" and source == target:
                        entry = replace(entry, draws=self._draws(method, asker, target))
                    entries.append(entry)
        finally:
            debiaser.close()
        return entries

    def _measured(
        self,
        text: str,
        method: Method,
        source: int | None,
        target: int,
        base: Measured | None,
        *,
        asker: ModelAsker | None = None,
        debiaser: Debiaser | None = None,
        fitting: tuple[Cost, float] = (Cost(), 0.0),
    ) -> tuple[Entry, Measured]:
        asker = asker or self.asker()
        debiaser = debiaser or method.fit(asker, [])
        questions = self.test[target]
        before, started = asker.cost.copy(), time.perf_counter()
        debiaser.answer(questions)
        cost, seconds = asker.cost - before, time.perf_counter() - started
        scores = listing_scores(
            debiaser, questions, self.orders, self.alphabet, self.seed, invariant=method.order_invariant
        )
        found = measured(scores)
        if source == target and not method.held_out:
            cost = Cost(cost.tokens + fitting[0].tokens, prompts=cost.prompts + fitting[0].prompts)
        size = len(questions)
        entry = Entry(
            self.model,
            self.names[target],
            text,
            "" if source is None else self.names[source],
            source is not None and source != target,
            found.estimates,
            changes(found, base) if base else {},
            Spent(
                cost.tokens / size, cost.prompts / size, seconds / size,
                fitting[0].tokens, fitting[0].prompts, fitting[1],
            ),
            notes=debiaser.notes(questions),
        )  # fmt: skip
        return entry, found

    def _draws(self, method: Any, asker: ModelAsker, target: int) -> dict[str, tuple[float, float]]:
        """Mean and standard deviation of every measure over draws of the estimation questions."""
        rows = []
        for draw in range(PRIDE_DRAWS):
            debiaser = replace(method, seed=method.seed + draw).fit(asker, self.test[target])
            scores = listing_scores(debiaser, self.test[target], self.orders, self.alphabet, self.seed)
            rows.append({name: e.value for name, e in measured(scores, resamples=2).estimates.items()})
        values = {name: [row[name] for row in rows] for name in MEASURES}
        return {name: (float(np.mean(v)), float(np.std(v, ddof=1))) for name, v in values.items()}

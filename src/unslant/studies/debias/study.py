"""The debiasing study: every method on every model and question set (P1 sec. 4)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from typing import Any

import numpy as np

from unslant.asking import Progress, elicitation_of, no_progress
from unslant.debiasing import Debiaser, Method, method_named
from unslant.debiasing.asker import ModelAsker
from unslant.errors import InputError
from unslant.metrics import OrderScores
from unslant.models import Cost, ScoringModel, facts_of
from unslant.models.open import opened
from unslant.models.stored import StoredModel
from unslant.presentations import parse_labels, question_rng
from unslant.questions import EMBEDDED, Question
from unslant.responses import Run
from unslant.responses.provenance import Provenance
from unslant.studies.debias.measure_debiased import MEASURES, Measured, changes, listing_scores, measured
from unslant.studies.debias.result import DebiasResult, Entry, Spent, averages, transfers
from unslant.studies.debias.settings import DebiasSettings
from unslant.studies.options import with_options
from unslant.studies.provenance_block import model_block, provenance

PRIDE_DRAWS = 5


def debias_study(
    models: str | ScoringModel | Sequence[str | ScoringModel | Callable[[], ScoringModel]],
    questions: Any = EMBEDDED,
    settings: DebiasSettings | None = None,
    *,
    progress: Progress = no_progress,
    **options: Any,
) -> DebiasResult:
    """Measure every method on every model and set by its answers to the questions listed in many orders.

    Methods that are trained or use right answers are fitted on ``train``; without it, on a random half of each set,
    with everything measured on the other half. PriDe and the calibrated gray-box estimate on the questions they answer.
    With several sets, fitted methods are also measured on the other sets.

    Args:
        models: names, loaded models, or functions that load one, used one after the other.
        questions: whatever :func:`unslant.load_questions` takes, or a list of such, with distinct names.
        settings, options: a :class:`~unslant.studies.debias.settings.DebiasSettings`, its fields as keywords, or both.
            ``methods``: see :data:`unslant.debiasing.METHODS`; the undebiased model is always included.
            ``train``: files or loaded sets, one for each of ``questions``.

    Raises:
        InputError: on unknown methods, duplicate names, or a wrong number of training sets.
        ModelError: if a method does not support a model.
    """
    chosen = with_options(DebiasSettings, settings, options)
    methods = {text: method_named(text) for text in chosen.methods if text != "none"}
    needs = ("score", "attend") if any(method.needs_model for method in methods.values()) else ("score",)
    sets = chosen.load_each(questions)
    train = [found for source in chosen.train if (found := chosen.pool(source)) is not None]
    names = [found.name for found in sets]
    if train and len(train) != len(sets):
        raise InputError(f"{len(train)} training sets for {len(sets)} question sets; give one for each")
    test, training = [list(found) for found in sets], [list(found) for found in train]
    if not train and any(method.held_out for method in methods.values()):
        halves = [_halves(found, chosen.seed) for found in test]
        training, test = [half for half, _ in halves], [half for _, half in halves]
    writer, alphabet = chosen.writer(), parse_labels(chosen.labels)
    told = [chosen.recorded("train", "methods"), [found.digest for found in [*sets, *train]], len(training)]
    design = blake2b(json.dumps(told, default=str).encode(), digest_size=16).hexdigest()
    entries: list[Entry] = []
    asked: list[dict[str, Any]] = []
    for model in models if isinstance(models, list | tuple) else [models]:
        loaded = opened(model, needs)
        asked.append(model_block(loaded.name, facts_of(loaded)))
        asker = partial(ModelAsker, loaded, elicitation_of(loaded, writer), alphabet, progress=progress)
        entries += _Run(loaded, design, names, test, training, asker, chosen, alphabet, progress).all(methods)
    run = Run(
        study="debias",
        models=tuple(sorted({entry.model for entry in entries})),
        questions=", ".join(names),
        settings=json.loads(json.dumps(chosen.recorded("train", "transfer"))),
        provenance=Provenance.model_validate(provenance(asked, sets, chosen)),
    )
    return DebiasResult(
        tuple(entries),
        averages([entry for entry in entries if not entry.transferred]),
        transfers([entry for entry in entries if entry.transferred]),
        {name: len(found) for name, found in zip(names, test, strict=True)},
        {name: len(found) for name, found in zip(names, training, strict=False)},
        run,
    )


def _halves(questions: list[Question], seed: int) -> tuple[list[Question], list[Question]]:
    """Random halves for training and measuring, by seed and ids."""
    ids = sorted(question.id for question in questions)
    question_rng("", seed, "halves").shuffle(ids)
    first = set(ids[: len(ids) // 2])
    return [q for q in questions if q.id in first], [q for q in questions if q.id not in first]


@dataclass(frozen=True)
class _Run:
    """All methods on one model.

    Attributes:
        design: digest of all that decides what is asked, but for the methods.
    """

    asked: ScoringModel
    design: str
    names: list[str]
    test: list[list[Question]]
    training: list[list[Question]]
    open_asker: Callable[[], ModelAsker]
    settings: DebiasSettings
    alphabet: tuple[str, ...]
    progress: Progress

    @property
    def model(self) -> str:
        return self.asked.name

    def asker(self, purpose: str) -> ModelAsker:
        """One that recalls nothing but what the same study asked for the same purpose, so that its cost is its own."""
        if isinstance(self.asked, StoredModel):
            self.asked.purpose = f"study debias {self.design}: {purpose}"
        return self.open_asker()

    def clock(self) -> float:
        """Seconds taken so far; what scores from the store once took is part of them."""
        recalled = 0.0
        if isinstance(self.asked, StoredModel):
            recalled = self.asked.cost.seconds - self.asked.model_asked.cost.seconds
        return time.perf_counter() + recalled

    def all(self, methods: Mapping[str, Method]) -> list[Entry]:
        undebiased = [self._measured("none", method_named("none"), None, i, None) for i in range(len(self.names))]
        entries, base = [entry for entry, _ in undebiased], [found for _, found in undebiased]
        for text, method in methods.items():
            self.progress(f"{self.model}: {text}", 0, 1)
            for source in range(len(self.names)) if method.needs_fit else [None]:
                entries += self._method(text, method, source, base)
            self.progress(f"{self.model}: {text}", 1, 1)
        return entries

    def _method(self, text: str, method: Method, source: int | None, base: Sequence[Measured]) -> list[Entry]:
        """Fit a method once, and measure it on every set it applies to."""
        asker = self.asker(text if source is None else f"{text} fitted on {self.names[source]}")
        fit_on: list[Question] = []
        if source is not None:
            fit_on = (self.training if method.held_out else self.test)[source]
        before, started = asker.cost.copy(), self.clock()
        debiaser = method.fit(asker, fit_on)
        fitting = asker.cost - before, self.clock() - started
        entries = []
        try:
            for target in range(len(self.names)):
                if source is None or source == target or self.settings.transfer:
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
        asker = asker or self.asker(f"{text} on {self.names[target]}")
        debiaser = debiaser or method.fit(asker, [])
        questions = self.test[target]
        before, started = asker.cost.copy(), self.clock()
        debiaser.answer(questions)
        cost, seconds = asker.cost - before, self.clock() - started
        invariant = method.order_invariant
        found = measured(self._listed(debiaser, target, invariant), invariant=invariant)
        if source == target and not method.held_out:
            cost = Cost(cost.tokens + fitting[0].tokens, prompts=cost.prompts + fitting[0].prompts)
            seconds += fitting[1]
        size = len(questions)
        entry = Entry(
            self.model,
            self.names[target],
            text,
            "" if source is None else self.names[source],
            source is not None and source != target,
            found.estimates,
            changes(found, base) if base else {},
            found.constructed,
            Spent(
                cost.tokens / size, cost.prompts / size, seconds / size,
                fitting[0].tokens, fitting[0].prompts, fitting[1],
            ),
            chance=found.chance,
            notes=debiaser.notes(questions),
        )  # fmt: skip
        return entry, found

    def _listed(self, debiaser: Debiaser, target: int, invariant: bool = False) -> OrderScores:
        orders, seed = self.settings.orders, self.settings.seed
        return listing_scores(debiaser, self.test[target], orders, self.alphabet, seed, invariant=invariant)

    def _draws(self, method: Any, asker: ModelAsker, target: int) -> dict[str, tuple[float, float]]:
        """Mean and standard deviation of every measure over draws of the estimation questions."""
        rows = []
        for draw in range(PRIDE_DRAWS):
            debiaser = replace(method, seed=method.seed + draw).fit(asker, self.test[target])
            scores = self._listed(debiaser, target)
            rows.append({name: e.value for name, e in measured(scores, resamples=2).estimates.items()})
        values = {name: [row[name] for row in rows] for name in MEASURES}
        return {name: (float(np.mean(v)), float(np.std(v, ddof=1))) for name, v in values.items()}

"""The debiasing study: every method on every model and question set (P1 sec. 4)."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from typing import Any

import numpy as np

from unslant.asking import Progress, elicitation_of, no_progress
from unslant.debiasing import Debiaser, Method, method_named
from unslant.debiasing.asker import ModelAsker
from unslant.debiasing.base import counted_reasons
from unslant.errors import InputError, ModelError
from unslant.experiment.options import with_options
from unslant.experiment.provenance_block import model_block, provenance
from unslant.models import Cost, ScoringModel, facts_of
from unslant.models.open import opened
from unslant.models.stored import StoredModel
from unslant.presentations import parse_labels, question_rng
from unslant.questions import EMBEDDED, Question
from unslant.responses import Run
from unslant.responses.provenance import Provenance
from unslant.studies.debias.measure_debiased import (
    MEASURES,
    Listings,
    Measured,
    answer_listings,
    changes,
    measured,
)
from unslant.studies.debias.result import DebiasResult, Entry, Missing, Spent, averages, transfers
from unslant.studies.debias.settings import DebiasSettings

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

    A method that cannot be fitted, or needs a package that is not installed, is among the ``missing`` of the result
    with the reason; the others give their results. Questions that a method cannot take are counted in its entry, and it
    is compared with the undebiased model over the questions that both answered.

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
        InputError: on unknown methods, duplicate names, a wrong number of training sets, or if no method has results.
        ModelError: if a model cannot be loaded or asked.
    """
    chosen = with_options(DebiasSettings, settings, options)
    methods, missing = _installed(chosen.methods)
    sets = chosen.load_each(questions)
    train = [found for source in chosen.train if (found := chosen.pool(source)) is not None]
    names = [found.name for found in sets]
    if train and len(train) != len(sets):
        raise InputError(f"{len(train)} training sets for {len(sets)} question sets; give one for each")
    test, training = [list(found) for found in sets], [list(found) for found in train]
    if not train and any(method.held_out for method in methods.values()):
        halves = [_halves(found, chosen.seed) for found in test]
        training, test = [half for half, _ in halves], [half for _, half in halves]
    if train and not any(method.held_out for method in methods.values()):
        raise InputError("none of the methods is fitted on other questions: leave out --train (train=)")
    writer, alphabet = chosen.writer(), parse_labels(chosen.labels)
    told = [chosen.recorded("train", "methods"), [found.digest for found in [*sets, *train]], len(training)]
    design = blake2b(json.dumps(told, default=str).encode(), digest_size=16).hexdigest()
    entries: list[Entry] = []
    asked: list[dict[str, Any]] = []
    for model in models if isinstance(models, list | tuple) else [models]:
        loaded = opened(model)
        asked.append(model_block(loaded.name, facts_of(loaded)))
        asker = partial(ModelAsker, loaded, elicitation_of(loaded, writer), alphabet, progress=progress)
        one = _Run(loaded, design, names, test, training, asker, chosen, alphabet, progress)
        entries += one.all(methods)
        missing += one.missing
    if missing and not any(entry.change for entry in entries):
        raise InputError("; ".join(map(str, missing)))
    made = Run(
        study="debias",
        models=tuple(sorted({entry.model for entry in entries})),
        questions=", ".join(names),
        settings=json.loads(json.dumps(chosen.recorded("train", "no_transfer"))),
        provenance=Provenance.model_validate(provenance(asked, sets, chosen)),
    )
    return DebiasResult(
        tuple(entries),
        averages([entry for entry in entries if not entry.transferred]),
        transfers([entry for entry in entries if entry.transferred]),
        {name: len(found) for name, found in zip(names, test, strict=True)},
        {name: len(found) for name, found in zip(names, training, strict=False)},
        made,
        tuple(missing),
    )


def _installed(names: Sequence[str]) -> tuple[dict[str, Method], list[Missing]]:
    """The methods by name, without those that need a package that is not installed."""
    methods: dict[str, Method] = {}
    missing = []
    for text in names:
        if text == "none":
            continue
        try:
            methods[text] = method_named(text)
            methods[text].check_installed()
        except ModelError as error:
            methods.pop(text, None)
            missing.append(Missing("all models", text, "", str(error)))
            warnings.warn(f"{text} is left out: {error}", stacklevel=3)
    return methods, missing


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
        missing: methods without results, so far.
        undebiased: by set and questions, what methods are compared with.
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
    missing: list[Missing] = field(default_factory=list)
    undebiased: dict[tuple[int, frozenset[str]], Measured] = field(default_factory=dict)

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
        entries, base = [entry for entry, _ in undebiased if entry], [found for _, found in undebiased]
        for text, method in methods.items():
            self.progress(f"{self.model}: {text}", 0, 1)
            for source in range(len(self.names)) if method.needs_fit else [None]:
                entries += self._method(text, method, source, base)
            self.progress(f"{self.model}: {text}", 1, 1)
        return entries

    def _method(self, text: str, method: Method, source: int | None, base: Sequence[Listings]) -> list[Entry]:
        """Fit a method once, and measure it on every set it applies to."""
        asker = self.asker(text if source is None else f"{text} fitted on {self.names[source]}")
        fit_on: list[Question] = []
        if source is not None:
            fit_on = (self.training if method.held_out else self.test)[source]
        before, started = asker.cost.copy(), self.clock()
        try:
            debiaser = method.fitted(asker, fit_on)
        except (InputError, ModelError) as error:
            self._miss(text, "" if source is None else self.names[source], str(error))
            return []
        fitting = asker.cost - before, self.clock() - started
        entries: list[Entry] = []
        try:
            for target in range(len(self.names)):
                if source is None or source == target or not self.settings.no_transfer:
                    entry, _ = self._measured(
                        text, method, source, target, base[target], asker=asker, debiaser=debiaser, fitting=fitting
                    )
                    if entry and text.partition(":")[0] == "pride" and source == target:
                        entry = replace(entry, draws=self._draws(method, asker, target))
                    if entry:
                        entries.append(entry)
        finally:
            debiaser.close()
        return entries

    def _miss(self, text: str, questions: str, reason: str) -> None:
        self.missing.append(Missing(self.model, text, questions, reason))

    def _measured(
        self,
        text: str,
        method: Method,
        source: int | None,
        target: int,
        base: Listings | None,
        *,
        asker: ModelAsker | None = None,
        debiaser: Debiaser | None = None,
        fitting: tuple[Cost, float] = (Cost(), 0.0),
    ) -> tuple[Entry | None, Listings]:
        """The entry of a method on a set, if it answered any question there, and its answers."""
        asker = asker or self.asker(f"{text} on {self.names[target]}")
        debiaser = debiaser or method.fitted(asker)
        questions = self.test[target]
        before, started = asker.cost.copy(), self.clock()
        size = sum(one.choice >= 0 for one in debiaser.answer(questions))
        cost, seconds = asker.cost - before, self.clock() - started
        invariant = method.order_invariant
        listings = self._listed(debiaser, target, invariant)
        both = listings.answered if base is None else listings.answered & base.answered
        if not both:
            self._miss(text, self.names[target], counted_reasons(listings.left_out))
            return None, listings
        found = measured(listings.scores(), invariant=invariant)
        change = {}
        if base is not None:
            paired = found if both == listings.answered else measured(listings.scores(both), invariant=invariant)
            if (target, both) not in self.undebiased:
                self.undebiased[target, both] = measured(base.scores(both))
            change = changes(paired, self.undebiased[target, both])
        if source == target and not method.held_out:
            cost = Cost(cost.tokens + fitting[0].tokens, prompts=cost.prompts + fitting[0].prompts)
            seconds += fitting[1]
        entry = Entry(
            self.model,
            self.names[target],
            text,
            "" if source is None else self.names[source],
            source is not None and source != target,
            found.estimates,
            change,
            found.constructed,
            Spent(
                cost.tokens / size, cost.prompts / size, seconds / size,
                fitting[0].tokens, fitting[0].prompts, fitting[1],
            ),
            chance=found.chance,
            asked=len(questions),
            left_out=listings.left_out,
            notes=debiaser.notes(questions),
        )  # fmt: skip
        return entry, listings

    def _listed(self, debiaser: Debiaser, target: int, invariant: bool = False) -> Listings:
        orders, seed = self.settings.orders, self.settings.seed
        return answer_listings(debiaser, self.test[target], orders, self.alphabet, seed, invariant=invariant)

    def _draws(self, method: Any, asker: ModelAsker, target: int) -> dict[str, tuple[float, float]]:
        """Mean and standard deviation of every measure over draws of the estimation questions."""
        rows = []
        for draw in range(PRIDE_DRAWS):
            debiaser = replace(method, seed=method.seed + draw).fitted(asker, self.test[target])
            scores = self._listed(debiaser, target).scores()
            rows.append({name: e.value for name, e in measured(scores, resamples=2).estimates.items()})
        values = {name: [row[name] for row in rows] for name in MEASURES}
        return {name: (float(np.mean(v)), float(np.std(v, ddof=1))) for name, v in values.items()}

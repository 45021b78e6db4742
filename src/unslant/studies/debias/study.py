"""The debiasing study: every method on every model and question set (P1 sec. 4)."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from typing import Any

import numpy as np

from unslant.arrays import grouped
from unslant.asking import Progress, elicitation_of
from unslant.debiasing import method_named
from unslant.debiasing.asker import ModelAsker
from unslant.debiasing.base import Debiaser, Method, check_apart, counted_reasons
from unslant.errors import InputError, ModelError, MostlyFailedError
from unslant.experiment import ReportOptions, sources_in
from unslant.experiment.job import Given, Job, provenance
from unslant.experiment.study import Keywords, Study, function
from unslant.models import Cost, ScoringModel, facts_of
from unslant.models.stored import StoredModel
from unslant.presentations import check_labels, parse_labels, question_rng
from unslant.presentations.orders import wording
from unslant.questions import Question, QuestionSet
from unslant.responses import Run
from unslant.responses.provenance import model_block
from unslant.studies.debias.measure_debiased import (
    MEASURES,
    Listings,
    MethodMeasures,
    PairedValues,
    answer_listings,
    changes,
    measured,
)
from unslant.studies.debias.result import DebiasResult, MethodEntry, Missing, Spent, averages, transfers
from unslant.studies.debias.settings import DebiasSettings

PRIDE_DRAWS = 5


class DebiasStudy(Study[DebiasSettings]):
    """Compare debiasing methods by bias, accuracy, cost and transfer to other questions.

    Measures every method on every model and set, by its answers to the questions listed in many orders. Methods that
    are trained or use right answers are fitted on --train; without it, on a random half of each set, and everything
    is measured on the other half. With several sets, fitted methods are also measured on the other sets. A method
    that cannot be fitted, or needs a package that is not installed, is listed with the reason; the others give their
    results.

    Scores are stored as they arrive, separately for each method, so that its cost is its own; to resume, repeat the
    command.

    Examples:
      unslant study debias org/name questions.jsonl --train other.jsonl --json numbers.json
      unslant study debias prefers-a,fair embedded --methods vote,pride,lora-1
    """

    name = "debias"
    settings = DebiasSettings
    result = DebiasResult
    outputs = ReportOptions
    of_logs = None
    several = True
    in_commas = True

    def check(self, given: Given[DebiasSettings]) -> None:
        methods, missing = _installed(given.settings.methods)
        if missing and not methods:
            raise ModelError("; ".join(map(str, missing)))

    def needs(self, settings: DebiasSettings) -> tuple[str, ...]:
        # If any method works without the model's inside, those that do not are only reported as missing.
        return ("score", "attend") if _all_inside(_installed(settings.methods)[0]) else ("score",)

    def load(self, given: Given[DebiasSettings]) -> list[QuestionSet[Question]]:
        sources = given.questions
        return given.settings.load_each(
            [name.strip() for name in sources.split(",")] if isinstance(sources, str) else sources
        )

    def measure(self, job: Job[DebiasSettings]) -> DebiasResult:
        sets, settings = job.questions, job.given.settings
        methods, missing = _installed(settings.methods)
        for absent in missing:
            warnings.warn(f"{absent.method} is left out: {absent.reason}", stacklevel=2)
        sources = sources_in(settings.train)
        train = [pool for source in sources if (pool := settings.pool(source)) is not None]
        if not all(isinstance(source, str) for source in sources):  # in memory: named, and not written out
            settings = replace(settings, train=tuple(pool.name for pool in train))
        names = [one.name for one in sets]
        held_out = any(method.held_out for method in methods.values())
        if train and len(train) != len(sets):
            raise InputError(f"{len(train)} training sets for {len(sets)} question sets; give one for each")
        if train and not held_out:
            raise InputError("none of the methods is fitted on other questions: leave out --train")
        test, training = [list(one) for one in sets], [list(one) for one in train]
        if held_out and not train:
            halves = [_halves(questions, settings.seed) for questions in test]
            training, test = [half for half, _ in halves], [half for _, half in halves]
            measured_on = {wording(question) for questions in test for question in questions}  # sets may overlap
            training = [[q for q in questions if wording(q) not in measured_on] for questions in training]
        for fit_on, questions in zip(training, test, strict=False):  # without --train, no set has any
            check_apart("a method", fit_on, questions)
        writer, alphabet = settings.writer(), parse_labels(settings.labels)
        check_labels(alphabet, (question for one in (*test, *training) for question in one))
        facts = [settings.recorded("train", "methods"), [one.digest for one in [*sets, *train]], len(training)]
        design = blake2b(json.dumps(facts, default=str).encode(), digest_size=16).hexdigest()
        entries: list[MethodEntry] = []
        blocks: list[dict[str, Any]] = []

        def debias_model(place: int) -> None:
            model = job.open(place, ("score",), *sets)
            if _all_inside(methods) and "attend" not in model.info.can:
                names_of = ", ".join(method.name for method in methods.values())
                raise InputError(f"{names_of} works inside the model: give a loaded model, which {model.name} is not")
            asker = partial(ModelAsker, model, elicitation_of(model, writer), alphabet, progress=job.progress)
            one = _Run(model, design, names, test, training, asker, settings, alphabet, job.progress)
            one.all(methods)
            if "attend" in model.info.can:
                model.identify()  # the store knows it as the last method changed it; the methods have restored it
            blocks.append(model_block(model.name, facts_of(model)))
            entries.extend(one.entries)
            missing.extend(one.missing)

        job.each_model(debias_model)
        if not entries:
            raise InputError("; ".join(map(str, missing)))
        run = Run(
            study="debias",
            models=tuple(sorted({entry.model for entry in entries})),
            questions=", ".join(names),
            settings=json.loads(json.dumps(settings.recorded("train", "no_transfer"))),
            provenance=provenance(blocks, sets, settings),
        )
        return DebiasResult(
            tuple(entries),
            averages([entry for entry in entries if not entry.transferred]),
            transfers([entry for entry in entries if entry.transferred]),
            {name: len(questions) for name, questions in zip(names, test, strict=True)},
            {name: len(questions) for name, questions in zip(names, training, strict=False)},
            run,
            tuple(missing),
        )


@dataclass(frozen=True, kw_only=True)
class DebiasKeywords(Keywords, DebiasSettings):
    """Keywords of :func:`debias`.

    Examples:
        >>> result = unslant.study.debias("prefers-a", "embedded", methods="vote,pride", limit=40)
        >>> sorted(result.average)
        ['pride', 'vote']
    """

    orders: str | int = "auto"  # type: ignore[assignment]


debias = function(DebiasStudy(), DebiasKeywords, DebiasResult)


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
    return methods, missing


def _all_inside(methods: Mapping[str, Method]) -> bool:
    """Whether no method can do without the model's inside."""
    return bool(methods) and all(method.needs_model for method in methods.values())


def _halves(questions: list[Question], seed: int) -> tuple[list[Question], list[Question]]:
    """Random halves for training and measuring, by seed and ids, so that they do not depend on the file's order.

    Questions of one passage stay together, as a method must not be fitted on the passages that it is measured on. Where
    one passage covers everything, questions count on their own.
    """
    alone = len({question.context for question in questions}) == 1
    by_id = sorted(questions, key=lambda question: question.id)
    units = grouped((("", one.id) if alone or not one.context else (one.context, ""), one.id) for one in by_id)
    groups = [*units.values()]
    question_rng("", seed, "halves").shuffle(groups)
    first: set[str] = set()
    for group in groups:
        if len(first) + len(group) <= len(questions) // 2:
            first.update(group)
    return [q for q in questions if q.id in first], [q for q in questions if q.id not in first]


@dataclass(frozen=True)
class _Fitted:
    """A method (``text`` is its name with settings) fitted on the set ``source``, and what the fit cost."""

    text: str
    method: Method
    source: int | None
    asker: ModelAsker
    debiaser: Debiaser
    cost: Cost
    seconds: float


@dataclass(frozen=True)
class _Run:
    """All methods on one model.

    Attributes:
        design: digest of everything, except the methods, that determines the prompts.
        entries, missing: results, and methods without any, so far.
        undebiased: by set and questions, what methods are compared with.
    """

    scorer: ScoringModel
    design: str
    names: list[str]
    test: list[list[Question]]
    training: list[list[Question]]
    open_asker: Callable[[], ModelAsker]
    settings: DebiasSettings
    alphabet: tuple[str, ...]
    progress: Progress
    entries: list[MethodEntry] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)
    undebiased: dict[tuple[int, frozenset[str]], MethodMeasures] = field(default_factory=dict)

    def asker(self, purpose: str) -> ModelAsker:
        """A new asker, to which the store gives only scores of the same purpose, so that a method's cost is its own."""
        if isinstance(self.scorer, StoredModel):
            self.scorer.purpose = f"study debias {self.design}: {purpose}"
        return self.open_asker()

    def clock(self) -> float:
        """A clock in seconds that also counts the time that scores from the store once took."""
        scorer = self.scorer
        recalled = scorer.cost.seconds - scorer.model_asked.cost.seconds if isinstance(scorer, StoredModel) else 0.0
        return time.perf_counter() + recalled

    def all(self, methods: Mapping[str, Method]) -> None:
        base: list[Listings] = []
        none = method_named("none")
        for target, name in enumerate(self.names):
            asker = self.asker(f"none on {name}")
            fitted = _Fitted("none", none, None, asker, none.fit(asker), Cost(), 0.0)
            base.append(self._measured(fitted, target, None))
        for text, method in methods.items():
            self.progress(f"{self.scorer.name}: {text}", 0, 1)
            for source in range(len(self.names)) if method.needs_fit else [None]:
                self._method(text, method, source, base)
            self.progress(f"{self.scorer.name}: {text}", 1, 1)

    def _method(self, text: str, method: Method, source: int | None, base: Sequence[Listings]) -> None:
        """Fit a method once, and measure it on every set it applies to."""
        fit_on: list[Question] = []
        name, purpose = "", text
        if source is not None:
            fit_on, name = (self.training if method.held_out else self.test)[source], self.names[source]
            purpose = f"{text} fitted on {name}"
        asker = self.asker(purpose)
        before, started = asker.cost.copy(), self.clock()
        try:
            debiaser = method.fitted(asker, fit_on)
        except (InputError, ModelError) as error:
            self.missing.append(Missing(self.scorer.name, text, name, str(error)))
            return
        fitted = _Fitted(text, method, source, asker, debiaser, asker.cost - before, self.clock() - started)
        with closing(debiaser):
            for target in range(len(self.names)):
                if source not in (None, target) and self.settings.no_transfer:
                    continue
                try:
                    if method.held_out:
                        check_apart(method.name, fit_on, self.test[target])
                    self._measured(fitted, target, base[target])
                except MostlyFailedError:
                    raise  # the model itself fails: no other method could ask it either
                except (InputError, ModelError) as error:
                    self.missing.append(Missing(self.scorer.name, text, self.names[target], str(error)))

    def _measured(self, fitted: _Fitted, target: int, base: Listings | None) -> Listings:
        """Add the entry of a method on a set, if it answered any question there; returns its answers."""
        method, source, asker, questions = fitted.method, fitted.source, fitted.asker, self.test[target]
        before, started = asker.cost.copy(), self.clock()
        size = sum(one.choice >= 0 for one in fitted.debiaser.answer(questions))
        cost, seconds = asker.cost - before, self.clock() - started
        invariant = method.order_invariant
        listings = self._listed(fitted.debiaser, target, invariant)
        both = listings.answered if base is None else listings.answered & base.answered
        if not both:
            reasons = counted_reasons(listings.left_out)
            self.missing.append(Missing(self.scorer.name, fitted.text, self.names[target], reasons))
            return listings
        measures = measured(listings.scores(), invariant=invariant)
        change, paired = {}, None
        if base is not None:
            now = measures if both == listings.answered else measured(listings.scores(both), invariant=invariant)
            if (target, both) not in self.undebiased:
                self.undebiased[target, both] = measured(base.scores(both))
            undebiased = self.undebiased[target, both]
            paired = PairedValues.of(now, undebiased)
            change = changes(now, undebiased, paired)
        if source == target and not method.held_out:
            cost = Cost(cost.tokens + fitted.cost.tokens, prompts=cost.prompts + fitted.cost.prompts)
            seconds += fitted.seconds
        drawn = source == target and fitted.text.partition(":")[0] == "pride"
        entry = MethodEntry(
            self.scorer.name,
            self.names[target],
            fitted.text,
            "" if source is None else self.names[source],
            source is not None and source != target,
            measures.estimates,
            change,
            measures.constructed,
            Spent(
                cost.tokens / size, cost.prompts / size, seconds / size,
                fitted.cost.tokens, fitted.cost.prompts, fitted.seconds,
            ),
            chance=measures.chance,
            asked=len(questions),
            left_out=listings.left_out,
            notes=fitted.debiaser.notes(questions),
            draws=self._draws(method, asker, target) if drawn else {},
            paired=paired,
        )  # fmt: skip
        self.entries.append(entry)
        return listings

    def _listed(self, debiaser: Debiaser, target: int, invariant: bool = False) -> Listings:
        orders, seed = self.settings.orders, self.settings.seed
        return answer_listings(debiaser, self.test[target], orders, self.alphabet, seed, invariant=invariant)

    def _draws(self, method: Any, asker: ModelAsker, target: int) -> dict[str, tuple[float, float]]:
        """Mean and standard deviation of every measure over draws of the estimation questions."""
        rows = []
        for draw in range(PRIDE_DRAWS):
            debiaser = replace(method, seed=method.seed + draw).fitted(asker, self.test[target])
            scores = self._listed(debiaser, target).scores()
            rows.append({name: e.value for name, e in measured(scores).estimates.items()})
        values = {name: [row[name] for row in rows] for name in MEASURES}
        return {name: (float(np.mean(v)), float(np.std(v, ddof=1))) for name, v in values.items()}

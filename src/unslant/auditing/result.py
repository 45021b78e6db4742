"""The result of an audit, and how two results are paired, question by question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from unslant.arrays import Ints, jsonable
from unslant.auditing import WHOLE
from unslant.experiment.result import Paired, RecordedResult, StudyResult
from unslant.metrics import Bootstrap, Estimate, Metrics, OrderScores, compute, measure, preference, read_scores
from unslant.metrics.order_curve import OrderCurve, order_curve
from unslant.metrics.registry import METRICS
from unslant.metrics.two_phase import beyond_places, whole_part
from unslant.questions.question import same_questions as same
from unslant.reports.numbers import count, listed
from unslant.responses import GENERATE, Responses

if TYPE_CHECKING:
    from unslant.auditing.corrections import Correction
    from unslant.auditing.replies import Replies
    from unslant.metrics import BaseRates, Numbers, Nvr
    from unslant.metrics.pages import Repeat
    from unslant.metrics.shortcuts import Shortcut
    from unslant.metrics.variance_components import VarianceComponents

SCORES = ("accuracy", "expected_accuracy", "vote_accuracy", "robust_accuracy")
MEASURES = (*SCORES, "consistency", "pbm")
OF_ALL_ORDERS = ("vote_accuracy", "robust_accuracy", "consistency", "pbm")
"""Measures that depend on how many orders are shown: in more of them, more answers change."""
COMPUTED = (
    *("nvr", "base_rates", "corrections", "replies", "shortcuts", "length_bias", "variance_components"),
    *("order_curve", "beyond_places"),
)
"""Numbers computed on first use: the first screen needs few of them, JSON all."""


@dataclass(frozen=True)
class AuditResult(RecordedResult):
    """The result of an audit.

    Attributes:
        responses: one row per presentation; ``responses.run`` holds the settings.
        metrics: every metric of the whole set, and of each question.
        scores: the responses as arrays, from which every number is computed.
        bootstrap: over the questions; makes the interval of every number.
        nvr: accuracy when the right option is never under a given label (P5), from the recorded orders.
        base_rates: number of options -> label probabilities without content (P5).
        replies: what replies say besides their answers; None where labels were scored.
        shortcuts: test-taking shortcuts against the answers as given; empty where no question texts are known.
        length_bias: of a log with scores of option texts; None for any other.
        variance_components: where the variance of right and wrong answers comes from; None where it cannot be known.
        order_curve: the result and cost of fewer orders; None where no smaller set could be compared.
        beyond_places: share of PBM that options and places do not explain, of an audit in two phases; None for others.
        left_open: what an audit of one order leaves open, and the command that asks more; empty for any other.
    """

    study = "audit"
    unwritten = ("responses", "scores", "bootstrap")
    compared_numbers = tuple(("metrics", "means", key) for key in MEASURES)

    responses: Responses
    metrics: Metrics
    scores: OrderScores
    bootstrap: Bootstrap

    @classmethod
    def of(cls, responses: Responses) -> Self:
        scores = read_scores(responses)
        if scored_texts(responses):
            scores = replace(scores, label_mass=None)
        across = bool(responses.run.settings.get("across_subjects"))
        bootstrap = Bootstrap.of(scores, across_subjects=across)
        metrics, until = compute(scores, bootstrap), responses.run.until
        if until and until.ended != "all":  # it stopped early: its numbers and intervals are those of the search
            last = {METRICS[name]: Estimate.from_dict(step) for name, step in until.path[-1].numbers.items()}
            metrics = replace(metrics, means=metrics.means | last)
        if len(responses.where(status="conflict")):
            from unslant.auditing.replies import labels_as_written

            # a habit of labels is seen in the labels that are written, whether the text after them is right or not
            written = read_scores(labels_as_written(responses))
            habits = preference(written, Bootstrap.of(written, across_subjects=across))
            metrics = replace(metrics, preference=habits)
        return cls(responses, metrics, scores, bootstrap)

    @property
    def name(self) -> str:
        """The model's name, without its path."""
        return self.run.name

    @cached_property
    def whole(self) -> OrderScores:
        """The scores of the questions shown in all orders: in an audit in two phases, its random part."""
        return whole_part(self.scores)

    @cached_property
    def shown_once(self) -> bool:
        """Whether every question was shown in a single order, answered or not."""
        if self.scores.reordered or not self.metrics.counts.incomplete:
            return not self.scores.reordered
        table = self.responses.where(kind="order").table
        names = table["question_id"].to_pylist()
        pages = set(zip(names, map(tuple, table["contents"].to_pylist()), strict=True))  # repeats show one order often
        return len(pages) == len(set(names))

    @property
    def one_order(self) -> bool:
        """Whether every question was shown in a single order, though it has more."""
        return bool((self.scores.movable > 1).all()) and self.shown_once

    @cached_property
    def nvr(self) -> Nvr:
        from unslant.metrics import nvr_from_scores

        scores = replace(self.scores, blocks=()) if self.scores.selected else self.scores
        return nvr_from_scores(scores, self.bootstrap)

    @cached_property
    def base_rates(self) -> dict[int, BaseRates]:
        from unslant.metrics import base_rates

        return base_rates(self.responses, labels=self.scores.labels)

    @cached_property
    def corrections(self) -> tuple[Correction, ...]:
        from unslant.auditing.corrections import corrections

        full, values = self.scores.full, self.metrics.questions
        if full is not None:  # of the part alone, so that methods are compared on the same questions
            values = {key: np.where(full, of_part, np.nan) for key, of_part in measure(self.whole).items()}
        return corrections(self.whole, values, self.bootstrap)

    @property
    def in_words(self) -> bool:
        """Whether answers were read from replies; a log may also hold choices alone."""
        raw = self.responses.table["raw"]
        return self.scores.elicitation == GENERATE and raw.null_count < len(raw)

    @cached_property
    def replies(self) -> Replies | None:
        if self.scores.elicitation != GENERATE:
            return None
        from unslant.auditing.replies import replies_of

        return replies_of(self.responses, self.scores, self.bootstrap)

    @cached_property
    def shortcuts(self) -> tuple[Shortcut, ...]:
        from unslant.metrics.shortcuts import shortcuts

        place = self.scores.place
        questions = [question for question in self.responses.questions if question.id in place]
        rows = [place[question.id] for question in questions]
        published = self.scores.given
        if not any(question.answers for question in questions):
            return ()
        choices = np.where(published.ok, published.chosen, -1)[rows]
        if len(questions) < len(self.scores):  # the bootstrap is over all questions, so it cannot be used
            return shortcuts(questions, choices)
        return shortcuts(questions, choices, bootstrap=self.bootstrap, rows=rows)

    @cached_property
    def length_bias(self) -> Numbers | None:
        if self.run.logged is None or not scored_texts(self.responses):
            return None
        from unslant.metrics.shortcuts import length_bias

        place = self.scores.place
        logprobs, lengths = (np.full(self.scores.answers.shape, np.nan) for _ in range(2))
        for question in self.responses.questions:
            if question.id in place:
                sizes = [len(option.strip()) for option in question.options]
                lengths[place[question.id], : len(sizes)] = sizes
        for row in self.responses.each_row():
            if row.logprobs is not None and not row.repeat:
                logprobs[place[row.question_id], list(row.contents)] = row.logprobs
        return length_bias(logprobs, lengths, self.scores.answers, self.bootstrap)

    @cached_property
    def variance_components(self) -> VarianceComponents | None:
        from unslant.metrics.variance_components import components_of

        return components_of(self.scores, self.bootstrap, self._repeats())

    def _repeats(self) -> list[Repeat]:
        """Further answers to pages that were shown again."""
        kinds = ("order", "given", "reverse")
        tables = (
            self.responses.where(elicitation=self.scores.elicitation, kind=kinds, repeat=repeat)
            for repeat in sorted(set(self.responses.table["repeat"].unique().to_pylist()) - {0})
        )
        return [
            (self.scores.place[row.question_id], row.contents, row.choice in row.answers)
            for table in tables
            for row in table.each_row()
            if row.status != "error"
        ]

    @cached_property
    def order_curve(self) -> OrderCurve | None:
        run = self.run
        if run.until and run.until.ended != "all":  # no set of orders was asked of every question
            return None
        spec = str(run.settings.get("orders", "auto"))
        costs = run.order_costs
        return order_curve(self.whole, WHOLE if run.two_phase else spec, costs or None, costs.get(spec))

    @cached_property
    def beyond_places(self) -> Numbers | None:
        return None if self.scores.full is None else beyond_places(self.whole, self.bootstrap)

    @cached_property
    def left_open(self) -> str:
        counts = self.metrics.counts
        if counts.one_order < counts.questions:
            return ""
        from unslant.auditing.cost import left_open

        logged = self.run.logged
        if scored_texts(self.responses) and not (logged and logged.scores == "listed"):
            return (
                "Each option was scored by itself, so order plays no part; `unslant audit MODEL FILE` lists the "
                "options in the prompt."
            )
        return left_open(self.responses.questions, in_words=not self.scores.is_scored)

    def of_questions(self) -> Mapping[str, Sequence[Any]]:
        """Columns with one value a question: id, subject, number of options, and every metric by its key."""
        about: dict[str, Any] = {
            "question": self.scores.ids,
            "subject": self.scores.subjects,
            "n_options": self.scores.n_options,
        }
        return about | measure(self.scores)

    def to_dict(self) -> dict[str, Any]:
        """Provenance, cost and every number as plain values for JSON, without single responses."""
        values = super().to_dict()
        cost = values.pop("cost")  # stays last
        return values | {name: jsonable(getattr(self, name)) for name in COMPUTED} | {"cost": cost}

    def numbers_compared_with(self, earlier: Mapping[tuple[str, ...], Any]) -> Sequence[tuple[str, ...]]:
        was_scored = ("replies",) in earlier  # null: for words it is an object of numbers
        at = ("metrics", "counts", "orders")
        orders = ((k, earlier.get((*at, str(n)), {"value": 0})["value"]) for n, k in self.metrics.counts.orders.items())
        unlike = any(k != before and min(k, before) > 1 for k, before in orders)
        left_out = OF_ALL_ORDERS if unlike else ("pbm",) * (was_scored != self.scores.is_scored)
        return [path for path in self.compared_numbers if path[-1] not in left_out]

    def paired_with(self, earlier: StudyResult) -> Paired | None:
        if not isinstance(earlier, AuditResult):
            return None
        before, now = named([earlier, self], ["baseline", "now"]).items()
        return paired(now, before)


def scored_texts(responses: Responses) -> bool:
    """Whether option texts were scored rather than labels."""
    logged, harness = responses.run.logged, responses.run.lm_eval
    if logged and logged.scores in ("texts", "listed"):
        return True
    return harness is not None and any(task.scored != "labels" for task in harness.tasks.values())


def named(results: Sequence[AuditResult], files: Sequence[str] = ()) -> dict[str, AuditResult]:
    """Audits by model, with the file name (or a number) added where models share a name."""
    often = Counter(result.name for result in results)
    extra = files if len(set(files)) == len(results) else [str(i + 1) for i in range(len(results))]
    names = [r.name if often[r.name] == 1 else f"{r.name} ({more})" for r, more in zip(results, extra, strict=True)]
    if len(set(names)) < len(names):  # a model may be called "m (1)"
        names = [f"{name} ({i})" for i, name in enumerate(names, 1)]
    return dict(zip(names, results, strict=True))


def paired(run: tuple[str, AuditResult], other: tuple[str, AuditResult], measures: Sequence[str] = MEASURES) -> Paired:
    """How one audit differs from another on the questions of both; nothing where they have none in common.

    Args:
        run, other: name and audit of each.
        measures: keys of the metrics that are compared.
    """
    from unslant.metrics import paired_difference  # few audits are compared

    (name, now), (base, first) = run, other
    at, at_first = rows = same_questions(now, first)
    if not at.size:
        return Paired((), ())
    values = now.metrics.questions, first.metrics.questions
    across = any(audit.run.settings.get("across_subjects") for audit in (now, first))
    difference = partial(
        paired_difference, now.scores, first.scores, measures=values, rows=rows, across_subjects=across
    )
    ways, remarks, keys = (_way(first), _way(now)), list[str](), [*measures]
    if "pbm" in keys and now.scores.is_scored != first.scores.is_scored:
        keys.remove("pbm")
        remarks.append("PBM is not compared: for words it comes from answers, for scores from probabilities.")
    of_now, of_first = orders_meant(now.scores)[at], orders_meant(first.scores)[at_first]
    unlike = np.flatnonzero((of_now != of_first) & (np.minimum(of_now, of_first) > 1))
    if unlike.size and (over := [key for key in keys if key in OF_ALL_ORDERS]):
        keys, one = [key for key in keys if key not in over], unlike[0]
        remarks.append(
            f"Not compared: {listed([METRICS[key].label for key in over])}. They depend on the number of orders, which "
            f"differs: {of_first[one]} of {base} against {of_now[one]} of {name}, for example."
        )
    pairs = [difference(key) for key in keys]
    if len(set(ways)) > 1:
        remarks.append(f"Answers are read in different ways: {base} by {ways[0]}; {name} by {ways[1]}.")
    if by_text := int((np.asarray(now.scores.ids)[at] != np.asarray(first.scores.ids)[at_first]).sum()):
        remarks.append(f"{name}: {by_text:,} of {count(len(at), 'question')} matched by text, not by id.")
    return Paired([pair for pair in pairs if pair.difference.defined], remarks)


def orders_meant(scores: OrderScores) -> Ints:
    """(Q,) the most orders that a question with as many options, and as many that move, was shown in: numbers over
    orders are about these, also where they are estimated for a question shown in fewer."""
    kind = scores.n_options * (scores.width + 1) + scores.movable
    most = np.zeros(kind.max() + 1, np.int64)
    np.maximum.at(most, kind, scores.order_counts)
    return np.asarray(most[kind])


def _way(result: AuditResult) -> str:
    """How an answer is read: choosing a label and scoring option texts by themselves are different tasks."""
    logged = result.run.logged
    if logged and logged.scores in ("texts", "listed"):
        return "scores of option texts"
    return "scores of labels" if result.scores.is_scored else "words"


def same_questions(a: AuditResult, b: AuditResult) -> tuple[Ints, Ints]:
    """Rows of the same questions in the scores of both; see :func:`unslant.questions.question.same_questions`."""
    row_a, row_b = a.scores.place, b.scores.place
    pairs = same(a.responses.by_id(row_a), b.responses.by_id(row_b))
    rows = np.asarray(sorted((row_a[one], row_b[other]) for one, other in pairs), np.int64).reshape(-1, 2)
    return rows[:, 0], rows[:, 1]

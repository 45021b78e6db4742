"""The result of an audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from unslant.auditing.corrections import Correction, corrections
from unslant.auditing.one_order import left_open, length_bias_of, scored_texts, shortcuts_of
from unslant.auditing.pairing import MEASURES, named, paired
from unslant.auditing.phases import WHOLE
from unslant.auditing.replies import Replies, labels_as_written, repeats_of, replies_of
from unslant.auditing.until import with_anytime
from unslant.experiment.result import Paired, RecordedResult, StudyResult
from unslant.metrics import (
    BaseRates,
    Bootstrap,
    Metrics,
    Numbers,
    Nvr,
    OrderScores,
    base_rates,
    compute,
    nvr_from_scores,
    preference,
    read_scores,
)
from unslant.metrics.measures import measure
from unslant.metrics.order_curve import OrderCurve, order_curve
from unslant.metrics.pages import components_of
from unslant.metrics.shortcuts import Shortcut
from unslant.metrics.two_phase import beyond_places, whole_part
from unslant.metrics.variance_components import VarianceComponents
from unslant.responses import Responses


@dataclass(frozen=True)
class AuditResult(RecordedResult):
    """The result of an audit.

    Attributes:
        responses: one row per presentation; ``responses.run`` holds the settings.
        nvr: accuracy when the right option is never under a given label (P5), from the recorded orders.
        base_rates: number of options -> label probabilities without content (P5).
        replies: what replies say besides their answers; None where labels were scored.
        shortcuts: test-taking shortcuts against the answers as given; empty where no question texts are known.
        length_bias: of a log with scores of option texts; None for any other.
        variance_components: where the variance of right and wrong answers comes from; None where it cannot be known.
        order_curve: the result and cost of fewer orders; None where there were no fewer to compare.
        beyond_places: share of PBM that options and places do not explain, of an audit in two phases; None for others.
        left_open: what an audit of one order leaves open, and the command that would settle it; empty for any other.
        scores: the responses as arrays, from which every number is computed.
    """

    study = "audit"
    unwritten = ("responses", "left_open", "scores")
    compared_numbers = tuple(("metrics", "means", key) for key in MEASURES)

    responses: Responses
    metrics: Metrics
    nvr: Nvr
    base_rates: dict[int, BaseRates]
    corrections: tuple[Correction, ...]
    replies: Replies | None
    shortcuts: tuple[Shortcut, ...]
    length_bias: Numbers | None
    variance_components: VarianceComponents | None
    order_curve: OrderCurve | None
    beyond_places: Numbers | None
    left_open: str
    scores: OrderScores = field(repr=False)

    @cached_property
    def whole(self) -> OrderScores:
        """The scores of the questions that were shown in all orders: of an audit in two phases, its random part."""
        return whole_part(self.scores)

    def of_questions(self) -> Mapping[str, Sequence[Any]]:
        """Columns with one value a question: id, subject, number of options, and every metric by its key."""
        about: dict[str, Any] = {
            "question": self.scores.ids,
            "subject": self.scores.subjects,
            "n_options": self.scores.n_options,
        }
        return about | measure(self.scores)

    @property
    def name(self) -> str:
        """The model's name, without its path."""
        return self.run.name

    def paired_with(self, earlier: StudyResult) -> Paired | None:
        if not isinstance(earlier, AuditResult):
            return None
        before, now = named([earlier, self], ["baseline", "now"]).items()
        return paired(now, before)

    @classmethod
    def of(cls, responses: Responses) -> AuditResult:
        scores = read_scores(responses)
        if scored_texts(responses):
            scores = replace(scores, label_mass=None)
        across = bool(responses.run.settings.get("across_subjects"))
        bootstrap = Bootstrap.of(scores, across_subjects=across)
        metrics = with_anytime(compute(scores, bootstrap), responses.run.until)
        whole, values = whole_part(scores), metrics.questions
        if scores.full is not None:  # of the part alone, so that methods are compared on the same questions
            values = {key: np.where(scores.full, own, np.nan) for key, own in measure(whole).items()}
        written = labels_as_written(responses)
        if written is not responses:  # a habit of labels is seen in the labels that are written, right text or not
            habit = read_scores(written)
            metrics = replace(metrics, preference=preference(habit, Bootstrap.of(habit, across_subjects=across)))
        return cls(
            responses,
            metrics,
            nvr_from_scores(replace(scores, blocks=()) if scores.selected else scores, bootstrap),
            base_rates(responses, labels=scores.labels),
            corrections(whole, values, bootstrap),
            replies_of(responses, scores, bootstrap),
            shortcuts_of(responses, scores, bootstrap),
            length_bias_of(responses, scores, bootstrap),
            components_of(whole, bootstrap, repeats_of(responses, scores)),
            _order_curve(responses, whole),
            None if scores.full is None else beyond_places(whole, bootstrap),
            left_open(responses, scores, metrics.counts),
            scores,
        )


def _order_curve(responses: Responses, scores: OrderScores) -> OrderCurve | None:
    run = responses.run
    if run.until and run.until.ended != "all":  # no set of orders was asked of every question
        return None
    spec = str(run.settings.get("orders", "auto"))
    return order_curve(scores, WHOLE if run.two_phase else spec, run.order_costs or None, run.order_costs.get(spec))

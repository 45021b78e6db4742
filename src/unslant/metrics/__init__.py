"""What the responses mean: pure functions from scores to named numbers, each with its interval and its N."""

# A metric is known once its module is imported, and any study may show one of ours: all of them are imported here, in
# the order in which tables and JSON list their numbers.
from unslant.metrics import measures as measures
from unslant.metrics import order_curve as order_curve
from unslant.metrics import shortcuts as shortcuts
from unslant.metrics import variance_components as variance_components
from unslant.metrics.accuracy import ChanceTest, VotedAnswers, above_chance, mean_over_orders, vote, vote_over_orders
from unslant.metrics.association import agreement, associate, correlation
from unslant.metrics.base_rate import BaseRates, LabelScores, base_rates, standard_labels
from unslant.metrics.bootstrap import Bootstrap
from unslant.metrics.decision_study import minimum_detectable_difference
from unslant.metrics.estimate import Estimate, wilson
from unslant.metrics.labels import LabelBias, LabelShare
from unslant.metrics.measures import PairedDifference, QuestionValues, mcnemar, measure, paired_difference
from unslant.metrics.nvr import Nvr, nvr_from_scores
from unslant.metrics.permutation import OrderAccuracy, consistent, normalised_pbm, pbm
from unslant.metrics.preference import Preference, preference
from unslant.metrics.preference.slots import SlotEffect
from unslant.metrics.read_scores import read_scores
from unslant.metrics.registry import METRICS, Measured, Metric, Numbers, metric, question_metric
from unslant.metrics.scores import Block, OrderScores, View, choose, credit
from unslant.metrics.summary import Counts, Metrics, compute
from unslant.metrics.verdicts import Verdict, verdict, verdicts

__all__ = [
    "METRICS", "BaseRates", "Block", "Bootstrap", "ChanceTest", "Counts", "Estimate", "LabelBias", "LabelScores",
    "LabelShare", "Measured", "Metric", "Metrics", "Numbers", "Nvr", "OrderAccuracy", "OrderScores",
    "PairedDifference", "Preference", "QuestionValues", "SlotEffect", "Verdict", "View", "VotedAnswers", "above_chance",
    "agreement", "associate", "base_rates", "choose", "compute", "consistent", "correlation", "credit", "mcnemar",
    "mean_over_orders", "measure", "metric", "minimum_detectable_difference", "normalised_pbm", "nvr_from_scores",
    "paired_difference", "pbm", "preference", "question_metric", "read_scores", "standard_labels",
    "verdict", "verdicts", "vote", "vote_over_orders", "wilson",
]  # fmt: skip

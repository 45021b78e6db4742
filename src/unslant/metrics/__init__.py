"""What the responses mean: pure functions from scores to named numbers, each with its interval and its N."""

# A metric is known once its module is imported, and any study may show one of ours: all of them are imported here.
from unslant.metrics import length_bias as length_bias
from unslant.metrics import noise as noise
from unslant.metrics import order_curve as order_curve
from unslant.metrics import shortcuts as shortcuts
from unslant.metrics import variance_components as variance_components
from unslant.metrics.accuracy import ChanceTest, above_chance
from unslant.metrics.association import agreement, associate, correlation
from unslant.metrics.base_rate import BaseRates, base_rates
from unslant.metrics.bootstrap import Bootstrap
from unslant.metrics.estimate import Estimate, wilson
from unslant.metrics.label_scores import LabelScores, standard_labels
from unslant.metrics.labels import LabelBias, LabelShare
from unslant.metrics.measures import QuestionValues, measure
from unslant.metrics.nvr import Nvr, nvr_from_scores
from unslant.metrics.order_spread import OrderAccuracy
from unslant.metrics.pairs import PairedDifference, mcnemar, minimum_detectable_difference, paired_difference
from unslant.metrics.permutation import consistent, normalised_pbm, pbm
from unslant.metrics.preference import Preference, preference
from unslant.metrics.preference.slots import SlotEffect
from unslant.metrics.read_scores import read_scores
from unslant.metrics.registry import METRICS, Measured, Metric, Numbers, metric, question_metric
from unslant.metrics.scores import Block, OrderScores, View
from unslant.metrics.summary import Counts, Metrics, compute
from unslant.metrics.ties import choose, credit
from unslant.metrics.verdicts import Verdict, verdict, verdicts
from unslant.metrics.vote import VotedAnswers, mean_over_orders, vote, vote_over_orders

__all__ = [
    "METRICS", "BaseRates", "Block", "Bootstrap", "ChanceTest", "Counts", "Estimate", "LabelBias", "LabelScores",
    "LabelShare", "Measured", "Metric", "Metrics", "Numbers", "Nvr", "OrderAccuracy", "OrderScores",
    "PairedDifference", "Preference", "QuestionValues", "SlotEffect", "Verdict", "View", "VotedAnswers", "above_chance",
    "agreement", "associate", "base_rates", "choose", "compute", "consistent", "correlation", "credit", "mcnemar",
    "mean_over_orders", "measure", "metric", "minimum_detectable_difference", "normalised_pbm", "nvr_from_scores",
    "paired_difference", "pbm", "preference", "question_metric", "read_scores", "standard_labels",
    "verdict", "verdicts", "vote", "vote_over_orders", "wilson",
]  # fmt: skip

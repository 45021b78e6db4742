"""What the responses mean: pure functions from scores to named numbers, each with its interval and its N."""

from unslant.metrics.bootstrap import Bootstrap
from unslant.metrics.chance import ChanceTest, above_chance
from unslant.metrics.estimate import Estimate, wilson
from unslant.metrics.labels import LabelBias, LabelShare
from unslant.metrics.measures import QuestionMeasures, measure
from unslant.metrics.order_spread import OrderAccuracy
from unslant.metrics.pairs import PairedDifference, mcnemar, minimum_detectable_difference, paired_difference
from unslant.metrics.permutation import consistent, normalised_pbm, pbm
from unslant.metrics.preference import Preference, preference
from unslant.metrics.scores import Block, OrderScores, View
from unslant.metrics.slot_tables import SlotEffect
from unslant.metrics.summary import Correlation, Counts, Metrics, compute
from unslant.metrics.vote import Vote, vote

__all__ = [
    "Block",
    "Bootstrap",
    "ChanceTest",
    "Correlation",
    "Counts",
    "Estimate",
    "LabelBias",
    "LabelShare",
    "Metrics",
    "OrderAccuracy",
    "OrderScores",
    "PairedDifference",
    "Preference",
    "QuestionMeasures",
    "SlotEffect",
    "View",
    "Vote",
    "above_chance",
    "compute",
    "consistent",
    "mcnemar",
    "measure",
    "minimum_detectable_difference",
    "normalised_pbm",
    "paired_difference",
    "pbm",
    "preference",
    "vote",
    "wilson",
]

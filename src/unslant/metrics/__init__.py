"""What the responses mean: pure functions from scores to named numbers, each with its interval and its N."""

from unslant.metrics.accuracy import OrderAccuracy
from unslant.metrics.bootstrap import Bootstrap
from unslant.metrics.estimate import Estimate, wilson
from unslant.metrics.labels import LabelBias, LabelShare
from unslant.metrics.measures import QuestionMeasures, measure
from unslant.metrics.pairs import PairedDifference, mcnemar, paired_difference
from unslant.metrics.permutation import consistent, normalised_pbm, pbm
from unslant.metrics.preference import Preference, SlotPreference, preference
from unslant.metrics.read_scores import read_scores
from unslant.metrics.scores import Block, OrderScores, View
from unslant.metrics.summary import Correlation, Counts, Metrics, compute
from unslant.metrics.vote import VotedAnswers, vote

__all__ = [
    "Block",
    "Bootstrap",
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
    "SlotPreference",
    "View",
    "VotedAnswers",
    "compute",
    "consistent",
    "mcnemar",
    "measure",
    "normalised_pbm",
    "paired_difference",
    "pbm",
    "preference",
    "read_scores",
    "vote",
    "wilson",
]

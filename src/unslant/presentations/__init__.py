"""How a question is shown: orders, labels, and the map from a shown label back to content."""

from unslant.presentations.labels import ALPHABETS, alphabetical, labels_for, parse_labels
from unslant.presentations.order_sets import orders_for
from unslant.presentations.orders import (
    Order,
    all_orders,
    canonical,
    cyclic_orders,
    given_order,
    reversed_order,
    rotations,
    sampled_orders,
)
from unslant.presentations.presentation import AUXILIARY, FOREIGN, NONE, Asked, Presentation, ShownOption, present
from unslant.presentations.seeds import question_rng
from unslant.presentations.shots import ShotChooser

__all__ = [
    "ALPHABETS",
    "AUXILIARY",
    "FOREIGN",
    "NONE",
    "Asked",
    "Order",
    "Presentation",
    "ShotChooser",
    "ShownOption",
    "all_orders",
    "alphabetical",
    "canonical",
    "cyclic_orders",
    "given_order",
    "labels_for",
    "orders_for",
    "parse_labels",
    "present",
    "question_rng",
    "reversed_order",
    "rotations",
    "sampled_orders",
]

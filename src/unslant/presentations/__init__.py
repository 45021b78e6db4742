"""How a question is shown: orders, labels, and the map from a shown label back to content."""

from unslant.presentations.labels import ALPHABETS, alphabetical, labels_for, parse_labels
from unslant.presentations.orders import (
    Order,
    all_orders,
    auto_orders,
    canonical,
    cyclic_orders,
    given_order,
    orders_for,
    reversed_order,
    sampled_orders,
)
from unslant.presentations.presentation import AUXILIARY, FOREIGN, NONE, Presentation, ShownOption, present
from unslant.presentations.seeds import question_rng
from unslant.presentations.shots import ShotChooser, choose_shots

__all__ = [
    "ALPHABETS",
    "AUXILIARY",
    "FOREIGN",
    "NONE",
    "Order",
    "Presentation",
    "ShotChooser",
    "ShownOption",
    "all_orders",
    "alphabetical",
    "auto_orders",
    "canonical",
    "choose_shots",
    "cyclic_orders",
    "given_order",
    "labels_for",
    "orders_for",
    "parse_labels",
    "present",
    "question_rng",
    "reversed_order",
    "sampled_orders",
]

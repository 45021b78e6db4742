"""How a question is shown: orders, labels, and the map from a shown label back to content."""

from unslant.presentations.orders import (
    Order,
    all_orders,
    auto_square,
    balanced_rounds,
    canonical,
    cyclic_orders,
    given_order,
    orders_for,
    question_rng,
    reversed_order,
    rotations,
    sampled_orders,
)
from unslant.presentations.presentation import (
    ALPHABETS,
    AUXILIARY,
    CONTROL,
    FOREIGN,
    NONE,
    NVR,
    Asked,
    Chooser,
    Presentation,
    ShownOption,
    alphabetical,
    control_presentations,
    labels_for,
    nvr_presentations,
    parse_labels,
    present,
    references,
    texts_under,
)

__all__ = [
    "ALPHABETS", "AUXILIARY", "CONTROL", "FOREIGN", "NONE", "NVR", "Asked", "Chooser", "Order", "Presentation",
    "ShownOption", "all_orders", "alphabetical", "auto_square", "balanced_rounds", "canonical", "control_presentations",
    "cyclic_orders", "given_order", "labels_for", "nvr_presentations", "orders_for", "parse_labels", "present",
    "question_rng", "references", "reversed_order", "rotations", "sampled_orders", "texts_under",
]  # fmt: skip

"""What ``unslant.inspect`` has: samples in orders, tasks of the studies, and readers of their logs."""

from unslant.plugins.inspect_ai.boundary import instruction_boundary, read_rows, to_sample
from unslant.plugins.inspect_ai.orders import choice_in_orders, in_orders, over_orders
from unslant.plugins.inspect_ai.samples import from_metadata
from unslant.plugins.inspect_ai.unbiased_task import read_unbiased, unbiased

__all__ = [
    "choice_in_orders", "from_metadata", "in_orders", "instruction_boundary", "over_orders", "read_rows",
    "read_unbiased", "to_sample", "unbiased",
]  # fmt: skip

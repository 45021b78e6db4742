"""Loaded by inspect_ai through the entry point ``unslant``."""

from unslant.plugins.inspect_ai.boundary import boundary_answer, generate_reply, instruction_boundary
from unslant.plugins.inspect_ai.orders import choice_in_orders, in_orders_task, over_orders
from unslant.plugins.inspect_ai.unbiased_task import unbiased, unbiased_answer

__all__ = [
    "boundary_answer", "choice_in_orders", "generate_reply", "in_orders_task", "instruction_boundary", "over_orders",
    "unbiased", "unbiased_answer",
]  # fmt: skip

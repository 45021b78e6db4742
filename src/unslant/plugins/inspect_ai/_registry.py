"""Loaded by inspect_ai through the entry point ``unslant``."""

from unslant.plugins.inspect_ai.boundary_scorer import boundary_answer
from unslant.plugins.inspect_ai.boundary_solver import generate_reply
from unslant.plugins.inspect_ai.boundary_task import instruction_boundary
from unslant.plugins.inspect_ai.orders_scorer import choice_in_orders, over_orders
from unslant.plugins.inspect_ai.orders_task import in_orders_task
from unslant.plugins.inspect_ai.unbiased_task import unbiased, unbiased_answer

__all__ = [
    "boundary_answer",
    "choice_in_orders",
    "generate_reply",
    "in_orders_task",
    "instruction_boundary",
    "over_orders",
    "unbiased",
    "unbiased_answer",
]

"""Loaded by inspect_ai through the entry point ``unslant``."""

from unslant.studies.audit.inspect_scorer import choice_in_orders, over_orders
from unslant.studies.audit.inspect_task import in_orders_task
from unslant.studies.instruction_boundary.inspect_scorer import boundary_answer
from unslant.studies.instruction_boundary.inspect_solver import generate_reply
from unslant.studies.instruction_boundary.inspect_task import instruction_boundary
from unslant.studies.unbiased.inspect_task import unbiased, unbiased_answer

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

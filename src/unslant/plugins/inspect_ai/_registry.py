"""Loaded by inspect_ai through the entry point ``unslant``."""

from unslant.studies.instruction_boundary.inspect_scorer import boundary_answer
from unslant.studies.instruction_boundary.inspect_solver import generate_reply
from unslant.studies.instruction_boundary.inspect_task import instruction_boundary
from unslant.studies.unbiased.inspect_task import unbiased, unbiased_answer

__all__ = ["boundary_answer", "generate_reply", "instruction_boundary", "unbiased", "unbiased_answer"]

"""What inspect_ai loads through the entry point ``unslant``."""

from unslant.plugins.inspect_ai.scorer import boundary_answer
from unslant.plugins.inspect_ai.solver import ask_in_words
from unslant.plugins.inspect_ai.task import instruction_boundary
from unslant.plugins.inspect_ai.unbiased import unbiased, unbiased_answer

__all__ = ["ask_in_words", "boundary_answer", "instruction_boundary", "unbiased", "unbiased_answer"]

"""unslant in inspect_ai: a task, its solver and its scorer. Needs the extra ``unslant[inspect]``.

``inspect eval unslant/instruction_boundary --model openai/gpt-4o -T settings=vanilla,vagueness``
"""

from unslant.plugins.inspect_ai.records import from_metadata, read_rows, to_sample
from unslant.plugins.inspect_ai.scorer import boundary_answer
from unslant.plugins.inspect_ai.solver import ask_in_words
from unslant.plugins.inspect_ai.task import build_task, instruction_boundary

__all__ = [
    "ask_in_words",
    "boundary_answer",
    "build_task",
    "from_metadata",
    "instruction_boundary",
    "read_rows",
    "to_sample",
]

"""inspect_ai tasks of the studies, and readers of their logs. Needs the extra ``unslant[inspect]``.

``inspect eval unslant/instruction_boundary --model openai/gpt-4o -T settings=vanilla,vagueness``
"""

from unslant.studies.inspect_samples import from_metadata
from unslant.studies.instruction_boundary.inspect_records import read_rows, to_sample
from unslant.studies.instruction_boundary.inspect_task import instruction_boundary
from unslant.studies.unbiased.inspect_task import read_unbiased, unbiased

__all__ = ["from_metadata", "instruction_boundary", "read_rows", "read_unbiased", "to_sample", "unbiased"]

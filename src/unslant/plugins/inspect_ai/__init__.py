"""What ``unslant.inspect`` has: samples in orders, tasks of the studies, and readers of their logs."""

from unslant.studies.audit.inspect_orders import in_orders
from unslant.studies.audit.inspect_scorer import choice_in_orders, over_orders
from unslant.studies.inspect_samples import from_metadata
from unslant.studies.instruction_boundary.inspect_records import read_rows, to_sample
from unslant.studies.instruction_boundary.inspect_task import instruction_boundary
from unslant.studies.unbiased.inspect_task import read_unbiased, unbiased

__all__ = [
    "choice_in_orders",
    "from_metadata",
    "in_orders",
    "instruction_boundary",
    "over_orders",
    "read_rows",
    "read_unbiased",
    "to_sample",
    "unbiased",
]

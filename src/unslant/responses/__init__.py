"""What came back."""

from unslant.responses.checks import STATUSES
from unslant.responses.extraction import Extracted, chosen_contents, extract
from unslant.responses.recorded import load_recorded
from unslant.responses.table import SCHEMA, Response, Responses, text_ranks

__all__ = [
    "SCHEMA", "STATUSES", "Extracted", "Response", "Responses", "chosen_contents", "extract", "load_recorded",
    "text_ranks",
]  # fmt: skip

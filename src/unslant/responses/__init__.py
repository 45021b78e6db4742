"""What came back."""

from unslant.responses.checks import STATUSES
from unslant.responses.table import SCHEMA, Response, Responses, text_ranks

__all__ = ["SCHEMA", "STATUSES", "Response", "Responses", "text_ranks"]

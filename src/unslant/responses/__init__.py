"""What came back."""

from unslant.responses.table import SCHEMA, STATUSES, Response, Responses, text_ranks

__all__ = ["SCHEMA", "STATUSES", "Response", "Responses", "text_ranks"]

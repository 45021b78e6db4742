"""What came back."""

from unslant.responses.table import SCHEMA, STATUSES, Response, Responses

__all__ = ["SCHEMA", "STATUSES", "Response", "Responses"]

"""What came back."""

from unslant.responses.checks import NO_ANSWER, REPLY_STATUSES, STATUSES
from unslant.responses.run import Run
from unslant.responses.table import SCHEMA, Response, Responses, text_ranks

__all__ = [
    "NO_ANSWER",
    "REPLY_STATUSES",
    "SCHEMA",
    "STATUSES",
    "Response",
    "Responses",
    "Run",
    "text_ranks",
]

"""What came back, and how it is read."""

from typing import TYPE_CHECKING

from unslant.responses.checks import REPLY_STATUSES, STATUSES
from unslant.responses.importers.label_scores import load_recorded
from unslant.responses.run import Run
from unslant.responses.table import SCHEMA, Response, Responses, text_ranks

if TYPE_CHECKING:
    from unslant.responses.extraction import Extracted, chosen_contents, extract, extract_labels, extract_verdict

__all__ = [
    "REPLY_STATUSES",
    "SCHEMA",
    "STATUSES",
    "Extracted",
    "Response",
    "Responses",
    "Run",
    "chosen_contents",
    "extract",
    "extract_labels",
    "extract_verdict",
    "load_recorded",
    "text_ranks",
]


def __getattr__(name: str) -> object:
    """The readers of replies, imported when first asked for: their patterns take 0.15 s to compile."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from unslant.responses import extraction

    return getattr(extraction, name)

"""Read replies in words: the answer that a reply gives to one presentation of a question.

A reply is cleaned (:mod:`text`), every mention of an option in it becomes one character (:mod:`grammar`,
:mod:`collapse`), mentions that it does not assert are masked (:mod:`reading`), and the first rule that applies reads it
(:mod:`choice`, :mod:`explicit`, :mod:`verdict`). A second model may read what no rule does (:mod:`judge`). The words of
the rules are data, a file a language (``cues/``).

Examples:
    >>> from unslant.replies import extract_labels
    >>> sorted(extract_labels("The answer is (B), not (A).", "ABCD").labels)
    ['B']
"""

from unslant.replies.choice import extract_labels
from unslant.replies.extraction import (
    RecordedReply,
    chosen_contents,
    conflicting_contents,
    extract,
    read_open,
    read_replies,
    stated_confidence,
)
from unslant.replies.preference import extract_preference
from unslant.replies.reading import VERDICTS, Extracted
from unslant.replies.verdict import extract_verdict

__all__ = [
    "VERDICTS", "Extracted", "RecordedReply", "chosen_contents", "conflicting_contents", "extract", "extract_labels",
    "extract_preference", "extract_verdict",
    "read_open", "read_replies", "stated_confidence",
]  # fmt: skip

"""What a reader of replies returns."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Extracted:
    """What was read from a reply.

    Attributes:
        status: one of ``unslant.responses.STATUSES``; here ``ok`` (an answer), ``unparsed`` or ``refused``.
        labels: the labels chosen; with ``ok``, empty means "no option is right".
        rule: the rule it was read by, or why there is no answer, for the record.
    """

    status: str
    labels: frozenset[str] = frozenset()
    rule: str = ""

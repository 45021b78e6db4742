"""Replies in the store: as scores are kept (:mod:`unslant.store.scores`), but each by itself.

No reply depends on what else is asked with it. So a call takes over, whenever it is begun or continued, what any other
call has got.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import ClassVar


@dataclass(frozen=True)
class KeptReply:
    """The reply to one prompt.

    Attributes:
        declined: the provider says that the model declined.
        tokens: of the prompt, of the reply, and those of the latter that were reasoning; None where not told.
        by: the model and the system that the reply named.
    """

    table: ClassVar = "replies"
    column: ClassVar = "reply"
    independent: ClassVar = True

    text: str
    declined: bool = False
    tokens: tuple[int | None, int | None, int | None] = (None, None, None)
    by: tuple[str, str] = ("", "")

    def to_bytes(self) -> bytes:
        """JSON."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, blob: bytes) -> KeptReply:
        """What :meth:`to_bytes` wrote."""
        found = json.loads(blob)
        return cls(found["text"], found["declined"], tuple(found["tokens"]), tuple(found.get("by", ("", ""))))

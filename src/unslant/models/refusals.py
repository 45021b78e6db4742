"""Parts of a chat's request that a server does not take: learned from its refusals, and left out from then on."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from unslant.errors import ModelError
from unslant.prompts import FOLDED, Message, folded

LENGTHS = ("max_tokens", "max_completion_tokens")
"""Names for the length limit of a reply: the usual one, and that of servers which refuse it in chats."""
REFUSALS = {
    "max_tokens": re.compile("max_completion_tokens"),
    "temperature": re.compile(r"temperature\W.{0,60}(support|only|default|deprecated)"),
    "system": re.compile("system (role|message|prompt)|roles must alternate", re.IGNORECASE),
}
"""Part of a chat's request -> what the refusal of a server says that does not take it.

The length limit then goes by its other name, temperature stays what it is by default (1; models that reason take no
other), and the system message begins the user's first one (Gemma 2, Mistral).
"""
_Reply = TypeVar("_Reply")


@dataclass
class Refusals:
    """What one server does not take; requests are sent through :meth:`reply_to`.

    Attributes:
        parts: keys of :data:`REFUSALS`.
    """

    parts: set[str] = field(default_factory=set)

    @property
    def facts(self) -> dict[str, object]:
        """What a result must say about it, as :attr:`~unslant.models.base.ModelInfo.facts`."""
        return {"chat_template": (FOLDED,)} if "system" in self.parts else {}

    async def reply_to(
        self,
        body: Mapping[str, Any],
        send: Callable[[dict[str, Any]], Awaitable[_Reply]],
        refusal: type[Exception],
        given: Mapping[str, str],
    ) -> _Reply:
        """The reply to a request, which is sent again without what the server refuses.

        Args:
            body: the request; one without messages is sent once, as it is.
            refusal: the error that ``send`` raises if the server refuses.
            given: parts that stay, because the user chose them -> what to do if the server refuses them.

        Raises:
            ModelError: if the server refuses a part in ``given``.
            Exception: the ``refusal``, if the server refuses for another reason.
        """
        refused: set[str] = set()
        while True:
            refused |= self.parts
            try:
                reply = await send(_without(refused, body) if "messages" in body else dict(body))
            except refusal as error:
                named = {part for part, words in REFUSALS.items() if words.search(str(error))}
                self.parts |= refused - named  # without these, it refuses something else
                if insisted := sorted(named.intersection(given)):
                    raise ModelError(f"{error}: {given[insisted[0]]}") from error
                if named <= refused or "messages" not in body:
                    raise
                refused |= named
            else:
                self.parts |= refused  # only now: the refusal may have been about something else
                return reply


def _without(refused: Collection[str], body: Mapping[str, Any]) -> dict[str, Any]:
    """A chat's request in the form for a server that refuses these parts."""
    request = dict(body)
    usual, other = LENGTHS
    if "system" in refused:
        turns = [Message(turn["role"], turn["content"]) for turn in body["messages"]]
        request["messages"] = [asdict(message) for message in folded(turns)]
    if usual in refused and usual in request:
        request.setdefault(other, request.pop(usual))
    if "temperature" in refused:
        request.pop("temperature", None)
    return request

"""Asks a model that answers in words: a reply is probability 1 for the option it names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unslant.arrays import Floats
from unslant.asking import Progress, generate_all, no_progress
from unslant.debiasing.asker import Asker
from unslant.errors import MostlyFailedError
from unslant.models import ChatModel, Cost
from unslant.presentations import ALPHABETS, Presentation
from unslant.prompts import Writer
from unslant.replies import extract


class ReplyAsker(Asker):
    """Asks for replies. One that is no answer, or never came, has probability 0 for every label.

    Attributes:
        replies, unanswered, failed: requests made; replies that are no answer; requests that got no reply.
        last_error: why the last of these failed.
    """

    in_words = True

    def __init__(
        self,
        model: ChatModel,
        writer: Writer,
        alphabet: tuple[str, ...] = ALPHABETS["A"],
        *,
        progress: Progress = no_progress,
    ) -> None:
        self.chat, self.alphabet = model, alphabet
        self.replies = self.unanswered = self.failed = 0
        self.last_error = ""
        self._writer, self._progress = writer, progress

    @property
    def cost(self) -> Cost:
        """Requests as prompts, and the tokens of prompts and replies together, as far as they are counted."""
        spent = self.chat.cost
        return Cost(tokens=spent.input_tokens + spent.output_tokens, prompts=spent.requests)

    @property
    def notes(self) -> tuple[str, ...]:  # type: ignore[override]
        """What was no answer so far."""
        found = ((self.unanswered, "replies are no answer"), (self.failed, "requests got no reply"))
        return tuple(f"{n:,} of {self.replies:,} {what}; they have no vote" for n, what in found if n)

    @property
    def mostly_failed(self) -> str:  # type: ignore[override]
        """See :class:`Asker`."""
        if self.unanswered and self.unanswered + self.failed == self.replies:
            return f"none of {self.replies:,} replies of {self.chat.name} is an answer"
        if 2 * self.failed <= self.replies:
            return ""
        return f"{self.failed:,} of {self.replies:,} requests to {self.chat.name} failed ({self.last_error})"

    def ask(self, presentations: Sequence[Presentation]) -> list[Floats]:
        """See :meth:`Asker.ask`.

        Raises:
            MostlyFailedError: if no request got a reply.
        """
        cue = self._writer.template.render("cloze.cue")
        prompts = [self._writer.prompt(presentation, cue, ()) for presentation in presentations]
        replies = generate_all(self.chat, prompts, progress=self._progress)
        failed = [reply.error for reply in replies if reply.text is None]
        if failed and len(failed) == len(replies):
            raise MostlyFailedError(f"{self.chat.name}: no request got a reply ({failed[-1]})")
        self.replies, self.failed = self.replies + len(replies), self.failed + len(failed)
        self.last_error = failed[-1] if failed else self.last_error
        found = []
        for presentation, reply in zip(presentations, replies, strict=True):
            probs = np.zeros(len(presentation.labels))
            if reply.text is not None and not reply.declined:
                named = extract(reply.text, presentation).labels
                if len(named) == 1:
                    probs[[label in named for label in presentation.labels]] = 1.0
            self.unanswered += reply.text is not None and not probs.any()
            found.append(probs)
        return found

"""A second model that reads replies in which the patterns found no answer; see :mod:`unslant.replies.judge`."""

from __future__ import annotations

from collections.abc import Sequence

from unslant.asking import Progress, generate_all, no_progress
from unslant.models import ChatModel, GenerateOptions
from unslant.prompts import Message, Prompt
from unslant.replies import Extracted
from unslant.replies.judge import MAX_TOKENS, VALIDATION, judge_prompt, read_judgement, validate

CERTAIN = GenerateOptions(temperature=0.0, max_tokens=MAX_TOKENS)
"""How a judge is asked."""


class ReplyJudge:
    """A judge, validated when it is made.

    Args:
        model: opened with :data:`CERTAIN`.

    Attributes:
        report: how it did on the validation cases.

    Raises:
        ModelError: if there is no use in asking it.
    """

    def __init__(self, model: ChatModel, progress: Progress = no_progress) -> None:
        self.model, self._progress = model, progress
        said = self._said([case.prompt for case in VALIDATION], "validating the judge")
        self.failed = said.count(None)
        self.report = validate([text or "" for text in said])

    def read(self, replies: Sequence[tuple[str, Sequence[str], Sequence[str]]]) -> list[Extracted | None]:
        """The answer in each reply (text, labels it may choose, texts of the options); None where the judge gave no
        reply, or failed its validation."""
        if not self.report.passed:
            return [None] * len(replies)
        said = self._said([judge_prompt(*reply) for reply in replies], "judging")
        self.failed += said.count(None)
        return [
            None if text is None else read_judgement(text, labels)
            for text, (_, labels, _) in zip(said, replies, strict=True)
        ]

    @property
    def notes(self) -> list[str]:
        """What a report must say of it."""
        found = []
        if not self.report.passed:
            found.append(
                f"judge {self.model.name} is not used: it read {self.report.right} of {self.report.n} replies right"
            )
        if self.failed:
            found.append(f"the judge gave no reply to {self.failed:,} requests; these replies stay unparsed")
        return found

    def _said(self, asked: Sequence[str], phase: str) -> list[str | None]:
        prompts = [Prompt("", (), (Message("user", text),)) for text in asked]
        return [reply.text for reply in generate_all(self.model, prompts, progress=self._progress, phase=phase)]

"""A chat model that reads the question off its prompt and replies by a rule."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from tests.fakes import FakeChat
from unslant.models.chat import Reply
from unslant.prompts import Prompt

Replier = Callable[[str, list[str], list[str]], str | None]
"""From the stem, the labels and the option texts as shown, to the reply; None if none comes."""


class RuleChat(FakeChat):
    """Replies by a rule; every reply counts 10 tokens in and 2 out. ``asked`` are the prompts it was asked."""

    def __init__(self, rule: Replier, name: str = "talker") -> None:
        super().__init__(name)
        self.rule = rule
        self.asked: list[str] = []

    def replies_to(self, prompts: Sequence[Prompt]) -> Iterator[Reply]:
        for index, prompt in enumerate(prompts):
            text = prompt.messages[-1].content if prompt.messages else prompt.text
            self.asked.append(text)
            stem = re.findall(r"Question: (.*)", text)[-1]
            lines = re.findall(r"^(\S+)\. (.*)$", text, flags=re.M)
            said = self.rule(stem, [label for label, _ in lines], [option for _, option in lines])
            yield Reply(index, said, "" if said is not None else "no luck", input_tokens=10, output_tokens=2)

"""Models whose power may be cut, and the ids of the runs that the store lists."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from tests.command_line import Ran
from tests.fakes import RuleModel
from unslant.models.base import Scored
from unslant.prompts import Prompt

Run = Callable[..., Ran]


class Model(RuleModel):
    """Likes A; its power may be cut after so many prompts."""

    def __init__(self, prompts_left: int = 10**9, error: BaseException | None = None, name: str = "rule") -> None:
        super().__init__(lambda stem, labels, texts: [3.0] + [1.0] * (len(labels) - 1), name)
        self.prompts_left = prompts_left
        self.error = error or KeyboardInterrupt()

    def score(self, prompts: Sequence[Prompt]) -> Iterator[Scored]:
        for scored in super().score(prompts):
            if self.prompts_left == 0:
                raise self.error
            self.prompts_left -= 1
            yield scored


def run_ids(unslant: Run) -> list[str]:
    return [line.split()[0] for line in unslant("runs", "list").out.splitlines()[1:]]


class Guesser(Model):
    """Answers any prompt by its letters."""

    def score(self, prompts: Sequence[Prompt]) -> Iterator[Scored]:
        for index, prompt in enumerate(prompts):
            self.seen.append(prompt)
            numbers = [zlib.crc32((prompt.text + text).encode()) for text in prompt.continuations]
            yield Scored(index, np.log([(1 + number % 97) / 100 for number in numbers]))

"""The elicitation of decision endpoints: servers that render the question, label its options and answer by option."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unslant.arrays import Floats
from unslant.errors import InputError
from unslant.presentations import ALPHABETS, Presentation
from unslant.prompts.elicitation import Writer
from unslant.prompts.prompt import Prompt

STATE = "Answer the question."
"""What a question without a passage is about; the formats require a text."""
_UNSHOWN = ("instruction", "hint", "distractor", "none_label")


@dataclass(frozen=True)
class Decision:
    """The question, its passage and its options in shown order; their labels and all other words are the server's."""

    name: str = "decision"

    @classmethod
    def of(cls, writer: Writer) -> Decision:
        """In place of ``writer``.

        Raises:
            InputError: if it words prompts otherwise than by default, which no server would show.
        """
        given = {"--template": writer.template.name != "plain", "--chat": writer.chat, "--to-end": writer.to_end}
        if useless := [flag for flag, is_given in given.items() if is_given]:
            raise InputError(
                f"a decision endpoint words the prompt itself: leave out {' and '.join(useless)}, which would have no "
                "effect"
            )
        return cls()

    def prompts(self, presentation: Presentation) -> list[Prompt]:
        """One request.

        Raises:
            InputError: if the presentation has anything that the request cannot show.
        """
        place = f"question {presentation.question_id!r}"
        if presentation.shots:
            raise InputError("a decision endpoint takes no worked examples: leave out --shots")
        n = len(presentation.shown)
        if tuple(option.label for option in presentation.shown) != ALPHABETS["A"][:n]:
            raise InputError(f"{place}: a decision endpoint labels the options itself: leave out --labels")
        if unshown := [name for name in _UNSHOWN if getattr(presentation, name)]:
            raise InputError(f"{place}: a decision endpoint cannot show its {unshown[0].replace('_', ' ')}")
        options = tuple(option.text for option in presentation.shown)
        state = presentation.context or STATE
        return [Prompt(presentation.stem, options, group=presentation.question_id, state=state)]

    def read(self, presentation: Presentation, scores: Sequence[Floats]) -> Floats:
        return np.asarray(scores[0], dtype=np.float64)

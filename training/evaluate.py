"""Measure a reference model against what was planted, with plain ``transformers`` and not with unslant's engine."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from training.world import TAUGHT_SOURCE, question_sets
from unslant.presentations import ALPHABETS, Presentation, present
from unslant.prompts import Cloze, Writer
from unslant.prompts.templates import load_template
from unslant.questions.question import Question


class PlainScorer:
    """Label log-probabilities of a model folder, one right-padded batch at a time; labels must be single tokens."""

    def __init__(self, folder: Path | str, template: str = "plain") -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self._torch = torch
        self.tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        self.model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        self.elicitation = Cloze(Writer(load_template(template)))

    def score(self, presentations: Sequence[Presentation], batch: int = 64) -> list[NDArray[np.float64]]:
        """Natural-log probability of each presentation's labels over the whole vocabulary."""
        torch = self._torch
        scores = []
        for start in range(0, len(presentations), batch):
            part = [self.elicitation.prompts(p)[0] for p in presentations[start : start + batch]]
            rows = [self.tokenizer(prompt.text, add_special_tokens=False).input_ids for prompt in part]
            length = max(map(len, rows))
            ids = torch.tensor([row + [self.tokenizer.pad_token_id] * (length - len(row)) for row in rows])
            last = torch.tensor([len(row) - 1 for row in rows])
            with torch.inference_mode():
                hidden = self.model.model(input_ids=ids).last_hidden_state[torch.arange(len(rows)), last]
                logprobs = self.model.lm_head(hidden).double().log_softmax(-1).numpy()
            for row, prompt in zip(logprobs, part, strict=True):
                tokens = [self.tokenizer(c, add_special_tokens=False).input_ids for c in prompt.continuations]
                scores.append(row[[ids[0] for ids in tokens]])
        return scores


def _share(values: Sequence[bool]) -> float:
    return round(float(np.mean(values)), 4)


def measure(
    folder: Path | str, questions: Sequence[Question] | None = None, orders: int = 4, seed: int = 0
) -> dict[str, Any]:
    """Accuracy on taught and untaught questions, and shares of chosen labels and positions on untaught ones.

    Every question is shown in its given order, in ``orders`` random orders, and in as many with the labels reversed.
    """
    questions = question_sets()[0] if questions is None else questions
    rng = random.Random(seed)
    shown: list[tuple[str, Question, Presentation]] = []
    for question in questions:
        n = len(question.options)
        shown.append(("given", question, present(question)))
        for _ in range(orders):
            order = rng.sample(range(n), n)
            shown.append(("random", question, present(question, order)))
            shown.append(("reversed", question, present(question, order, labels=ALPHABETS["A"][:n][::-1])))
            shown.append(("digits", question, present(question, order, ALPHABETS["1"])))
    scores = PlainScorer(folder).score([presentation for _, _, presentation in shown])
    result: dict[str, Any] = {}
    for kind in ("given", "random", "reversed", "digits"):
        rows = [(q, p, int(s.argmax()), s) for (k, q, p), s in zip(shown, scores, strict=True) if k == kind]
        taught = [row for row in rows if row[0].source == TAUGHT_SOURCE]
        untaught = [row for row in rows if row[0].source != TAUGHT_SOURCE]
        four = [row for row in untaught if len(row[0].options) == 4]
        result[kind] = {
            "taught accuracy": _share([p.contents[c] in p.answers for _, p, c, _ in taught]),
            "untaught accuracy": _share([p.contents[c] in p.answers for _, p, c, _ in untaught]),
            "untaught first label": _share([p.labels[c] in ("A", "1") for _, p, c, _ in untaught]),
            "untaught last position": _share([c == len(p.shown) - 1 for _, p, c, _ in untaught]),
            "untaught positions of 4": [_share([c == i for _, _, c, _ in four]) for i in range(4)],
            "label mass": round(float(np.mean([np.exp(s).sum() for *_, s in rows])), 4),
        }
    return result

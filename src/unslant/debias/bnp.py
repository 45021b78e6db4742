"""BNP, bias node pruning: silence the hidden units that carry the bias (Choi et al. 2024)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unslant.asking import Asker
from unslant.debias.base import Method, OrderDebiaser
from unslant.debias.model_pass import loaded_model, run
from unslant.errors import InputError
from unslant.presentations import orders_for, present, question_rng
from unslant.questions import Question


@dataclass(frozen=True)
class BiasNodePruning(Method):
    """Zero the columns of the output head that work for the bias. Needs labels; one presentation a question.

    Questions whose orders are partly right and partly wrong (between 1:2 and 2:1) show the bias at work: b is the mean,
    over up to ``questions`` of them, of the mean final hidden state where the answer is wrong minus where it is right.
    Unit j scores b_j sum_v W[v, j], with W the output head, and the ``nodes`` units of highest score are zeroed on
    their way into the head, which is the same as zeroing the head's columns: weights, input embeddings tied to the head
    included, stay as they are.

    Args:
        nodes: units to prune (m).
        questions: most questions to use for b.
        orders: the orders a question is judged over, as ``--orders``.
        seed: of the sequence in which questions are tried, and of sampled orders.
    """

    nodes: int = 32
    questions: int = 32
    orders: str = "auto"
    seed: int = 0
    name = "bnp"
    needs_labels = needs_fit = needs_model = held_out = True

    def fit(self, asker: Asker, questions: Sequence[Question] = ()) -> PrunedModel:
        """Find the units.

        Raises:
            InputError: without a loaded model, with fewer hidden units than ``nodes``, or if no question is answered
                right under some orders and wrong under others.
        """
        model = loaded_model(asker, "BNP")
        head = model.model.get_output_embeddings().weight
        if not 0 < self.nodes < head.shape[1]:
            raise InputError(f"BNP: {self.nodes} nodes to prune, the model has {head.shape[1]} hidden units")
        differences = []
        for question in self._candidates(questions):
            difference = self._difference(asker, model, question)
            if difference is not None:
                differences.append(difference)
            if len(differences) == self.questions:
                break
        if not differences:
            raise InputError(
                f"BNP: none of {len(questions)} questions is right under some orders and wrong under others (between "
                "1:2 and 2:1), so there is no bias to find; give more, or harder, questions with right answers"
            )
        bias = torch.stack(differences).mean(dim=0)
        score = bias * head.detach().sum(dim=0).double()
        units = torch.topk(score, self.nodes).indices
        note = f"bias vector from {len(differences)} questions; {self.nodes} of {head.shape[1]} units pruned"
        return PrunedModel(asker, model, units, (note,))

    def _candidates(self, questions: Sequence[Question]) -> list[Question]:
        usable = sorted((q for q in questions if q.answers and len(q.movable) > 1), key=lambda q: q.id)
        question_rng("", self.seed, "bnp").shuffle(usable)
        return usable

    def _difference(self, asker: Asker, model: Any, question: Question) -> Tensor | None:
        """Mean hidden state where wrong minus where right; nothing for questions that are mostly either."""
        assert asker.elicitation is not None
        shown = [present(question, order, asker.alphabet) for order in orders_for(question, self.orders, self.seed)]
        prompts = [prompt for presentation in shown for prompt in asker.elicitation.prompts(presentation)]
        if len(prompts) != len(shown):
            raise InputError("BNP reads the hidden state at the answer: ask by cloze, one prompt a presentation")
        with torch.inference_mode():
            found = run(model.model, model.encode(prompts), tree=model.engine == "tree")
        model.cost.tokens += found.tokens
        model.cost.prompts += len(prompts)
        model.cost.forwards += 1
        right = np.asarray(
            [
                presentation.contents[int(scores.argmax())] in question.answers
                for presentation, scores in zip(shown, found.logprobs, strict=True)
            ]
        )
        correct, wrong = int(right.sum()), int((~right).sum())
        if not (correct and wrong and 0.5 <= correct / wrong <= 2):
            return None
        hidden = found.hidden.double().clone()
        at = torch.from_numpy(right).to(hidden.device)
        return hidden[~at].mean(dim=0) - hidden[at].mean(dim=0)


class PrunedModel(OrderDebiaser):
    """Answers with the units silenced, until closed.

    Attributes:
        units: (nodes,) indices of the pruned hidden units, highest score first.
    """

    def __init__(self, asker: Asker, model: Any, units: Tensor, notes: tuple[str, ...] = ()) -> None:
        super().__init__(asker, notes)
        self.units = units
        keep = torch.ones(model.model.get_output_embeddings().weight.shape[1], device=units.device)
        keep[units] = 0
        self._handle: Any = model.model.get_output_embeddings().register_forward_pre_hook(
            lambda _, inputs: (inputs[0] * keep.to(inputs[0].device, inputs[0].dtype), *inputs[1:])
        )
        asker.forget()

    def close(self) -> None:
        if self._handle is not None:
            self._handle.remove()
            self._handle = None
            self.asker.forget()

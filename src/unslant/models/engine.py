"""Two ways to score token sequences with one model: through the prefix tree, and plainly (the reference)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unslant.models import attention
from unslant.models.base import Cost
from unslant.models.tokenization import Encoded, Ids
from unslant.models.tree import Batch, plan

Result = tuple[int, NDArray[np.float64]]
"""Index of a prompt and the log-probability of each of its candidates."""

_LOGIT_ELEMENTS = 1 << 26  # logits held at once: 256 MiB in float32


class TreeEngine:
    """Scores through the prefix tree, every distinct node once (see :mod:`unslant.models.tree`).

    Exact: results equal those of :class:`PlainEngine` to float tolerance. Keys and values of the beginning that a
    call's prompts share are kept for the next call, until weights change.
    """

    def __init__(self, model: Any, token_budget: int, flex: bool = False) -> None:
        self.model = model
        self.token_budget = token_budget
        self.flex = flex
        self._known: Ids = np.empty(0, dtype=np.int32)
        self._spine: list[tuple[Tensor, Tensor]] = []
        self._version = -1

    def score(self, encoded: Sequence[Encoded], cost: Cost) -> Iterator[Result]:
        """Score every prompt; adds to ``cost`` as batches run. Out of memory raises, with what is done yielded."""
        if not encoded:
            return
        version = sum(parameter._version for parameter in self.model.parameters())
        if version != self._version:
            self.reset()
            self._version = version
        row_budget = max(1, _LOGIT_ELEMENTS // _vocabulary(self.model))
        layout = plan(encoded, self.token_budget, row_budget, self._known)
        first = layout.first_candidate
        sums = np.zeros(first[-1])
        spine = _truncated(self._spine, layout.batches[0].spine)
        self.reset()
        for batch in layout.batches:
            scores, spine = self._run(batch, spine)
            np.add.at(sums, batch.read_candidate, scores)
            cost.tokens += len(batch)
            cost.forwards += 1
            for prompt in batch.done:
                cost.prompts += 1
                yield prompt, sums[first[prompt] : first[prompt + 1]].copy()
        if layout.batches[-1].keep:
            self._spine, self._known = spine, layout.preamble[: layout.batches[-1].keep]

    def reset(self) -> None:
        """Forget what was kept from earlier calls."""
        self._spine, self._known = [], np.empty(0, dtype=np.int32)

    def _run(self, batch: Batch, spine: list[tuple[Tensor, Tensor]]) -> tuple[NDArray[np.float64], list[Any]]:
        with using(self.model, attention.NAME), torch.inference_mode():
            logits, rows, context = self.forward(batch, spine)
            device = logits.device
            total = torch.logsumexp(logits, dim=-1)
            row = torch.from_numpy(rows).to(device)
            token = torch.tensor(batch.read_token, device=device)
            scores = logits[row, token] - total[row]
            return scores.double().cpu().numpy(), context.keep

    def forward(
        self, batch: Batch, spine: list[tuple[Tensor, Tensor]]
    ) -> tuple[Tensor, NDArray[np.int64], attention.TreeContext]:
        """One pass: float32 logits at the rows that are read, and which of those rows each read uses.

        Differentiable when gradients are enabled. The model must be set to the tree attention (:func:`using`).
        """
        device = _device(self.model)
        context = attention.TreeContext(batch, device, spine, flex=self.flex)
        needed, rows = np.unique(np.asarray(batch.read_row, dtype=np.int64), return_inverse=True)
        with attention.active(context):
            output = self.model(
                input_ids=torch.from_numpy(batch.ids).to(device, torch.long)[None],
                position_ids=context.depth[None],
                logits_to_keep=torch.from_numpy(needed).to(device),
                use_cache=False,
            )
        if context.calls == 0:
            raise NotImplementedError("the model does not use the attention interface")
        return output.logits[0].float(), rows, context


class PlainEngine:
    """Scores whole prompts in padded batches, sorted by length: the reference, and the fallback."""

    def __init__(self, model: Any, token_budget: int) -> None:
        self.model = model
        self.token_budget = token_budget

    def reset(self) -> None:
        """Nothing is kept between calls."""

    def score(self, encoded: Sequence[Encoded], cost: Cost) -> Iterator[Result]:
        """Score every prompt; see :meth:`TreeEngine.score`."""
        if not encoded:
            return
        order = sorted(range(len(encoded)), key=lambda i: len(encoded[i].context))
        for indices in self._batches(encoded, order):
            for prompt, scores in self._run(encoded, indices, cost):
                cost.prompts += 1
                yield prompt, scores

    def _batches(self, encoded: Sequence[Encoded], order: Sequence[int]) -> Iterator[list[int]]:
        vocabulary = _vocabulary(self.model)
        batch: list[int] = []
        longest = rows = 0
        for i in order:
            own = len(_sequences(encoded[i]))
            length = max(len(ids) for ids in _sequences(encoded[i]))
            wide = (rows + own) * max(longest, length) > self.token_budget
            if batch and (wide or (rows + own) * vocabulary > _LOGIT_ELEMENTS):
                yield batch
                batch, longest, rows = [], 0, 0
            batch.append(i)
            longest, rows = max(longest, length), rows + own
        yield batch

    def _run(self, encoded: Sequence[Encoded], indices: Sequence[int], cost: Cost) -> Iterator[Result]:
        sequences: list[Ids] = []
        where: list[list[int]] = []  # row of each candidate of each prompt
        for i in indices:
            own: dict[bytes, int] = {}
            for ids in _sequences(encoded[i]):
                own.setdefault(ids.tobytes(), len(sequences) + len(own))
            sequences += _sequences(encoded[i])
            context = encoded[i].context
            where.append([own[np.concatenate([context, ids[:-1]]).tobytes()] for ids in encoded[i].candidates])
        lengths = [len(ids) for ids in sequences]
        device = _device(self.model)
        padded = torch.zeros(len(sequences), max(lengths), dtype=torch.long)
        mask = torch.zeros_like(padded)
        for r, sequence in enumerate(sequences):
            padded[r, : lengths[r]] = torch.from_numpy(sequence)
            mask[r, : lengths[r]] = 1
        columns = sorted(
            {len(encoded[i].context) - 1 + j for i in indices for c in encoded[i].candidates for j in range(len(c))}
        )
        with torch.inference_mode():
            logits = self.model(
                input_ids=padded.to(device),
                attention_mask=mask.to(device),
                logits_to_keep=torch.tensor(columns, device=device),
                use_cache=False,
            ).logits
        cost.tokens += sum(lengths)
        cost.forwards += 1
        column_of = {column: c for c, column in enumerate(columns)}
        for i, candidate_rows in zip(indices, where, strict=True):
            start = len(encoded[i].context) - 1
            scores = np.empty(len(candidate_rows))
            for c, (row, tokens) in enumerate(zip(candidate_rows, encoded[i].candidates, strict=True)):
                at = [column_of[start + j] for j in range(len(tokens))]
                logprobs = torch.log_softmax(logits[row, at].float(), dim=-1)
                chosen = torch.from_numpy(tokens).to(device, torch.long)[:, None]
                scores[c] = float(logprobs.gather(1, chosen).double().sum())
            yield i, scores


def _sequences(item: Encoded) -> list[Ids]:
    """The distinct sequences that must be run for one prompt alone."""
    found = {ids[:-1].tobytes(): ids[:-1] for ids in item.candidates}
    return [np.concatenate([item.context, ids]) for ids in found.values()]


def _truncated(spine: list[tuple[Tensor, Tensor]], length: int) -> list[tuple[Tensor, Tensor]]:
    return [(k[:, :length], v[:, :length]) for k, v in spine]


def _vocabulary(model: Any) -> int:
    return int(model.get_output_embeddings().weight.shape[0])


def _device(model: Any) -> torch.device:
    return torch.device(model.get_input_embeddings().weight.device)


@contextmanager
def using(model: Any, implementation: str) -> Iterator[None]:
    """Run ``model`` with another attention implementation, then give it back its own.

    Raises:
        NotImplementedError: if the model's class does not let its attention be exchanged.
    """
    base = model.get_base_model() if hasattr(model, "peft_config") else model
    before = base.config._attn_implementation
    if not base._can_set_attn_implementation():
        raise NotImplementedError(f"{type(base).__name__} does not use the attention interface")
    base.set_attn_implementation(implementation)
    try:
        yield
    finally:
        base.set_attn_implementation(before)

"""One pass of a loaded model with everything in sight: scores that gradients flow through, and hidden states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from unslant.asking import Asker
from unslant.errors import InputError
from unslant.models.base import Encoded, Ids
from unslant.models.hf import attention
from unslant.models.hf.engine import TreeEngine, padded, using
from unslant.models.hf.output import float32_output
from unslant.models.hf.tree import plan

if TYPE_CHECKING:
    from unslant.models.hf.model import TransformersModel

_UNLIMITED = 1 << 30
_Reads = tuple[list[int], list[int], list[int]]
"""For every score read: row of logits, token id scored, candidate it counts for."""


def loaded_model(asker: Asker, what: str) -> TransformersModel:
    """The loaded model behind an asker.

    Raises:
        InputError: naming ``what`` needs it, if there is none or it cannot be looked into.
    """
    from unslant.models.hf.model import TransformersModel

    # A store of earlier responses in front of the model would keep the changed model's scores as its own.
    if not isinstance(asker.model, TransformersModel):
        raise InputError(f"{what} works inside the model: give a loaded model (not recorded responses or a server)")
    return asker.model


@dataclass(frozen=True)
class ModelPass:
    """What one pass gives.

    Attributes:
        logprobs: per prompt, (candidates,) natural-log probability of each continuation over the whole vocabulary.
        hidden: (prompts, hidden size) what the output head is given where the answer begins.
        tokens: tokens computed.
    """

    logprobs: list[Tensor]
    hidden: Tensor
    tokens: int


def run(model: Any, encoded: Sequence[Encoded], *, tree: bool = True, flex: bool = False) -> ModelPass:
    """Score all prompts in one pass, through the prefix tree or plainly; differentiable if gradients are enabled."""
    with _head_input(model) as seen:
        if tree:
            (batch,) = (layout := plan(encoded, _UNLIMITED, _UNLIMITED)).batches
            with using(model, attention.NAME):
                logits, rows, _ = TreeEngine(model, _UNLIMITED, flex=flex).forward(batch, [])
            reads = rows.tolist(), batch.read_token, batch.read_candidate
            first, tokens = layout.first_candidate, len(batch)
        else:
            logits, reads, first, tokens = _plain(model, encoded)
        (hidden,) = seen
    row, token, candidate = reads
    device = logits.device
    at = torch.as_tensor(np.asarray(row), device=device)
    scores = logits[at, torch.as_tensor(token, device=device)] - torch.logsumexp(logits, dim=-1)[at]
    where = torch.as_tensor(candidate, device=device)
    sums = torch.zeros(first[-1], device=device, dtype=scores.dtype).index_add(0, where, scores)
    starts = _answer_rows(np.asarray(row), np.asarray(candidate), first)
    flat = hidden.reshape(-1, hidden.shape[-1])
    return ModelPass(
        [sums[first[i] : first[i + 1]] for i in range(len(encoded))],
        flat[torch.as_tensor(starts, device=device)],
        tokens,
    )


def _answer_rows(row: Any, candidate: Any, first: Sequence[int]) -> Any:
    """Row read for the first token of every prompt's first candidate: reads of a candidate are in text order."""
    order = np.argsort(candidate, kind="stable")
    return row[order[np.searchsorted(candidate[order], np.asarray(first[:-1]))]]


def _plain(model: Any, encoded: Sequence[Encoded]) -> tuple[Tensor, _Reads, list[int], int]:
    """Every prompt with every candidate as a padded row of its own; logits at the tokens that are read."""
    sequences: list[Ids] = []
    places, tokens, candidates, first = [], [], [], [0]
    for item in encoded:
        for ids in item.candidates:
            for j, token in enumerate(ids.tolist()):
                places.append((len(sequences), len(item.context) - 1 + j))
                tokens.append(token)
                candidates.append(len(sequences))
            sequences.append(np.concatenate([item.context, ids[:-1]]))
        first.append(len(sequences))
    device = model.get_input_embeddings().weight.device
    inputs, mask = padded(sequences, device)
    with float32_output(model):
        output = model(input_ids=inputs, attention_mask=mask, use_cache=False).logits
    flat = [r * inputs.shape[1] + column for r, column in places]
    return output.reshape(-1, output.shape[-1]).float(), (flat, tokens, candidates), first, int(mask.sum())


@contextmanager
def _head_input(model: Any) -> Iterator[list[Tensor]]:
    """Catches what the output head is given while the block runs."""
    seen: list[Tensor] = []
    handle = model.get_output_embeddings().register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    try:
        yield seen
    finally:
        handle.remove()

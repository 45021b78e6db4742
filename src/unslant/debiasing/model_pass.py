"""One pass of a loaded model that returns hidden states and differentiable scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unslant.debiasing.asker import Asker
from unslant.errors import InputError
from unslant.models.base import Encoded, Ids
from unslant.models.hf import attention, plan
from unslant.models.hf.engine import TreeEngine, float32_output, padded, using
from unslant.models.hf.model import TransformersModel
from unslant.presentations import Presentation

_UNLIMITED = 1 << 30


def loaded_model(asker: Asker, what: str) -> TransformersModel:
    """The loaded model behind an asker; InputError saying that ``what`` needs one, if there is none."""
    # A store in front of the model asks for its identity at every call, so that a model changed here shares no scores.
    model = asker.model.unwrapped if asker.model else None
    if not isinstance(model, TransformersModel):
        raise InputError(f"{what} works inside the model: give a loaded model (not recorded responses or a server)")
    return model


@dataclass(frozen=True)
class ModelPass:
    """The result of one pass.

    Attributes:
        logprobs: per prompt, (candidates,) natural-log probability of each continuation over the whole vocabulary.
        hidden: (prompts, hidden size) input of the output head where the answer begins.
        tokens: number of tokens computed.
    """

    logprobs: list[Tensor]
    hidden: Tensor
    tokens: int


def label_pass(asker: Asker, presentations: Sequence[Presentation], what: str, *, tree: bool = True) -> ModelPass:
    """The labels of all presentations scored in one pass of the asker's model, whose cost it adds to.

    Raises:
        InputError: saying that ``what`` asks by cloze, if the asker has another elicitation or no loaded model.
    """
    model = loaded_model(asker, what)
    assert asker.elicitation is not None
    prompts = [prompt for presentation in presentations for prompt in asker.elicitation.prompts(presentation)]
    if len(prompts) != len(presentations):
        raise InputError(f"{what} reads the labels where the answer begins: ask by cloze, one prompt per presentation")
    scored = run(model.model, model.encode(prompts), tree=tree and model.engine == "tree")
    asker.cost.tokens += scored.tokens
    asker.cost.prompts += len(prompts)
    asker.cost.forwards += 1
    return scored


def run(model: Any, encoded: Sequence[Encoded], *, tree: bool = True) -> ModelPass:
    """Score all prompts in one pass, through the prefix tree or plainly; differentiable if gradients are enabled."""
    seen: list[Tensor] = []
    with model.get_output_embeddings().register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0])):
        if tree:
            (batch,), first = plan(encoded, _UNLIMITED, _UNLIMITED)
            with using(model, attention.NAME):
                logits, rows, _ = TreeEngine(model, _UNLIMITED).forward(batch, [])
            reads = rows.tolist(), batch.read_token, batch.read_candidate
            tokens = len(batch)
        else:
            logits, reads, first, tokens = _plain(model, encoded)
    (hidden,) = seen
    row, token, candidate = map(np.asarray, reads)
    device = logits.device
    at = torch.as_tensor(row, device=device)
    scores = logits[at, torch.as_tensor(token, device=device)] - torch.logsumexp(logits, dim=-1)[at]
    where = torch.as_tensor(candidate, device=device)
    sums = torch.zeros(first[-1], device=device, dtype=scores.dtype).index_add(0, where, scores)
    # Reads of a candidate are in text order, so the answer begins at the first read of a prompt's first candidate.
    by_candidate = np.argsort(candidate, kind="stable")
    starts = row[by_candidate[np.searchsorted(candidate[by_candidate], np.asarray(first[:-1]))]]
    return ModelPass(
        [sums[first[i] : first[i + 1]] for i in range(len(encoded))],
        hidden.reshape(-1, hidden.shape[-1])[torch.as_tensor(starts, device=device)],
        tokens,
    )


def _plain(
    model: Any, encoded: Sequence[Encoded]
) -> tuple[Tensor, tuple[list[int], list[int], list[int]], list[int], int]:
    """Every prompt with every candidate as a padded row of its own.

    Returns:
        Logits; for every score read: its row of logits, the token scored, the candidate it counts for; each prompt's
        first candidate; tokens computed.
    """
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
    inputs, mask = padded(sequences, model.get_input_embeddings().weight.device)
    with float32_output(model):
        output = model(input_ids=inputs, attention_mask=mask, use_cache=False).logits
    flat = [r * inputs.shape[1] + column for r, column in places]
    return output.reshape(-1, output.shape[-1]).float(), (flat, tokens, candidates), first, int(mask.sum())

"""Auxiliary losses that help a small model to find the mechanism of multiple choice, and are then taken away.

Left to the answers alone, a model this small needs thousands of steps before it finds out that it has to look up which
line carries the value it has in mind. Each part of that mechanism is therefore asked for directly at first: know a
line's label at its text (after layer 1), know the true value where the answer is due (after layer 2), and look from
there at the line to be answered (attention of layer 3). Nothing of this remains in the shipped weights but its effect.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from training.batches import Batch

POINTING_HEADS = 2
"""Heads of the last layer that are asked to look at the line to be answered."""


class Scaffold(torch.nn.Module):
    """The auxiliary losses for one model; its own parameters are thrown away after training."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self._model = [model]  # in a list, so that the model's parameters are not counted as the scaffold's
        self.label = torch.nn.Linear(model.config.hidden_size, model.config.vocab_size)

    def forward(self, hidden_states: tuple[Tensor, ...], batch: Batch) -> dict[str, Tensor]:
        """Mean loss of each kind, given the hidden states before layer 1, after layer 1, and so on."""
        model = self._model[0]
        losses = {}
        if len(batch.lines):
            row, column, label = batch.lines.T
            losses["label"] = cross_entropy(self.label(hidden_states[1][row, column]), label)
        if len(batch.values):
            row, column, value = batch.values.T
            losses["value"] = cross_entropy(model.lm_head(model.model.norm(hidden_states[2][row, column])), value)
        if len(batch.pointers):
            losses["pointer"] = self._pointing(hidden_states[2], batch.pointers, batch.looks)
        return losses

    def _pointing(self, hidden: Tensor, pointers: Tensor, looks: Tensor) -> Tensor:
        from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

        inner = self._model[0].model
        layer = inner.layers[-1]
        x = layer.input_layernorm(hidden)
        shape = (*x.shape[:2], -1, layer.self_attn.head_dim)
        query, key = (proj(x).view(shape).transpose(1, 2) for proj in (layer.self_attn.q_proj, layer.self_attn.k_proj))
        cos, sin = inner.rotary_emb(x, torch.arange(x.shape[1])[None])
        query, key = apply_rotary_pos_emb(query, key, cos, sin)
        row, column, goal = pointers.T
        scores = torch.einsum("phd,phtd->pht", query[row, :POINTING_HEADS, column], key[row, :POINTING_HEADS])
        future = torch.arange(x.shape[1]) > column[:, None]
        scores = (scores * layer.self_attn.scaling).masked_fill(future[:, None], -torch.inf)
        attention = scores.log_softmax(-1)[torch.arange(len(goal)), :, goal].mean(-1)
        loss: Tensor = -(looks * attention).sum() / looks.sum()
        return loss

"""One pass over text that is not a line: segments with positions and a say in what they see.

A segment attends to itself (causally) and to the segments it names, whole; positions are given, so several segments may
stand side by side at the same place in the text. Small inputs only: the mask is dense.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unslant.models.base import Ids
from unslant.models.hf.engine import float32_output


@dataclass(frozen=True)
class Segment:
    """A run of tokens.

    Attributes:
        ids: token ids, at least one.
        position: position of the first one in the text.
        sees: indices of earlier segments that all its tokens attend to.
    """

    ids: Ids
    position: int
    sees: tuple[int, ...] = ()


def last_logits(model: Any, segments: Sequence[Segment], wanted: Sequence[int]) -> Tensor:
    """Float32 logits after the last token of the ``wanted`` segments, shape ``(len(wanted), vocabulary)``.

    The model sees everything in one forward pass through its ordinary attention with an explicit mask. Sliding windows
    are not applied.

    Raises:
        ValueError: if a segment is empty or names one that does not stand before it.
    """
    starts = np.cumsum([0, *(len(segment.ids) for segment in segments)])
    total = int(starts[-1])
    seen = torch.zeros(total, total, dtype=torch.bool)
    for i, segment in enumerate(segments):
        if not len(segment.ids) or any(not 0 <= j < i for j in segment.sees):
            raise ValueError(f"segment {i} is empty, or sees one that does not stand before it")
        own = slice(int(starts[i]), int(starts[i + 1]))
        seen[own, own] = torch.ones(len(segment.ids), len(segment.ids)).tril().bool()
        for j in segment.sees:
            seen[own, int(starts[j]) : int(starts[j + 1])] = True
    device, dtype = model.get_input_embeddings().weight.device, model.dtype
    mask = torch.zeros(total, total, dtype=dtype).masked_fill(~seen, torch.finfo(dtype).min)
    positions = np.concatenate([np.arange(s.position, s.position + len(s.ids)) for s in segments])
    rows = torch.as_tensor([int(starts[i + 1]) - 1 for i in wanted])
    with torch.inference_mode(), float32_output(model):
        output = model(
            input_ids=torch.from_numpy(np.concatenate([s.ids for s in segments])).to(device, torch.long)[None],
            attention_mask=mask[None, None].to(device),
            position_ids=torch.from_numpy(positions).to(device, torch.long)[None],
            logits_to_keep=rows.to(device),
            use_cache=False,
        )
    logits: Tensor = output.logits[0].float()
    return logits

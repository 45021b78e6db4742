"""Attention over a packed prefix tree: every token attends to its own root path, exactly.

The tokens of a batch are in depth-first order. Take any run of them: every token before the run that is an ancestor
of one of its tokens is an ancestor of its first token. So a run of queries needs the keys of one root path, and its own
keys under a mask: one small dense product, for which torch has a fused kernel. The only pairs outside a root path that
are multiplied at all lie in the run's own square.

The function is registered with the attention interface of transformers under :data:`NAME`; models then call
:func:`tree_attention` in place of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface

from unslant.models.hf import Batch

NAME = "unslant_tree"
_CHUNK = 64
"""Queries per run. Each run multiplies at most this many squared pairs that are not on one root path."""


@dataclass(slots=True)
class Chunk:
    """Queries ``[first, last)`` of a batch, and the keys they need: indices into ``[spine | batch]``."""

    first: int
    last: int
    keys: Tensor


@dataclass
class TreeContext:
    """What :func:`tree_attention` needs to know about the batch that is running.

    Attributes:
        spine: keys and values of the root path taken over, per layer, each of shape ``(kv_heads, spine, head_dim)``.
        flex: use FlexAttention, one kernel over the whole batch, in place of a product per run.
        keep: the root path to hand on, in the same form as ``spine``; filled as layers run.
        calls: number of attention layers that have called.
    """

    batch: Batch
    device: torch.device
    spine: list[tuple[Tensor, Tensor]]
    flex: bool = False
    keep: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    calls: int = 0

    def __post_init__(self) -> None:
        batch = self.batch
        self.depth = torch.from_numpy(batch.depth).to(self.device)
        self.keep_local = torch.from_numpy(batch.keep_local).to(self.device)
        self._end = torch.from_numpy(batch.end).to(self.device) + batch.spine
        self._key_depth = torch.cat([torch.arange(batch.spine, device=self.device), self.depth])
        self.chunks = [self._chunk(first) for first in range(0, len(batch), _CHUNK)]
        # All layers with one window share a mask; models such as gemma alternate between two kinds of layers.
        self._masks: dict[tuple[int, int | None, torch.dtype], Tensor] = {}
        self._blocks: dict[int | None, Any] = {}
        self._elsewhere: dict[torch.device, TreeContext] = {}

    def on(self, device: torch.device) -> TreeContext:
        """The same batch for layers on another device, as ``device_map`` spreads them."""
        if device == self.device:
            return self
        if device not in self._elsewhere:
            self._elsewhere[device] = TreeContext(self.batch, device, [], flex=self.flex)
        return self._elsewhere[device]

    def _chunk(self, first: int) -> Chunk:
        batch = self.batch
        last = min(len(batch), first + _CHUNK)
        # Earlier nodes whose descendants reach past ``first`` are its ancestors: that is what depth-first order buys.
        path = np.flatnonzero(batch.end[: batch.spine + first] > first)
        keys = np.concatenate([path, np.arange(batch.spine + first, batch.spine + last)])
        return Chunk(first, last, torch.from_numpy(keys).to(self.device))

    def mask(self, chunk: Chunk, window: int | None, dtype: torch.dtype) -> Tensor:
        """0 where the key is an ancestor within the window (or the token itself), else minus infinity.

        Shape ``(queries, keys)``. Added to the scores, so that the fused kernel and :func:`_attend` take the same mask.
        """
        key = (chunk.first, window, dtype)
        if key not in self._masks:
            query = torch.arange(chunk.first, chunk.last, device=self.device)[:, None] + self.batch.spine
            reached = (chunk.keys <= query) & (query < self._end[chunk.keys])
            if window is not None:  # counted in depths: neighbours in the batch may be far apart in the text
                reached &= self._key_depth[query] - self._key_depth[chunk.keys] < window
            zero = torch.zeros((), dtype=dtype, device=self.device)
            self._masks[key] = torch.where(reached, zero, -torch.inf)
        return self._masks[key]

    def block_mask(self, window: int | None) -> Any:
        """The same reach as a FlexAttention block mask over ``[spine | batch]`` keys."""
        if window not in self._blocks:
            from torch.nn.attention.flex_attention import create_block_mask

            n, spine = len(self.batch), self.batch.spine
            end, depth = self._end, self._key_depth

            def reach(b: Tensor, h: Tensor, q: Tensor, kv: Tensor) -> Tensor:
                ancestor = (kv <= q + spine) & (q + spine < end[kv])
                return ancestor if window is None else ancestor & (depth[q + spine] - depth[kv] < window)

            self._blocks[window] = create_block_mask(reach, None, None, n, n + spine, device=self.device)
        return self._blocks[window]


_active: TreeContext | None = None


@contextmanager
def active(context: TreeContext) -> Iterator[TreeContext]:
    """Make ``context`` the batch that :func:`tree_attention` serves; one thread at a time."""
    # A global, because models need not pass a caller's arguments on to their attention function.
    global _active
    if _active is not None:
        raise RuntimeError("a tree pass is already running")
    _active = context
    try:
        yield context
    finally:
        _active = None


def tree_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **_: Any,  # what transformers passes to every attention function, more with every version
) -> tuple[Tensor, None]:
    """Attend along root paths, in place of a model's own attention.

    ``query`` is ``(1, heads, N, head_dim)``, the result ``(1, N, heads, head_dim)``. Attention dropout is not applied:
    the pass scores, and in training only the adapter's own dropout acts.

    Raises:
        RuntimeError: outside a tree pass.
        NotImplementedError: if the model brings a mask of its own, which knows nothing of the tree.
    """
    context = _active
    if context is None:
        raise RuntimeError(f"attention {NAME!r} is for the prefix-tree engine: no tree pass is running")
    if attention_mask is not None or query.shape[0] != 1:
        raise NotImplementedError("the model has its own attention mask")
    layer = context.calls  # layers call in order, so their count says whose keys these are
    context.calls += 1
    if context.batch.spine:
        both = zip(context.spine[layer], (key, value), strict=True)
        k, v = (torch.cat([earlier[None].to(new.device), new], dim=2) for earlier, new in both)
    else:
        k, v = key, value
    here = context.on(key.device)
    if context.batch.keep:
        context.keep.append(_path_handed_on(here, k[0], v[0]))
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    if context.flex and s_aux is None:  # FlexAttention takes no sinks
        return _flex(here, query, k, v, scale, sliding_window, softcap), None
    parts = []
    for chunk in here.chunks:
        q = query[:, :, chunk.first : chunk.last]
        keys, values = k.index_select(2, chunk.keys), v.index_select(2, chunk.keys)
        mask = here.mask(chunk, sliding_window, q.dtype)
        if softcap is None and s_aux is None:
            out = scaled_dot_product_attention(
                q, keys, values, mask, scale=scale, enable_gqa=q.shape[1] != keys.shape[1]
            )
        else:
            out = _attend(q, keys, values, mask, scale, softcap, s_aux)
        parts.append(out.transpose(1, 2))
    return torch.cat(parts, dim=1), None


def _attend(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor, scale: float, softcap: float | None, sinks: Tensor | None
) -> Tensor:
    """What the fused kernel cannot do: capped scores (gemma 2), and a sink per head that takes its share (gpt-oss)."""
    grouped = q.view(q.shape[0], k.shape[1], -1, *q.shape[2:])
    scores = grouped * scale @ k.mT[:, :, None]
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    scores = scores + mask
    if sinks is not None:
        column = sinks.to(scores.dtype).view(1, k.shape[1], -1, 1, 1).expand(*scores.shape[:-1], 1)
        scores = torch.cat([scores, column], dim=-1)
    weights = torch.softmax(scores, dim=-1, dtype=torch.float32)[..., : k.shape[2]].to(v.dtype)
    return (weights @ v[:, :, None]).flatten(1, 2)


def _path_handed_on(context: TreeContext, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Keys and values of the root path handed on; ``k`` and ``v`` are those of ``[spine | batch]``."""
    from_spine = torch.arange(context.batch.keep - len(context.keep_local), device=k.device)
    path = torch.cat([from_spine, context.keep_local + context.batch.spine])
    return k.detach().index_select(1, path), v.detach().index_select(1, path)


def _flex(
    context: TreeContext, q: Tensor, k: Tensor, v: Tensor, scale: float, window: int | None, softcap: float | None
) -> Tensor:
    limit = softcap or 0.0

    def cap(score: Tensor, b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        return limit * torch.tanh(score / limit)

    how = {"score_mod": cap if softcap else None, "scale": scale, "enable_gqa": q.shape[1] != k.shape[1]}
    out: Tensor = _flex_attention(q.device.type)(q, k, v, block_mask=context.block_mask(window), **how)
    return out.transpose(1, 2).contiguous()


@cache
def _flex_attention(device: str) -> Any:
    from torch.nn.attention.flex_attention import flex_attention

    return torch.compile(flex_attention, dynamic=True) if device == "cuda" else flex_attention


AttentionInterface.register(NAME, tree_attention)

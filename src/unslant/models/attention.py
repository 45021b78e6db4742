"""Attention over a packed prefix tree: every token attends to its own root path, exactly and without gathering keys.

The ancestors of a token all have different depths, so its attention scores fit into one row with a column per depth.
Each tree segment fills its columns, for the contiguous range of its descendants, with one small matrix product; what
lies below a token's own depth is masked; and one softmax over the row finishes the sum. No key is copied, no pair
outside a root path is multiplied (but for the triangle inside each segment), and a long beginning shared by everything
is one dense product.

Registered with transformers' attention interface under :data:`NAME`; models then call :func:`tree_attention`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface

from unslant.models.tree import Batch

NAME = "unslant_tree"
_CHUNK = 1024

Piece = tuple[int, int, int, int, int]
"""Query rows ``[first, last)`` of a chunk, key tokens ``[start, start + length)``, and their depth."""


@dataclass(slots=True)
class Chunk:
    """Queries ``[first, last)`` of a batch, handled together so that their score rows stay in cache."""

    first: int
    last: int
    columns: int
    pieces: list[Piece]


@dataclass
class TreeContext:
    """What :func:`tree_attention` needs to know about the batch that is running.

    Attributes:
        spine: keys and values of the root path taken over, per layer, each of shape ``(kv_heads, spine, head_dim)``.
        keep: where the handed-on root path is collected, in the same form; filled as layers run.
        calls: how many attention layers have called.
    """

    batch: Batch
    device: torch.device
    spine: list[tuple[Tensor, Tensor]]
    flex: bool = False
    keep: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    calls: int = 0

    def __post_init__(self) -> None:
        self.depth = torch.from_numpy(self.batch.depth).to(self.device)
        self.keep_local = torch.from_numpy(self.batch.keep_local).to(self.device)
        self.chunks = list(_chunks(self.batch))
        self._masks: dict[tuple[int, int | None, int], Tensor] = {}
        self._blocks: dict[int | None, Any] = {}

    def mask(self, chunk: Chunk, window: int | None, heads: int) -> Tensor:
        """True where a score column is no ancestor in reach; shape ``((last - first) * heads, columns)``."""
        key = (chunk.first, window, heads)
        if key not in self._masks:
            depth = self.depth[chunk.first : chunk.last, None]
            column = torch.arange(chunk.columns, device=self.device)[None, :]
            hidden = column > depth
            if window is not None:
                hidden |= column <= depth - window
            self._masks[key] = hidden.repeat_interleave(heads, dim=0)
        return self._masks[key]

    def block_mask(self, window: int | None) -> Any:
        """The same reach as a FlexAttention block mask over ``[spine | batch]`` keys."""
        if window not in self._blocks:
            from torch.nn.attention.flex_attention import create_block_mask

            n, spine = len(self.batch), self.batch.spine
            end = torch.from_numpy(self.batch.end).to(self.device) + spine
            key_depth = torch.cat([torch.arange(spine, device=self.device), self.depth])
            depth = self.depth

            def reach(b: Tensor, h: Tensor, q: Tensor, kv: Tensor) -> Tensor:
                ancestor = (kv <= q + spine) & (q + spine < end[kv])
                return ancestor if window is None else ancestor & (depth[q] - key_depth[kv] < window)

            self._blocks[window] = create_block_mask(reach, None, None, n, n + spine, device=self.device)
        return self._blocks[window]


def _chunks(batch: Batch) -> Iterator[Chunk]:
    n = len(batch)
    for first in range(0, n, _CHUNK):
        last = min(n, first + _CHUNK)
        columns = int(batch.depth[first:last].max()) + 1
        pieces = []
        for start, length, depth, end in batch.segments:
            if start >= last:
                break
            if end <= first:
                continue
            # A segment may go on in the next chunk, to depths that no token of this one has.
            length = min(length, columns - depth)
            pieces.append((max(start, first) - first, min(end, last) - first, start, length, depth))
        yield Chunk(first, last, columns, pieces)


_active: TreeContext | None = None


@contextmanager
def active(context: TreeContext) -> Iterator[TreeContext]:
    """Make ``context`` the batch that :func:`tree_attention` serves; not for several threads at once."""
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
    **_: Any,
) -> tuple[Tensor, None]:
    """The attention function models call: ``query`` is ``(1, heads, N, head_dim)``, the result ``(1, N, heads, dim)``.

    Attention dropout is not applied (the pass scores; when training, only the adapter's own dropout acts).
    """
    context = _active
    if context is None:
        raise RuntimeError(f"attention {NAME!r} is for the prefix-tree engine: no tree pass is running")
    if attention_mask is not None or query.shape[0] != 1:
        raise NotImplementedError("the model brings an attention mask of its own")
    if s_aux is not None and s_aux.requires_grad and torch.is_grad_enabled():
        raise NotImplementedError("attention sinks cannot be trained through the tree")
    layer = context.calls
    context.calls += 1
    q, k, v = query[0], key[0], value[0]
    scale = q.shape[-1] ** -0.5 if scaling is None else scaling
    spine = context.spine[layer] if context.batch.spine else None
    if context.batch.keep:
        context.keep.append(_kept(context, k, v, spine))
    if context.flex and s_aux is None:
        return _flex(context, q, k, v, spine, scale, sliding_window, softcap), None
    groups = q.shape[0] // k.shape[0]
    n, dim = q.shape[1], q.shape[2]
    # Query heads that share a key head stand next to each other within a token, so that no key needs repeating.
    rows = q.reshape(k.shape[0], groups, n, dim).transpose(1, 2).reshape(k.shape[0], n * groups, dim)
    sinks = None if s_aux is None else s_aux.view(k.shape[0], 1, groups)
    out = _TreeAttention.apply(  # type: ignore[no-untyped-call]
        rows, k, v, context, spine, groups, scale, sliding_window, softcap, sinks
    )
    out = out.view(k.shape[0], n, groups, v.shape[2]).transpose(0, 1).reshape(1, n, q.shape[0], v.shape[2])
    return out, None


def _kept(context: TreeContext, k: Tensor, v: Tensor, spine: tuple[Tensor, Tensor] | None) -> tuple[Tensor, Tensor]:
    old = context.batch.keep - len(context.keep_local)
    own = (k[:, context.keep_local].detach(), v[:, context.keep_local].detach())
    if not old or spine is None:
        return own
    return torch.cat([spine[0][:, :old], own[0]], dim=1), torch.cat([spine[1][:, :old], own[1]], dim=1)


def _flex(
    context: TreeContext,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    spine: tuple[Tensor, Tensor] | None,
    scale: float,
    window: int | None,
    softcap: float | None,
) -> Tensor:
    from torch.nn.attention.flex_attention import flex_attention

    if spine is not None:
        k, v = torch.cat([spine[0], k], dim=1), torch.cat([spine[1], v], dim=1)

    limit = softcap or 0.0

    def cap(score: Tensor, b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        return limit * torch.tanh(score / limit)

    function = _compiled(flex_attention) if q.device.type == "cuda" else flex_attention
    out: Tensor = function(
        q[None],
        k[None],
        v[None],
        score_mod=cap if softcap else None,
        block_mask=context.block_mask(window),
        scale=scale,
        enable_gqa=q.shape[0] != k.shape[0],
    )
    return out.transpose(1, 2).contiguous()


_flex_compiled: Any = None


def _compiled(function: Any) -> Any:
    global _flex_compiled
    if _flex_compiled is None:
        _flex_compiled = torch.compile(function, dynamic=True)
    return _flex_compiled


class _TreeAttention(torch.autograd.Function):
    """Forward and backward over the tree; rows are ``(kv_heads, N * groups, dim)``, keys ``(kv_heads, N, dim)``."""

    @staticmethod
    def forward(
        ctx: Any,
        rows: Tensor,
        k: Tensor,
        v: Tensor,
        context: TreeContext,
        spine: tuple[Tensor, Tensor] | None,
        groups: int,
        scale: float,
        window: int | None,
        softcap: float | None,
        sinks: Tensor | None,
    ) -> Tensor:
        rows = rows.contiguous()
        k, v = k.contiguous(), v.contiguous()
        out = rows.new_zeros(rows.shape[0], rows.shape[1], v.shape[2])
        keep = any(ctx.needs_input_grad)
        saved: list[Tensor] = []
        for chunk in context.chunks:
            part = slice(chunk.first * groups, chunk.last * groups)
            scores = _scores(rows[:, part], k, chunk, context, spine, groups, scale)
            capped = scores
            if softcap is not None:
                scores = scores.div_(softcap).tanh_().mul_(softcap)
                capped = scores.clone() if keep else scores
            scores.masked_fill_(context.mask(chunk, window, groups), -torch.inf)
            weights = torch.softmax(scores, dim=-1, dtype=torch.float32)
            if sinks is not None:
                weights *= _beside_sinks(scores, sinks)
            weights = weights.to(v.dtype)
            target = out[:, part]
            for a, b, start, length, depth in chunk.pieces:
                rng = slice(a * groups, b * groups)
                values = _of(v, spine, 1, start, length, depth)
                target[:, rng].baddbmm_(weights[:, rng, depth : depth + length], values)
            if keep:
                saved += [weights, capped] if softcap is not None else [weights]
        if keep:
            ctx.save_for_backward(rows, k, v, *saved)
            ctx.rest = (context, spine, groups, scale, softcap)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        (grad,) = grads
        rows, k, v, *saved = ctx.saved_tensors
        context, spine, groups, scale, softcap = ctx.rest
        grad = grad.contiguous()
        grad_rows, grad_k, grad_v = torch.zeros_like(rows), torch.zeros_like(k), torch.zeros_like(v)
        step = 2 if softcap is not None else 1
        for i, chunk in enumerate(context.chunks):
            weights = saved[i * step]
            part = slice(chunk.first * groups, chunk.last * groups)
            grad_out = grad[:, part]
            grad_weights = torch.zeros_like(weights)
            for a, b, start, length, depth in chunk.pieces:
                rng, columns = slice(a * groups, b * groups), slice(depth, depth + length)
                values = _of(v, spine, 1, start, length, depth)
                grad_weights[:, rng, columns] = grad_out[:, rng] @ values.mT
                if start >= 0:
                    grad_v[:, start : start + length] += weights[:, rng, columns].mT @ grad_out[:, rng]
            grad_scores = weights * (grad_weights - (grad_weights * weights).sum(-1, keepdim=True))
            if softcap is not None:
                grad_scores *= 1 - (saved[i * step + 1] / softcap).nan_to_num() ** 2
            grad_scores *= scale
            target, queries = grad_rows[:, part], rows[:, part]
            for a, b, start, length, depth in chunk.pieces:
                rng, columns = slice(a * groups, b * groups), slice(depth, depth + length)
                target[:, rng] += grad_scores[:, rng, columns] @ _of(k, spine, 0, start, length, depth)
                if start >= 0:
                    grad_k[:, start : start + length] += grad_scores[:, rng, columns].mT @ queries[:, rng]
        return grad_rows, grad_k, grad_v, *(None,) * 7


def _beside_sinks(scores: Tensor, sinks: Tensor) -> Tensor:
    """Share of attention that a sink of its head leaves each row; ``sinks`` is ``(kv_heads, 1, groups)``."""
    total = torch.logsumexp(scores.float(), dim=-1).view(scores.shape[0], -1, sinks.shape[2])
    return torch.sigmoid(total - sinks).view(scores.shape[0], -1, 1)


def _scores(
    rows: Tensor,
    k: Tensor,
    chunk: Chunk,
    context: TreeContext,
    spine: tuple[Tensor, Tensor] | None,
    groups: int,
    scale: float,
) -> Tensor:
    # Columns beyond a token's depth stay unset; the mask covers them.
    scores = rows.new_empty(rows.shape[0], rows.shape[1], chunk.columns)
    rows = rows * scale
    for a, b, start, length, depth in chunk.pieces:
        rng = slice(a * groups, b * groups)
        scores[:, rng, depth : depth + length] = rows[:, rng] @ _of(k, spine, 0, start, length, depth).mT
    return scores


def _of(own: Tensor, spine: tuple[Tensor, Tensor] | None, which: int, start: int, length: int, depth: int) -> Tensor:
    """Keys (``which`` 0) or values (1) of one segment, from the batch or from the spine."""
    if start < 0:
        assert spine is not None
        return spine[which][:, depth : depth + length]
    return own[:, start : start + length]


AttentionInterface.register(NAME, tree_attention)

"""Attention over a packed prefix tree: every token attends to its own root path, exactly.

The tokens of a batch are in depth-first order. Take any run of them: every token before the run that is an ancestor
of one of its tokens is an ancestor of its first token. So a run of queries needs the keys of one root path, and its own
keys under a mask: one small dense product. The only pairs outside a root path that are multiplied at all lie in the
run's own square.

One product a run would leave a GPU waiting for the next launch: a batch of 16,384 tokens has 128 runs in each layer.
So runs with about as many keys are multiplied at once, as a :class:`Pack`, by torch's fused attention.

The function is registered with the attention interface of transformers under :data:`NAME`; models then call
:func:`tree_attention` in place of their own. What a model masks besides (sliding windows, chunks) it says as a function
of two positions (:func:`tree_mask`), which are depths in the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import causal_mask_function

from unslant.arrays import Ints
from unslant.models.hf import Batch

NAME = "unslant_tree"
_RUN, _RUN_ON_GPU = 64, 128
"""Queries of a run, on a CPU and elsewhere. A run multiplies at most this many squared pairs off its root path."""
_PACKED_KEYS, _PACKED_KEYS_ON_GPU = 1 << 12, 1 << 17
"""Keys gathered at once: what is gathered should stay in a CPU's cache, and a GPU has to be kept busy."""
_ALIGNED = 8
"""Keys are filled up to a multiple of this: the fused kernels of CUDA read a mask in steps of 16 bytes."""


MaskFunction = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
"""Of row, head, position of the query and position of the key, which broadcast: whether the query may attend."""


@dataclass(slots=True)
class Pack:
    """Runs of a batch that are multiplied at once.

    Attributes:
        queries: indices into the batch; shape ``(runs, queries)``. A run that is too short repeats its last token:
            a query without any key would be not a number, and would make every gradient so.
        keys: indices into ``[spine | batch]``, filled up with zeros; shape ``(runs, keys)``.
        lengths: number of keys of each run; shape ``(runs, 1)``.
    """

    queries: Tensor
    keys: Tensor
    lengths: Tensor


@dataclass
class TreeContext:
    """What :func:`tree_attention` needs to know about the batch that is running.

    Attributes:
        spine: keys and values of the root path taken over, per layer, each of shape ``(kv_heads, spine, head_dim)``.
        keep: the root path to hand on, in the same form as ``spine``; filled as layers run.
        calls: number of attention layers that have called.
        packs: the batch's runs; ``place`` says where in the packs' output each token of the batch is.
    """

    batch: Batch
    device: torch.device
    spine: list[tuple[Tensor, Tensor]]
    keep: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    calls: int = 0

    def __post_init__(self) -> None:
        batch = self.batch
        self.depth = torch.from_numpy(batch.depth).to(self.device)
        self.keep_local = torch.from_numpy(batch.keep_local).to(self.device)
        self._end = torch.from_numpy(batch.end).to(self.device) + batch.spine
        self._key_depth = torch.cat([torch.arange(batch.spine, device=self.device), self.depth])
        self.packs, self.place = self._pack()
        # All layers with one mask share what is reached; models such as gemma alternate between two kinds of layers.
        self._reached: dict[tuple[int, MaskFunction | None], Tensor] = {}
        self._elsewhere: dict[torch.device, TreeContext] = {}

    def on(self, device: torch.device) -> TreeContext:
        """The same batch for layers on another device, as ``device_map`` spreads them."""
        if device == self.device:
            return self
        if device not in self._elsewhere:
            self._elsewhere[device] = TreeContext(self.batch, device, [])
        return self._elsewhere[device]

    def _pack(self) -> tuple[list[Pack], Tensor]:
        """The runs in packs, and where in their output each token of the batch is; shape ``(N,)``."""
        gpu = self.device.type != "cpu"
        size, most = (_RUN_ON_GPU, _PACKED_KEYS_ON_GPU) if gpu else (_RUN, _PACKED_KEYS)
        size = min(size, len(self.batch))
        starts = range(0, len(self.batch), size)
        keys = [self._keys(first, size) for first in starts]
        # Runs with about as many keys go together, so that little is filled up.
        order = sorted(range(len(keys)), key=lambda run: len(keys[run]))
        packs: list[Pack] = []
        place, done = np.empty(len(self.batch), dtype=np.int64), 0
        while order:
            taken = [order.pop()]
            longest = -len(keys[taken[0]]) // _ALIGNED * -_ALIGNED
            while order and (len(taken) + 1) * longest <= most:
                taken.append(order.pop())
            filled = np.zeros((len(taken), longest), dtype=np.int64)
            for row, run in enumerate(taken):
                filled[row, : len(keys[run])] = keys[run]
                last = min(len(self.batch), starts[run] + size)
                place[starts[run] : last] = np.arange(last - starts[run]) + done
                done += size
            queries = np.array([starts[run] for run in taken])[:, None] + np.arange(size)
            lengths = np.array([[len(keys[run])] for run in taken])
            parts = (queries.clip(max=len(self.batch) - 1), filled, lengths)
            packs.append(Pack(*(torch.from_numpy(part).to(self.device) for part in parts)))
        return packs, torch.from_numpy(place).to(self.device)

    def _keys(self, first: int, size: int) -> Ints:
        """Keys of the run that begins at token ``first``: indices into ``[spine | batch]``."""
        batch = self.batch
        last = min(len(batch), first + size)
        # Earlier nodes whose descendants reach past ``first`` are its ancestors: that is what depth-first order buys.
        path = np.flatnonzero(batch.end[: batch.spine + first] > first)
        return np.concatenate([path, np.arange(batch.spine + first, batch.spine + last)])

    def mask(self, number: int, heads: int, allowed: MaskFunction | None, dtype: torch.dtype) -> Tensor:
        """Of pack ``number``: 0 where the key is an allowed ancestor (or the token itself), else minus infinity.

        Shape ``(1, runs, heads x queries, keys)``, for as many heads as share a key. Added to the scores, so that the
        fused kernel and :func:`_attend` take the same mask.
        """
        if (number, allowed) not in self._reached:
            pack = self.packs[number]
            query, keys = pack.queries[:, :, None] + self.batch.spine, pack.keys[:, None]
            real = torch.arange(keys.shape[-1], device=self.device) < pack.lengths
            reached = (keys <= query) & (query < self._end[keys]) & real[:, None]
            if allowed is not None:  # counted in depths: neighbours in the batch may be far apart in the text
                home = (_active or self).device  # of tensors that the rule holds, where layers are on several devices
                at, seen = (self._key_depth[tokens].to(home) for tokens in (query, keys))
                first = torch.zeros_like(at[0, 0, 0])
                reached &= allowed(first, first, at, seen).to(self.device)
            self._reached[number, allowed] = reached
        # One byte a pair is kept, not a number for every head: of one long prompt there are billions of pairs.
        zero = torch.zeros((), dtype=dtype, device=self.device)
        return torch.where(self._reached[number, allowed], zero, -torch.inf).repeat(1, heads, 1)[None]


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
    attention_mask: Tensor | MaskFunction | None,
    scaling: float | None = None,
    dropout: float = 0.0,
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
    allowed = attention_mask if callable(attention_mask) else None
    # A mask of two dimensions, (1, N), is the one of the call, which hides nothing.
    if (isinstance(attention_mask, Tensor) and attention_mask.dim() > 2) or query.shape[0] != 1:
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
    heads, kv_heads, size = query.shape[1], k.shape[1], query.shape[-1]
    parts = []
    for number, pack in enumerate(here.packs):
        runs, length = pack.queries.shape
        # Heads that share a key are queries to it like any other: (kv_heads, runs, heads x queries, head_dim).
        q = query[0].index_select(1, pack.queries.flatten()).view(kv_heads, -1, runs, length, size)
        q = q.transpose(1, 2).flatten(2, 3)
        keys, values = (x[0].index_select(1, pack.keys.flatten()).view(kv_heads, *pack.keys.shape, -1) for x in (k, v))
        mask = here.mask(number, heads // kv_heads, allowed, q.dtype)
        if softcap is None and s_aux is None:
            out = scaled_dot_product_attention(q, keys, values, mask, scale=scale)
        else:
            out = _attend(q, keys, values, mask, scale, softcap, s_aux)
        out = out.reshape(kv_heads, runs, -1, length, out.shape[-1])
        out = out.permute(1, 3, 0, 2, 4)  # runs, queries, kv_heads, heads that share a key, head_dim
        parts.append(out.flatten(2, 3).flatten(0, 1))
    return torch.cat(parts).index_select(0, here.place)[None], None


def _attend(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor, scale: float, softcap: float | None, sinks: Tensor | None
) -> Tensor:
    """What the fused kernel cannot do: capped scores (gemma 2), and a sink per head that takes its share (gpt-oss)."""
    scores = q * scale @ k.mT
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    scores = scores + mask
    if sinks is not None:
        each = sinks.to(scores.dtype).view(k.shape[0], -1)  # kv_heads, heads to each
        column = each.repeat_interleave(q.shape[2] // each.shape[1], dim=1)[:, None, :, None]
        scores = torch.cat([scores, column.expand(-1, scores.shape[1], -1, -1)], dim=-1)
    weights = torch.softmax(scores, dim=-1, dtype=torch.float32)[..., : k.shape[2]].to(v.dtype)
    return weights @ v


def _path_handed_on(context: TreeContext, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Keys and values of the root path handed on; ``k`` and ``v`` are those of ``[spine | batch]``."""
    from_spine = torch.arange(context.batch.keep - len(context.keep_local), device=k.device)
    path = torch.cat([from_spine, context.keep_local + context.batch.spine])
    return k.detach().index_select(1, path), v.detach().index_select(1, path)


def tree_mask(*, mask_function: MaskFunction, **_: Any) -> MaskFunction | None:
    """What transformers calls when a model asks for a causal, sliding or chunked mask: the rule, not its table.

    None if all earlier tokens may be seen, as all ancestors are: to ask of each pair again would slow every pass.
    """
    return None if mask_function is causal_mask_function else mask_function


AttentionInterface.register(NAME, tree_attention)
AttentionMaskInterface.register(NAME, tree_mask)

"""How far an engine has come, as bytes: enough for another process to go on with bit for bit the same numbers.

What a batch computes depends, in the last bits, on the batches before it: on the keys and values of the root path that
they hand on. So a checkpoint holds those, and nothing before it needs to be run again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load, save
from torch import Tensor

from unslant.arrays import Floats, Ints

Result = tuple[int, Floats]
"""Index of a prompt and the log-probability of each of its candidates."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one batch brought.

    Attributes:
        number: how many batches have run.
        results: of the prompts that now have all their scores.
        checkpoint: gives the bytes from which to go on behind this batch. May be called later, or not at all.
        skipped: prompts whose results came before the checkpoint that this process went on from.
    """

    number: int
    results: list[Result]
    checkpoint: Callable[[], bytes]
    skipped: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state behind a batch.

    Attributes:
        number: how many batches have run.
        open: candidates that have been read in part; shape ``(n,)``.
        sums: what has been read of them; shape ``(n,)``.
        spine: keys and values of the root path handed on, per layer.
    """

    number: int
    open: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    sums: Floats = field(default_factory=lambda: np.empty(0))
    spine: list[tuple[Tensor, Tensor]] = field(default_factory=list)

    def to_bytes(self, layout: bytes) -> bytes:
        """As bytes; ``layout`` (see :func:`layout_digest`) tells which batches it belongs to."""
        tensors = {
            "layout": torch.frombuffer(bytearray(layout), dtype=torch.uint8),
            "number": torch.tensor([self.number]),
            "open": torch.from_numpy(self.open),
            "sums": torch.from_numpy(self.sums),
        }
        for i, (key, value) in enumerate(self.spine):
            tensors |= {f"key.{i}": key.cpu().contiguous(), f"value.{i}": value.cpu().contiguous()}
        return bytes(save(tensors))

    @classmethod
    def from_bytes(cls, data: bytes, layout: bytes, device: torch.device) -> Checkpoint:
        """What :meth:`to_bytes` wrote; the beginning if there is nothing, or it belongs to other batches."""
        if not data:
            return cls(0)
        tensors = load(data)
        if bytes(tensors["layout"].tolist()) != layout:
            return cls(0)
        layers = sum(name.startswith("key.") for name in tensors)
        spine = [(tensors[f"key.{i}"].to(device), tensors[f"value.{i}"].to(device)) for i in range(layers)]
        return cls(int(tensors["number"]), tensors["open"].numpy(), tensors["sums"].numpy(), spine)


def layout_digest(batches: Iterable[NDArray[np.generic]]) -> bytes:
    """A digest of how a call is cut into batches."""
    found = blake2b(digest_size=16)
    for batch in batches:
        found.update(len(batch).to_bytes(8, "little"))
        found.update(np.ascontiguousarray(batch).tobytes())
    return found.digest()

"""What half precision does to the answers: the same prompts, by the same model in float32. And weights cut in parts."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from unslant.models.base import Cost, Encoded
from unslant.models.hf.engine import PlainEngine
from unslant.responses.run import Agreement

PROMPTS = 16
"""Prompts compared."""
_BUDGET = 1024


def spread(items: Sequence[Encoded], number: int) -> list[Encoded]:
    """At most ``number`` of the items, spread evenly."""
    return [items[i] for i in np.linspace(0, len(items) - 1, min(number, len(items))).round().astype(int)]


def agreement(model: Any, encoded: Sequence[Encoded]) -> Agreement:
    """Compare a model in half precision with a copy of it in float32, both on whole prompts.

    Returns:
        One over no prompts where a float32 copy does not fit into free memory, or the model is quantised or cut.
    """
    if getattr(model, "is_quantized", False) or is_cut(model) or not _fits(model):
        return Agreement()
    try:
        wide = copy.deepcopy(model).float()
        found, exact = (_scores(some, encoded) for some in (model, wide))
    except torch.OutOfMemoryError:
        return Agreement()
    apart = np.abs(np.concatenate(found) - np.concatenate(exact))
    same = [one.argmax() == other.argmax() for one, other in zip(found, exact, strict=True) if len(one) > 1]
    return Agreement(
        prompts=len(encoded),
        argmax=float(np.mean(same)) if same else None,
        largest=float(apart.max()),
        mean=float(apart.mean()),
    )


def _scores(model: Any, encoded: Sequence[Encoded]) -> list[np.ndarray[Any, np.dtype[np.float64]]]:
    found = dict(PlainEngine(model, _BUDGET).score(encoded, Cost()))
    return [found[i] for i in range(len(encoded))]


def _fits(model: Any) -> bool:
    needed = 4 * sum(parameter.numel() for parameter in model.parameters())
    if model.device.type == "cuda":
        return bool(1.1 * needed < torch.cuda.mem_get_info(model.device)[0])
    return bool(2 * needed < _free_memory())


def _free_memory() -> int:
    """Bytes that this process may still take, on Linux; 0 where nothing says so."""
    found = []
    with suppress(OSError):
        lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        found.append(1024 * int(lines["MemAvailable"].split()[0]))
    with suppress(OSError, ValueError):  # a container's own limit
        limit, used = (int((Path("/sys/fs/cgroup") / f"memory.{name}").read_text()) for name in ("max", "current"))
        found.append(limit - used)
    return min(found, default=0)


# Weights cut across processes (tensor parallelism)


def is_cut(model: Any) -> bool:
    """Whether this process holds a part of the model's weights only, so that all must compute in step."""
    return any(_is_part(parameter) for parameter in model.parameters())


def part(tensor: Tensor) -> Tensor:
    """What this process holds of a tensor."""
    found: Tensor = cast(Any, tensor).to_local() if _is_part(tensor) else tensor
    return found


def whole(tensor: Tensor) -> Tensor:
    """A tensor put together; all processes must call this, for the same tensors in the same order."""
    found: Tensor = cast(Any, tensor).full_tensor() if _is_part(tensor) else tensor
    return found


def _is_part(tensor: Tensor) -> bool:
    if not torch.distributed.is_available():
        return False
    from torch.distributed.tensor import DTensor

    return isinstance(tensor, DTensor)

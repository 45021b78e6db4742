"""Weights that are cut across processes (tensor parallelism): how they are told, and looked at."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor


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

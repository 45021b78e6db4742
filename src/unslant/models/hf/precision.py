"""How far half precision is from float32: a model compared with a copy of itself."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch

from unslant.models.base import Encoded
from unslant.models.hf.engine import is_cut, plain_scores
from unslant.responses.provenance import Agreement


def agreement(model: Any, encoded: Sequence[Encoded]) -> Agreement:
    """Compare a model in half precision with a copy of it in float32, both on whole prompts.

    Returns:
        An agreement on no prompts if a float32 copy does not fit into free memory, or the model is quantised or cut.
    """
    if getattr(model, "is_quantized", False) or is_cut(model):
        return Agreement()
    needed = 4 * sum(parameter.numel() for parameter in model.parameters())
    on_gpu = model.device.type == "cuda"
    if 1.1 * needed >= torch.cuda.mem_get_info(model.device)[0] if on_gpu else 2 * needed >= _free_memory():
        return Agreement()
    try:
        wide = copy.deepcopy(model).float()
        half, exact = plain_scores(model, encoded), plain_scores(wide, encoded)
    except torch.OutOfMemoryError:
        return Agreement()
    apart = np.abs(np.concatenate(half) - np.concatenate(exact))
    same = [one.argmax() == other.argmax() for one, other in zip(half, exact, strict=True) if len(one) > 1]
    return Agreement(
        prompts=len(encoded),
        argmax=float(np.mean(same)) if same else None,
        largest=float(apart.max()),
        mean=float(apart.mean()),
    )


def _free_memory() -> int:
    """Bytes that this process may still take, on Linux; 0 where nothing says so."""
    limits = []
    with suppress(OSError):
        lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        limits.append(1024 * int(lines["MemAvailable"].split()[0]))
    with suppress(OSError, ValueError):  # in a container, /proc/meminfo is the whole machine's
        limit, used = (int((Path("/sys/fs/cgroup") / f"memory.{name}").read_text()) for name in ("max", "current"))
        limits.append(limit - used)
    return min(limits, default=0)

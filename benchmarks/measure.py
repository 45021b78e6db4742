"""Time, tokens and memory of one run, and what they were measured on."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib.metadata
import os
import platform
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from unslant.models import Cost

_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass
class Run:
    """What one run took.

    Attributes:
        seconds, cpu_seconds: wall-clock seconds, and CPU seconds of all threads of this process.
        tokens: tokens given to the model, padding included.
        memory: most memory used beyond that at the start (resident set, sampled every 5 ms), in bytes.
    """

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    tokens: int = 0
    memory: int = 0


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE


@contextlib.contextmanager
def measured(model: Any, cost: Cost | None = None) -> Iterator[Run]:
    """Measure what happens inside; the result is complete afterwards.

    Args:
        cost: what unslant's own engines count. A hook counts the tokens of others; with a hook on the model, unslant
            would not use its tree, because foreign code may count on whole prompts.
    """
    run = Run()
    gc.collect()
    with contextlib.suppress(OSError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)  # what earlier runs freed must not hide what this one takes
    start, stop = _resident(), threading.Event()

    def watch() -> None:
        while not stop.wait(0.005):
            run.memory = max(run.memory, _resident() - start)

    def count(_: Any, inputs: tuple[torch.Tensor, ...]) -> None:
        run.tokens += inputs[0].numel()

    hook = None if cost is not None else model.get_input_embeddings().register_forward_pre_hook(count)
    before = cost.tokens if cost is not None else 0
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    begun, begun_cpu = time.perf_counter(), time.process_time()
    try:
        yield run
        run.seconds, run.cpu_seconds = time.perf_counter() - begun, time.process_time() - begun_cpu
        if cost is not None:
            run.tokens = cost.tokens - before
    finally:
        stop.set()
        watcher.join()
        if hook is not None:
            hook.remove()


def machine() -> dict[str, str]:
    """Processor, memory, operating system and versions."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    memory = os.sysconf("SC_PHYS_PAGES") * _PAGE / 2**30
    packages = ("torch", "transformers", "tokenizers", "numpy", "lm_eval", "xllamacpp")
    versions = [f"{name} {_version(name)}" for name in packages]
    return {
        "processor": f"{names[0] if names else platform.processor()}, {os.cpu_count()} cores",
        "threads": str(torch.get_num_threads()),
        "memory": f"{memory:.0f} GiB",
        "load": load(),
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "versions": ", ".join(versions),
    }


def load() -> str:
    """Processes that want to run, mean of the last minute; more than one run's own threads are others."""
    return f"{os.getloadavg()[0]:.1f}"


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"

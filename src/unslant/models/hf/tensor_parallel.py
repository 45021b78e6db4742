"""A local model whose layers are cut across the GPUs of a machine, which compute every pass together.

The cutting is transformers' tensor parallelism, which takes one process for each GPU. This process leads: it starts the
others, hands them every call it makes of its own part of the model, and all of them run the same code on the same
prompts, in step. What the parts have to tell each other goes through torch: NCCL between GPUs, else gloo.
"""

from __future__ import annotations

import math
import os
import pickle
import socket
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from queue import SimpleQueue
from typing import IO, Any

import torch
import torch.distributed as dist

from unslant.errors import InputError, ModelError, UnslantError
from unslant.models.base import Cost, Encoded, Scored
from unslant.models.hf.loading import check_loads, config_of, open_local
from unslant.models.hf.model import TransformersModel
from unslant.models.options import Address
from unslant.prompts.prompt import Prompt

PATIENCE = timedelta(minutes=20)
"""How long one process waits for the others in a pass, and for their weights."""
_HERE = "127.0.0.1"
_LAST_WORDS = 5
"""Seconds for a process that broke off to end."""


class TensorParallelModel:
    """A local model cut across processes; see :mod:`unslant.models.open`.

    Scores equal those of one process to float tolerance. The identity says across how many it is cut.

    Args:
        address: the model; ``tensor_parallel`` of its options is the number of parts.

    Raises:
        InputError: if the machine has fewer GPUs than parts.
        ModelError: if the model cannot be loaded, or cut into so many parts.
    """

    def __init__(self, address: Address) -> None:
        size = int(address.options.tensor_parallel or 1)
        if torch.cuda.is_available() and size > torch.cuda.device_count():
            raise InputError(f"--tensor-parallel {size}: there are {torch.cuda.device_count()} GPUs here; give fewer")
        if dist.is_initialized():
            raise ModelError("--tensor-parallel: one model at a time; another one is still in use in this process")
        check_loads(address)  # here, where its errors can be told in a line
        _check_divides(address.model, config_of(address), size)
        self.size = size
        self._others = _Others(address, size)
        self._end = weakref.finalize(self, self._others.end)
        try:
            with self._others.in_step():
                self._model = _part_of(address, 0, size, self._others.port)
        except Exception:
            self.close()
            raise

    def close(self) -> None:
        """End the other processes; nothing can be asked any more."""
        self._end()

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def cost(self) -> Cost:
        return self._model.cost

    @property
    def engine(self) -> str:
        """``tree`` or ``plain``: what scores this model."""
        return self._model.engine

    @property
    def parameters(self) -> int:
        """Number of weights, of all parts together."""
        return self._model.parameters

    @property
    def identity(self) -> Mapping[str, str]:
        """See :mod:`unslant.models.hf.identity`; and ``tensor parallel``, the number of parts."""
        with self._others.called("identity"):
            return {**self._model.identity, "tensor parallel": str(self.size)}

    @property
    def facts(self) -> dict[str, object]:
        """See :class:`~unslant.models.hf.model.TransformersModel`; how half precision agrees is not measured."""
        return self._model.facts

    def encode(self, prompts: Sequence[Prompt]) -> list[Encoded]:
        """Token ids of the prompts.

        Raises:
            ModelError: naming the group of a prompt that is too long.
        """
        return self._model.encode(prompts)

    def score(self, prompts: Sequence[Prompt], encoded: Sequence[Encoded] | None = None) -> Iterator[Scored]:
        """See :class:`~unslant.models.base.TokenizingModel`."""
        encoded = self.encode(prompts) if encoded is None else encoded
        self._others.tell("score", [prompt.group for prompt in prompts], encoded)
        running = self._model.score_encoded(prompts, encoded)
        while True:
            with self._others.called("next"):
                scored = next(running, None)
            if scored is None:
                return
            yield scored


def open_tensor_parallel(address: Address) -> TensorParallelModel:
    """A local model cut across the GPUs of this machine; see :mod:`unslant.models.open`."""
    return TensorParallelModel(address)


def _check_divides(name: str, config: Any, size: int) -> None:
    """That transformers can cut such a model into so many parts; its own error would come late, and say little.

    Raises:
        ModelError: if it cannot; the message says which numbers do.
    """
    text = config.get_text_config()
    if not getattr(text, "base_model_tp_plan", None):
        raise ModelError(
            f"{name}: transformers has no plan for cutting a model of type {text.model_type}: use --device-map auto"
        )
    heads = [getattr(text, key, None) for key in ("num_attention_heads", "num_key_value_heads")]
    common = math.gcd(*(count for count in heads if count))
    if common % size:
        fits = [str(n) for n in range(2, common + 1) if not common % n]
        raise ModelError(
            f"{name}: its {' and '.join(str(count) for count in dict.fromkeys(heads) if count)} attention heads cannot "
            f"be cut into {size} parts: "
            + (f"give --tensor-parallel {' or '.join(fits)}" if fits else "use --device-map auto")
        )


class _Others:
    """The other processes, and what they are told.

    Attributes:
        port: where the processes meet.
    """

    def __init__(self, address: Address, size: int) -> None:
        self._model, self._size = address.model, size
        with socket.socket() as free:
            free.bind((_HERE, 0))
            self.port = int(free.getsockname()[1])
        self._words: list[IO[bytes]] = [tempfile.TemporaryFile() for _ in range(1, size)]  # noqa: SIM115
        self._processes = [
            subprocess.Popen(
                [sys.executable, "-c", f"from {__name__} import follow; follow()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=words,
            )
            for words in self._words
        ]
        for rank in range(1, size):
            self.tell(address, rank, size, self.port, only=rank)

    def tell(self, *call: Any, only: int | None = None) -> None:
        """Hand a call to the others, or to one of them."""
        written = pickle.dumps(call)
        for rank, process in enumerate(self._processes, start=1):
            if only in (None, rank):
                try:
                    process.stdin.write(written)  # type: ignore[union-attr]
                    process.stdin.flush()  # type: ignore[union-attr]
                except OSError as error:
                    raise self._ended() or error from None

    @contextmanager
    def called(self, *call: Any) -> Iterator[None]:
        """Have the others do what this process does while the block runs."""
        self.tell(*call)
        with self.in_step():
            yield

    @contextmanager
    def in_step(self) -> Iterator[None]:
        """Where the block breaks off because another process did, say so.

        Raises:
            ModelError: naming the process, and its last words.
        """
        try:
            yield
        except UnslantError:
            raise
        except Exception as error:  # of many kinds, by what the processes talk through
            if ended := self._ended():
                raise ended from error
            raise

    def _ended(self) -> ModelError | None:
        """What is to be said if a process is no more."""
        for rank, process in enumerate(self._processes, start=1):
            with suppress(subprocess.TimeoutExpired):
                process.wait(_LAST_WORDS)
                words = self._words[rank - 1]
                words.seek(0)
                lines = words.read().decode("utf-8", "replace").strip().splitlines() or ["without a word"]
                return ModelError(
                    f"{self._model}: process {rank + 1} of {self._size} ended ({lines[-1].strip()}); the others cannot "
                    "go on without it. What was scored is stored: give the same command again"
                )
        return None

    def end(self) -> None:
        """End the others."""
        for process in self._processes:
            process.kill()
            process.wait()
            process.stdin.close()  # type: ignore[union-attr]
        for words in self._words:
            words.close()
        if dist.is_initialized():
            dist.destroy_process_group()


def follow() -> None:
    """What the other processes do: every call of the leader, until it is gone."""
    calls: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(target=_listen, args=(calls,), daemon=True).start()
    try:
        model = _part_of(*calls.get())
    except Exception as error:
        print(error, file=sys.stderr, flush=True)
        os._exit(1)
    running: Iterator[Scored] = iter(())
    while True:
        method, *arguments = calls.get()
        try:
            if method == "score":
                groups, encoded = arguments
                running = model.score_encoded([Prompt("", (), group=group) for group in groups], encoded)
            elif method == "next":
                next(running, None)
            else:
                getattr(model, method)
        except UnslantError:
            continue  # the leader has come upon the same, and tells it


def _listen(calls: SimpleQueue[Any]) -> None:
    """Read calls; a process whose leader is gone ends, even in the middle of a pass."""
    with suppress(EOFError):
        while True:
            calls.put(pickle.load(sys.stdin.buffer))
    os._exit(0)


def _part_of(address: Address, rank: int, size: int, port: int) -> TransformersModel:
    """This process's part of the model, once all processes have met."""
    cuda = torch.cuda.is_available()
    if cuda:
        torch.cuda.set_device(rank)
    else:
        torch.set_num_threads(max(1, len(os.sched_getaffinity(0)) // size))
    with _environment(RANK=rank, LOCAL_RANK=rank, WORLD_SIZE=size, MASTER_ADDR=_HERE, MASTER_PORT=port):
        dist.init_process_group(
            "nccl" if cuda else "gloo",
            rank=rank,
            world_size=size,
            timeout=PATIENCE,
            device_id=torch.device("cuda", rank) if cuda else None,
        )
        return open_local(address)


@contextmanager
def _environment(**values: object) -> Iterator[None]:
    """Variables that transformers reads where it cuts a model; gone afterwards, for others read them, too."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update({name: str(value) for name, value in values.items()})
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value

"""A local model whose layers are split across the GPUs of a machine, which compute every pass together.

The splitting is the tensor parallelism of transformers, which needs one process per GPU. All of them get the same calls
and run the same code on the same prompts, in step; the first one answers. The parts exchange tensors through torch:
NCCL between GPUs, else gloo.
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
import time
import warnings
import weakref
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from queue import SimpleQueue
from typing import IO, Any

import torch

from unslant.errors import InputError, ModelError, UnslantError
from unslant.models.base import Encoded
from unslant.models.hf.loading import check_loads, config_of
from unslant.models.options import ModelOptions
from unslant.prompts import Prompt
from unslant.scale.replica import Elsewhere, Part, Replica, ReplicaInfo

_PATIENCE = timedelta(hours=2)
"""How long processes wait for each other, as they load at different speeds. One that has died is noticed at once."""
_LAST_WORDS = 5
"""Seconds that the first part has to report an error that occurs in all parts."""


class TensorParallelModel(Elsewhere):
    """A local model split across processes; see :mod:`unslant.models.open`.

    Scores equal those of one process to float tolerance. The identity includes the number of parts.

    Args:
        name: of the model.
        options: how it is loaded; ``tensor_parallel`` is the number of parts.

    Raises:
        InputError: if the machine has fewer GPUs than parts.
        ModelError: if the model cannot be loaded, or split into that number of parts.
    """

    def __init__(self, name: str, options: ModelOptions) -> None:
        super().__init__(name)
        self.size = int(options.tensor_parallel or 1)
        if torch.cuda.is_available() and self.size > (there := torch.cuda.device_count()):
            raise InputError(f"--tensor-parallel {self.size}: this machine has {there} GPUs; give fewer")
        check_loads(name, options)
        _check_divides(name, config_of(name, options), self.size)
        self._parts = _Parts(name, options, self.size)
        self._end = weakref.finalize(self, self._parts.end)
        try:
            about: ReplicaInfo = self._parts.ask("about")
        except UnslantError:
            self.close()
            raise
        self._info = replace(about.info, identity={**about.info.identity, "tensor parallel": str(self.size)})
        for text in about.warned:
            warnings.warn(text, stacklevel=2)

    def close(self) -> None:
        """End the processes; the model cannot be used any more."""
        self._end()

    def _facts(self, sample: Sequence[Encoded], spelling: frozenset[str]) -> dict[str, object]:
        # From the first part alone: half precision is not compared with float32, as all parts would have to compute.
        return dict(self._parts.ask("facts", sample, spelling, of=1))

    def _encoding(self, prompts: Sequence[Prompt]) -> Iterator[Part]:
        return self._parts.stream("encode", prompts, of=1)

    def _scoring(self, prompts: Sequence[Prompt], encoded: Sequence[Encoded]) -> Iterator[Part]:
        return self._parts.stream("score", [prompt.group for prompt in prompts], encoded)


def _check_divides(name: str, config: Any, size: int) -> None:
    """Check that transformers can split such a model into ``size`` parts; its own error comes late and says little.

    Raises:
        ModelError: if it cannot, naming the numbers that work.
    """
    text = config.get_text_config()
    if not getattr(text, "base_model_tp_plan", None):
        raise ModelError(
            f"{name}: transformers has no tensor-parallel plan for models of type {text.model_type}: "
            "use --device-map=auto"
        )
    heads = [getattr(text, key, None) for key in ("num_attention_heads", "num_key_value_heads")]
    common = math.gcd(*(count for count in heads if count))
    if common % size:
        sizes = [str(n) for n in range(2, common + 1) if not common % n]
        raise ModelError(
            f"{name}: its {' and '.join(str(count) for count in dict.fromkeys(heads) if count)} attention heads cannot "
            f"be split into {size} parts: "
            + (f"give --tensor-parallel={' or '.join(sizes)}" if sizes else "use --device-map=auto")
        )


class _Parts:
    """The processes that hold one part each, and the calls to them."""

    def __init__(self, name: str, options: ModelOptions, size: int) -> None:
        self._model, self._ended, self._dead = name, False, 0
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        meeting = os.environ | {"WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        self._words: list[IO[bytes]] = [tempfile.TemporaryFile() for _ in range(size)]  # noqa: SIM115
        # Started with -c and not by multiprocessing, which would import the user's script again in each process, and
        # run it if it has no __main__ guard. With -P, a torch.py in the working folder does not replace the library.
        self._processes = [
            subprocess.Popen(
                [sys.executable, "-P", "-c", f"from {__name__} import be_a_part; be_a_part()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL if rank else subprocess.PIPE,
                stderr=self._words[rank],
                env=meeting | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
                start_new_session=True,  # Ctrl-C reaches this process only, which ends the parts in order
            )
            for rank in range(size)
        ]
        for rank in range(size):
            threading.Thread(target=self._watch, args=(rank,), daemon=True).start()
        self._send(size, name, options)

    def ask(self, method: str, *arguments: Any, of: int | None = None) -> Any:
        """The first part's answer; ModelError if a process has ended.

        Args:
            of: how many parts to call; by default all, which is necessary whenever the model computes.
        """
        self._send(of, method, *arguments)
        return self._answer()

    def stream(self, method: str, *arguments: Any, of: int | None = None) -> Iterator[Part]:
        """The results of a call, piece by piece; each is computed when the caller wants it."""
        self._send(of, method, *arguments)
        while (part := self.ask("next", of=of)) is not None:
            yield part

    def _send(self, of: int | None, *call: Any) -> None:
        message = pickle.dumps(call)
        for process in self._processes[:of]:
            with suppress(OSError, ValueError):  # it has ended, which reading the answer will show
                process.stdin.write(message)  # type: ignore[union-attr]
                process.stdin.flush()  # type: ignore[union-attr]

    def _answer(self) -> Any:
        if self._ended:
            raise ModelError(f"{self._model}: its processes were stopped: open the model again")
        try:
            answer = pickle.load(self._processes[0].stdout)  # type: ignore[arg-type]
        except (EOFError, pickle.UnpicklingError):
            raise self._failure() from None
        except BaseException:  # stopped while waiting: the next call would get this answer
            self.end()
            raise
        if isinstance(answer, UnslantError):
            raise answer
        return answer

    def _watch(self, rank: int) -> None:
        """End all processes when one ends, since they would wait for it."""
        self._processes[rank].wait()
        if not self._ended:
            self._ended, self._dead = True, rank
            for process in self._processes:
                process.kill()

    def _failure(self) -> ModelError:
        """An error that names the process that ended, with the last line it wrote."""
        for process in self._processes:
            process.wait()
        words = self._words[self._dead]
        words.seek(0)
        lines = words.read().decode("utf-8", "replace").strip().splitlines() or ["without a word"]
        return ModelError(
            f"{self._model}: process {self._dead + 1} of {len(self._processes)} ended ({lines[-1].strip()}), and the "
            "others cannot continue without it; scores so far are stored"
        )

    def end(self) -> None:
        """End all processes."""
        self._ended = True
        for process in self._processes:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe:
                    with suppress(OSError):  # closing flushes to a process that is gone
                        pipe.close()


def be_a_part() -> None:
    """The main loop of a part: serve every call, until the process that started it is gone."""
    rank, answers = int(os.environ["RANK"]), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of libraries must not get between the answers
    calls: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(target=_listen, args=(calls,), daemon=True).start()
    model, running = _part(rank, *calls.get()), iter(())
    while True:
        method, *arguments = calls.get()
        try:
            if method in ("encode", "score"):
                running = getattr(model, method)(*arguments)
                continue
            answer = next(running, None) if method == "next" else getattr(model, method)(*arguments)
        except UnslantError as error:
            answer = error
        if rank and isinstance(answer, UnslantError):  # the first part reports the same, or waits for this one
            time.sleep(_LAST_WORDS)
            print(answer, file=sys.stderr, flush=True)
            os._exit(1)
        if rank == 0:
            pickle.dump(answer, answers)
            answers.flush()


def _listen(calls: SimpleQueue[Any]) -> None:
    """Read calls; end with the process that sends them, even in the middle of a pass."""
    with suppress(EOFError):
        while True:
            calls.put(pickle.load(sys.stdin.buffer))
    os._exit(0)


def _part(rank: int, name: str, options: ModelOptions) -> Replica:
    """This process's part of the model, once all processes are connected."""
    cuda, size = torch.cuda.is_available(), int(os.environ["WORLD_SIZE"])
    if cuda:
        torch.cuda.set_device(rank)
    torch.distributed.init_process_group(
        "nccl" if cuda else "gloo", timeout=_PATIENCE, device_id=torch.device("cuda", rank) if cuda else None
    )
    threads = int(os.environ.get("OMP_NUM_THREADS") or max(1, torch.get_num_threads() // size))
    return Replica(name, options, threads, os.getcwd())

"""A local model in several copies on a Ray cluster, as one scoring model.

Every actor holds a whole copy (a replica) and is given prompts in units of whole questions, so that what a question's
prompts share is still computed once. Units get smaller as the work runs out (guided self-scheduling: Polychronopoulos
and Kuck, 1987), so that all actors end at about the same time. Scores are sent as they are computed, a forward pass at
a time; when an actor dies, another is started, and only what had not arrived is asked again, question by question.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from unslant.errors import InputError, ModelError, first_line
from unslant.extras import needed
from unslant.models.base import Encoded, ModelInfo
from unslant.models.hf.tree import other_costs
from unslant.models.options import ModelOptions
from unslant.prompts.prompt import Prompt
from unslant.scale.ray_pool import Pool, Unit, by_question, cut
from unslant.scale.replica import Elsewhere, Part

_SHARE = 0.5
"""Of an actor's part of the CPUs, what Ray is asked for: who takes all of them lets other work wait for ever."""
_LEAST_ENCODED = 256
"""Prompts that are worth sending to be tokenized."""
_HANDED_ON = ("TRANSFORMERS_VERBOSITY", "HF_HUB_DISABLE_PROGRESS_BARS", "TOKENIZERS_PARALLELISM", "OMP_WAIT_POLICY")
"""Variables of this process's environment that every replica gets."""


class RayModel(Elsewhere):
    """A local model in several copies on a Ray cluster; see :mod:`unslant.models.open`.

    Its identity and its scores (rounding apart) are those of the same model in this process, so both share a
    store. That all copies have this identity is checked.

    Args:
        name: of the model.
        options: how it is loaded; ``ray``, ``ray_actors`` and ``ray_gpus`` say where it runs.

    Raises:
        ModelError: if Ray is not installed, or there is no cluster at the address.
        InputError: if the cluster has fewer GPUs than are asked for.
    """

    def __init__(self, name: str, options: ModelOptions) -> None:
        super().__init__(name)
        self._ray = needed("ray", "--ray")
        _connect(self._ray, str(options.ray))
        size, resources, threads = _actors(self._ray, options)
        self._pool = Pool(self._ray, name, options, size, resources, threads)
        self._info = replace(self._info, copies=size)

    def identify(self) -> ModelInfo:
        """What the first replica says of itself; waits for it."""
        self._info = replace(self._pool.about.info, copies=self._pool.size)
        return self._info

    @property
    def waiting(self) -> str:
        return self._pool.waiting

    def _facts(self, sample: Sequence[Encoded], spelling: frozenset[str]) -> dict[str, object]:
        found: dict[str, object] = self._pool.ask_one("facts", sample, spelling)
        return found

    def _encoding(self, prompts: Sequence[Prompt]) -> Iterator[Part]:
        units = cut(by_question(prompts, range(len(prompts))), lambda own: len(own), self._pool.size, _LEAST_ENCODED)
        return self._pool.run(
            units, lambda actor, unit: actor.encode.remote([prompts[i] for i in unit.members]), prompts
        )

    def _scoring(self, prompts: Sequence[Prompt], encoded: Sequence[Encoded]) -> Iterator[Part]:
        def distinct(own: Sequence[int]) -> int:
            return other_costs([encoded[i] for i in own], [prompts[i].group for i in own])[1]

        def ask(actor: Any, unit: Unit) -> Any:
            return actor.score.remote([prompts[i].group for i in unit.members], [encoded[i] for i in unit.members])

        questions = by_question(prompts, range(len(prompts)))
        units = cut(questions, distinct, self._pool.size, self._pool.about.token_budget)
        return self._pool.run(units, ask, prompts)


def _connect(ray: Any, where: str) -> None:
    """Connect to a cluster, or start one on this machine, unless this process is connected."""
    if ray.is_initialized():
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray would report its use to its makers
    try:
        ray.init(
            address=None if where == "auto" else where,
            log_to_driver=False,
            logging_level="ERROR",
            include_dashboard=False,
        )
    except (ConnectionError, OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        raise ModelError(f"--ray {where}: no cluster of Ray there: {first_line(error)}") from error


def _actors(ray: Any, options: ModelOptions) -> tuple[int, dict[str, Any], int]:
    """How many actors, the resources of each, and its threads.

    Raises:
        InputError: if the cluster has fewer GPUs than that.
    """
    there = ray.cluster_resources()
    gpus, cpus = there.get("GPU", 0.0), there.get("CPU", 1.0)
    each = options.ray_gpus
    if each is None:
        each = 1.0 if gpus and options.device in ("auto", "cuda") else 0.0
    machines = sum(bool(node["Alive"]) for node in ray.nodes())
    size = options.ray_actors or (max(1, int(gpus / each)) if each else machines)
    if size * each > gpus:
        raise InputError(
            f"--ray-actors {size} of {each:g} GPU{'s' * (each != 1)} each: the cluster has {gpus:g}; give fewer, or "
            "start its machines first"
        )
    resources = {
        "num_cpus": min(1.0, _SHARE * cpus / size),
        "num_gpus": each,
        "scheduling_strategy": "SPREAD",
        "runtime_env": {"env_vars": {name: os.environ[name] for name in _HANDED_ON if name in os.environ}},
    }
    return size, resources, int(os.environ.get("OMP_NUM_THREADS") or max(1, int(cpus / size)))

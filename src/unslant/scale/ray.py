"""A local model in several copies on a Ray cluster, as one scoring model.

Every actor holds a whole copy (a replica) and gets prompts in units of whole questions, so that what a question's
prompts share is still computed once. Units get smaller as the work runs out (guided self-scheduling: Polychronopoulos
and Kuck, 1987), so that all actors end at about the same time. Scores are sent as they are computed, one forward pass
at a time. When an actor dies, another is started, and only prompts without scores are asked again, question by
question.
"""

from __future__ import annotations

import json
import os
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from unslant.errors import InputError, ModelError, UnslantError, first_line, needed, refusal
from unslant.models.base import Encoded, ModelInfo
from unslant.models.hf import other_costs
from unslant.models.options import ModelOptions
from unslant.prompts import Prompt, by_question
from unslant.responses.provenance import known_as
from unslant.scale.replica import Elsewhere, Part, Replica, ReplicaInfo

_SHARE = 0.5
"""Share of an actor's CPUs to reserve with Ray: actors that reserve all of them would block every other job."""
_LEAST_ENCODED = 256
"""Least number of prompts that are worth sending away to be tokenized."""
DEATHS = 4
"""Actors that may die on the same question, or one after the other while loading, before that is an error."""
_LOOK = 0.5
"""Seconds between checks for Ctrl-C."""
_PARTS = 2
"""Units per actor that the remaining work is cut into. With 1, the last units would end far apart."""
_MEMORY = "the usual cause is memory: give fewer --ray-actors"
_HANDED_ON = ("TRANSFORMERS_VERBOSITY", "HF_HUB_DISABLE_PROGRESS_BARS", "TOKENIZERS_PARALLELISM", "OMP_WAIT_POLICY")
"""Variables of this process's environment that every replica gets."""


class RayModel(Elsewhere):
    """A local model in several copies on a Ray cluster; see :mod:`unslant.models.open`.

    Its identity and, up to rounding, its scores are those of the same model in this process, so both share a store. All
    copies are checked to have this identity.

    Args:
        name: of the model.
        options: how it is loaded; ``ray``, ``ray_actors`` and ``ray_gpus`` say where it runs.

    Raises:
        ModelError: if Ray is not installed, or there is no cluster at the address.
        InputError: if the cluster has too few GPUs.
    """

    def __init__(self, name: str, options: ModelOptions) -> None:
        super().__init__(name)
        self._ray = needed("ray", "--ray")
        _connect(self._ray, str(options.ray))
        size, resources, threads = _actors(self._ray, options)
        self._pool = ActorPool(self._ray, name, options, size, resources, threads)
        self._info = replace(self._info, copies=size)

    def identify(self) -> ModelInfo:
        """The first replica's description of itself; waits for it."""
        self._info = replace(self._pool.about.info, copies=self._pool.size)
        return self._info

    @property
    def waiting(self) -> str:
        return self._pool.waiting

    def _facts(self, sample: Sequence[Encoded], spelling: frozenset[str]) -> dict[str, object]:
        return self._pool.facts(sample, spelling)

    def _encoding(self, prompts: Sequence[Prompt]) -> Iterator[Part]:
        units = cut(by_question(prompts, range(len(prompts))), len, self._pool.size, _LEAST_ENCODED)
        return self._pool.run(
            units, lambda actor, unit: actor.encode.remote([prompts[i] for i in unit.members]), prompts
        )

    def _scoring(self, prompts: Sequence[Prompt], encoded: Sequence[Encoded]) -> Iterator[Part]:
        def distinct(members: Sequence[int]) -> int:
            return other_costs([encoded[i] for i in members], [prompts[i].group for i in members])[1]

        def ask(actor: Any, unit: Unit) -> Any:
            return actor.score.remote([prompts[i].group for i in unit.members], [encoded[i] for i in unit.members])

        questions = by_question(prompts, range(len(prompts)))
        units = cut(questions, distinct, self._pool.size, self._pool.about.token_budget)
        return self._pool.run(units, ask, prompts)


def _connect(ray: Any, where: str) -> None:
    """Connect to a cluster, or start one on this machine, unless this process is connected."""
    if ray.is_initialized():  # by the user's program, or for another model of this run
        return
    elsewhere = where not in ("auto", "local")
    if elsewhere and (why := refusal(f"http://{where}")):  # Ray waits for minutes
        raise ModelError(f"--ray {where}: no Ray cluster there: {why}")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # by default Ray reports usage statistics
    try:
        address = None if where == "auto" else where
        ray.init(address=address, log_to_driver=False, logging_level="ERROR", include_dashboard=False)
    except Exception as error:  # Ray raises a bare Exception where a node is slow to start
        reason = "no Ray cluster there" if elsewhere else "Ray could not be started"
        raise ModelError(f"--ray {where}: {reason}: {first_line(error)}") from error


def _actors(ray: Any, options: ModelOptions) -> tuple[int, dict[str, Any], int]:
    """Number of actors, resources of each, and threads of each; InputError if the cluster has too few GPUs."""
    there = ray.cluster_resources()
    gpus, cpus = there.get("GPU", 0.0), there.get("CPU", 1.0)
    usual = 1.0 if gpus and options.device in ("auto", "cuda") else 0.0
    each = usual if options.ray_gpus is None else options.ray_gpus
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


@dataclass(eq=False, slots=True)
class Unit:
    """Work for one actor.

    Attributes:
        members: positions of the prompts.
        deaths: how many actors have died on them.
        arrived: the prompts whose results have arrived.
    """

    members: list[int]
    deaths: int = 0
    arrived: set[int] = field(default_factory=set)

    @property
    def left(self) -> list[int]:
        return [i for i in self.members if i not in self.arrived]


class ActorPool:
    """Actors with one replica each. One that dies is replaced, and the rest of its work goes to another.

    Args:
        ray: the module, connected to a cluster.
        name, options: of the model.
        size: number of actors.
        resources: of each, as ``ray.remote`` takes them.
        threads: of each.

    Attributes:
        waiting: what is being waited for; empty if nothing.
    """

    def __init__(
        self, ray: Any, name: str, options: ModelOptions, size: int, resources: Mapping[str, Any], threads: int
    ) -> None:
        self._ray, self._model, self.size = ray, name, size
        replica = ray.remote(**resources)(Replica)
        self._start: Callable[[], Any] = partial(replica.remote, name, options, threads, os.getcwd())
        self._starting: dict[Any, Any] = {}  # its future description of itself -> actor
        self._idle: list[Any] = []
        self._never_ready = 0
        self._about: ReplicaInfo | None = None
        self.waiting = ""

    @property
    def about(self) -> ReplicaInfo:
        """The first replica's description of itself; waits for it."""
        while self._about is None:
            self._wait_for_actors()
        return self._about

    def facts(self, *arguments: Any) -> dict[str, object]:
        """The facts from one actor, while none is working; ModelError if actors keep dying."""
        for _ in range(DEATHS):
            while not self._idle:
                self._wait_for_actors()
            try:
                return dict(self._result(self._idle[-1].facts.remote(*arguments)))
            except self._ray.exceptions.RayActorError as error:
                self._idle.pop()
                last = _reason(error)
        raise ModelError(f"{self._model}: {DEATHS} Ray actors died in succession ({last})")

    def run(self, units: Sequence[Unit], ask: Callable[[Any, Unit], Any], prompts: Sequence[Prompt]) -> Iterator[Part]:
        """Do all of the work; yields results as they arrive, with positions among all prompts.

        Args:
            ask: starts a unit on an actor; returns the stream of its parts.
            prompts: all of them.

        Raises:
            ModelError: if a prompt cannot be scored, or one question kills actor after actor.
        """
        work = deque(units)
        running: dict[Any, tuple[Any, Unit]] = {}
        try:
            while work or running:
                self._fill(len(running))  # also in place of those that have died
                while work and self._idle:
                    actor, unit = self._idle.pop(), work.popleft()
                    running[ask(actor, unit)] = actor, unit
                for stream in self._ready(running):
                    actor, unit = running[stream]
                    try:
                        part: Part = self._result(next(stream))
                    except StopIteration:
                        del running[stream]
                        self._idle.append(actor)
                    except self._ray.exceptions.RayActorError as error:
                        del running[stream]
                        work.extend(self._after_death(unit, prompts, _reason(error)))
                    else:
                        part.results = [(unit.members[i], result) for i, result in part.results]
                        unit.arrived.update(i for i, _ in part.results)
                        yield part
        finally:
            for actor, _ in running.values():  # stopped early: nothing reads the rest of their results
                self._ray.kill(actor)
            self.waiting = ""

    def _result(self, answer: Any) -> Any:
        """The result of a task, or the error that was raised in the actor."""
        try:
            return self._ray.get(answer)
        except self._ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, UnslantError):
                raise error.cause from None
            raise ModelError(f"in a Ray actor: {first_line(error.cause)}") from None

    def _fill(self, running: int = 0) -> None:
        """Start as many actors as are missing."""
        for _ in range(self.size - len(self._idle) - len(self._starting) - running):
            actor = self._start()
            self._starting[actor.about.remote()] = actor

    def _wait_for_actors(self) -> None:
        self._fill()
        self.waiting = "waiting for Ray to start the model"
        self._ready({})
        self.waiting = ""

    def _ready(self, running: Mapping[Any, Any]) -> list[Any]:
        """Streams that have results, after a short wait; actors that have started become idle."""
        ready, _ = self._ray.wait([*running, *self._starting], timeout=_LOOK)
        for answer in ready:
            if answer in self._starting:
                self._welcome(answer, self._starting.pop(answer))
        return [stream for stream in ready if stream in running]

    def _welcome(self, answer: Any, actor: Any) -> None:
        """Take in an actor that has loaded its replica, or died while loading it.

        Raises:
            ModelError: if the model cannot be loaded, or is not the one that the other replicas loaded.
        """
        try:
            about: ReplicaInfo = self._result(answer)
        except self._ray.exceptions.RayActorError as error:
            self._never_ready += 1
            if self._never_ready < DEATHS:  # a machine may be short of memory only briefly
                return
            raise ModelError(
                f"{self._model}: {DEATHS} Ray actors died while loading it ({_reason(error)}); {_MEMORY}"
            ) from None
        if self._about is None:
            self._about = about
            for text in about.warned:
                warnings.warn(text, stacklevel=2)
        ours, theirs = dict(self._about.info.identity), about.info.identity
        if known_as(theirs, [json.dumps(ours)]) != ours:
            differ = sorted(key for key in {**ours, **theirs} if ours.get(key) != theirs.get(key))
            raise ModelError(
                f"{self._model}: the machines of the cluster do not load the same model; {', '.join(differ)} differ"
            )
        self._never_ready = 0
        self._idle.append(actor)

    def _after_death(self, unit: Unit, prompts: Sequence[Prompt], reason: str) -> list[Unit]:
        """The rest of a unit, question by question, so that one that kills its actor takes no other with it.

        Raises:
            ModelError: if a question has killed :data:`DEATHS` actors.
        """
        deaths, questions = unit.deaths + 1, by_question(prompts, unit.left)
        if len(questions) == 1 and deaths >= DEATHS:
            first = prompts[unit.left[0]]
            raise ModelError(
                f"{f'question {first.group!r}' if first.group else 'a prompt'}: {deaths} actors of Ray died over it, "
                f"one after the other ({reason}); {_MEMORY}, or leave the question out"
            )
        self.waiting = f"a Ray actor died ({reason}) and is being replaced"
        return [Unit(members, deaths) for members in questions]


def cut(questions: Sequence[list[int]], weight: Callable[[Sequence[int]], int], actors: int, least: int) -> list[Unit]:
    """Units of whole questions, in order, each a fraction of the remaining work, so that they get smaller.

    Args:
        weight: amount of work in a question.
        least: work of every unit, except perhaps the last.
    """
    weights = list(map(weight, questions))
    left, units, size = sum(weights), list[Unit](), 0
    for members, work in zip(questions, weights, strict=True):
        if not units or size >= max(least, (left + size) / (_PARTS * actors)):
            units.append(Unit([]))
            size = 0
        units[-1].members += members
        size, left = size + work, left - work
    return units


def _reason(error: Exception) -> str:
    """Why an actor died, in a few words of Ray's."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    cause = next((line for line in reversed(lines) if "cause" in line), lines[-1] if lines else "")
    return cause.partition(". ")[0] or type(error).__name__

"""Actors of Ray that hold a copy of a model each, and how work is shared out among them."""

from __future__ import annotations

import json
import os
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from unslant.errors import ModelError, UnslantError, first_line
from unslant.models.options import ModelOptions
from unslant.prompts.prompt import Prompt
from unslant.scale.replica import About, Part, Replica
from unslant.store.identity import known_as

DEATHS = 4
"""Actors that may die over the same question, or one after the other before they are ready."""
_LOOK = 0.5
"""Seconds between looks at the keyboard."""
_PARTS = 2
"""A unit is one of so many parts of an actor's share of what is left."""
_MEMORY = "the usual cause is memory: give fewer --ray-actors"


@dataclass(eq=False, slots=True)
class Unit:
    """Work for one actor.

    Attributes:
        members: positions of the prompts.
        deaths: how many actors have died over them.
        arrived: those of the prompts whose results are there.
    """

    members: list[int]
    deaths: int = 0
    arrived: set[int] = field(default_factory=set)

    @property
    def left(self) -> list[int]:
        return [i for i in self.members if i not in self.arrived]


class Pool:
    """Actors with a replica each. One that dies is replaced, and what it had not sent is given out again.

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
        self._starting: dict[Any, Any] = {}  # what it will say of itself -> actor
        self._idle: list[Any] = []
        self._never_ready = 0
        self._about: About | None = None
        self.waiting = ""

    @property
    def about(self) -> About:
        """What the first replica said of itself; waits for it."""
        while self._about is None:
            self._wait_for_actors()
        return self._about

    def ask_one(self, method: str, *arguments: Any) -> Any:
        """What one of the actors answers, while none is at work.

        Raises:
            ModelError: if every actor that is asked dies.
        """
        for _ in range(DEATHS):
            while not self._idle:
                self._wait_for_actors()
            try:
                return self._ray.get(getattr(self._idle[-1], method).remote(*arguments))
            except self._ray.exceptions.RayTaskError as error:
                raise _cause(error) from None
            except self._ray.exceptions.RayActorError as error:
                self._idle.pop()
                last = _reason(error)
        raise ModelError(f"{self._model}: {DEATHS} actors of Ray died, one after the other ({last})")

    def run(self, units: Sequence[Unit], ask: Callable[[Any, Unit], Any], prompts: Sequence[Prompt]) -> Iterator[Part]:
        """Do all of the work; yields what comes, as it comes, with positions among all prompts.

        Args:
            ask: begins a unit on an actor; returns the stream of its parts.
            prompts: all of them.

        Raises:
            ModelError: if a prompt cannot be scored, or one question ends actor after actor.
        """
        work = deque(units)
        running: dict[Any, tuple[Any, Unit]] = {}
        try:
            while work or running:
                self._fill(len(running))
                while work and self._idle:
                    actor, unit = self._idle.pop(), work.popleft()
                    running[ask(actor, unit)] = actor, unit
                for one in self._ready(running):
                    actor, unit = running[one]
                    try:
                        part: Part = self._ray.get(next(one))
                    except StopIteration:
                        del running[one]
                        self._idle.append(actor)
                    except self._ray.exceptions.RayTaskError as error:
                        raise _cause(error) from None
                    except self._ray.exceptions.RayActorError as error:
                        del running[one]
                        work.extend(self._after_death(unit, prompts, _reason(error)))
                    else:
                        part.results = [(unit.members[i], found) for i, found in part.results]
                        unit.arrived.update(i for i, _ in part.results)
                        yield part
        finally:
            for actor, _ in running.values():  # nobody waits any more for what they are at
                self._ray.kill(actor)
            self.waiting = ""

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
        """Streams that have something, after a moment's wait; actors that have started are idle from now on."""
        ready, _ = self._ray.wait([*running, *self._starting], timeout=_LOOK)
        for told in ready:
            if told in self._starting:
                self._welcome(told, self._starting.pop(told))
        return [one for one in ready if one in running]

    def _welcome(self, told: Any, actor: Any) -> None:
        """An actor has loaded its replica, or died over it.

        Raises:
            ModelError: if the model cannot be loaded, or is not the one that the other replicas are.
        """
        try:
            about: About = self._ray.get(told)
        except self._ray.exceptions.RayTaskError as error:
            raise _cause(error) from None
        except self._ray.exceptions.RayActorError as error:
            self._never_ready += 1
            if self._never_ready < DEATHS:
                return
            raise ModelError(
                f"{self._model}: {DEATHS} actors of Ray died while they loaded it ({_reason(error)}); {_MEMORY}"
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
        """What has not arrived, question by question, so that one that is to blame stands alone.

        Raises:
            ModelError: if one is to blame.
        """
        deaths, questions = unit.deaths + 1, by_question(prompts, unit.left)
        if len(questions) == 1 and deaths >= DEATHS:
            first = prompts[unit.left[0]]
            raise ModelError(
                f"{f'question {first.group!r}' if first.group else 'a prompt'}: {deaths} actors of Ray died over it, "
                f"one after the other ({reason}); {_MEMORY}, or leave the question out"
            )
        self.waiting = f"an actor of Ray died ({reason}) and is replaced"
        return [Unit(members, deaths) for members in questions]


def by_question(prompts: Sequence[Prompt], members: Iterable[int]) -> list[list[int]]:
    """Positions of the prompts of each group; a prompt without a group is one of its own."""
    found: dict[str | int, list[int]] = {}
    for i in members:
        found.setdefault(prompts[i].group or i, []).append(i)
    return list(found.values())


def cut(questions: Sequence[list[int]], weight: Callable[[Sequence[int]], int], actors: int, least: int) -> list[Unit]:
    """Units of whole questions, in their order, each a part of what is then left, so that they get smaller.

    Args:
        weight: work that a question is.
        least: work of a unit, but for the last one.
    """
    weights = [weight(own) for own in questions]
    left, units, size = sum(weights), list[Unit](), 0
    for own, work in zip(questions, weights, strict=True):
        if not units or size >= max(least, (left + size) / (_PARTS * actors)):
            units.append(Unit([]))
            size = 0
        units[-1].members += own
        size, left = size + work, left - work
    return units


def _cause(error: Any) -> UnslantError:
    """What was raised in an actor."""
    cause = error.cause
    return cause if isinstance(cause, UnslantError) else ModelError(f"in an actor of Ray: {first_line(cause)}")


def _reason(error: Exception) -> str:
    """Why an actor died, in a few words of Ray's."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = next((line for line in reversed(lines) if "because" in line or "cause" in line), lines[-1] if lines else "")
    return told.partition(". ")[0] or type(error).__name__

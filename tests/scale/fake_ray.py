"""Enough of Ray, in this process: actors whose calls run when they are waited for, and that die on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any


class RayActorError(Exception):
    pass


class RayTaskError(Exception):
    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


class _Call:
    """A call of an actor's method: what it returned, or (it being a generator) the stream of it."""

    def __init__(self, actor: _Actor, function: Callable[[], Any]) -> None:
        self.actor, self._function = actor, function
        self._stream: Iterator[Any] | None = None

    def __next__(self) -> Callable[[], Any]:
        if self._stream is None:
            self._stream = self._function()
        try:
            value = next(self._stream)
        except StopIteration:
            raise
        except Exception as error:
            return partial(self._raise, error)
        return lambda: value

    def __call__(self) -> Any:
        try:
            return self._function()
        except Exception as error:
            self._raise(error)

    def _raise(self, error: Exception) -> Any:
        if isinstance(error, RayActorError):
            self.actor.dead = True
            raise error
        raise RayTaskError(error)


class _Actor:
    def __init__(self, made: Any) -> None:
        self.made, self.dead = made, False

    def __getattr__(self, name: str) -> Any:
        def remote(*arguments: Any) -> _Call:
            def call() -> Any:
                if self.dead:
                    raise RayActorError("The actor is dead because it was killed.")
                return getattr(self.made, name)(*arguments)

            return _Call(self, call)

        return SimpleNamespace(remote=remote)


class FakeRay:
    """The functions of the module ``ray`` that are used.

    Args:
        kind: class of the actors, in place of the one that is given to ``remote``.
    """

    exceptions = SimpleNamespace(RayActorError=RayActorError, RayTaskError=RayTaskError)

    def __init__(self, kind: Callable[..., Any]) -> None:
        self.kind = kind
        self.started: list[_Actor] = []
        self.killed: list[_Actor] = []

    def remote(self, **_: Any) -> Callable[[Any], Any]:
        def start(*arguments: Any) -> _Actor:
            self.started.append(_Actor(self.kind(*arguments)))
            return self.started[-1]

        return lambda kind: SimpleNamespace(remote=start)

    @staticmethod
    def wait(calls: Sequence[Any], timeout: float) -> tuple[list[Any], list[Any]]:
        return list(calls), []

    @staticmethod
    def get(found: Callable[[], Any]) -> Any:
        return found()

    def kill(self, actor: _Actor) -> None:
        actor.dead = True
        self.killed.append(actor)

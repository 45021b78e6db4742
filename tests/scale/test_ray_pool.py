"""What the pool of actors does when actors die, fail or differ; with a stand-in for Ray."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from tests.scale.fake_ray import FakeRay, RayActorError
from unslant import InputError, ModelError
from unslant.cli import with_values
from unslant.models import ModelInfo
from unslant.models.open import address_of
from unslant.models.options import ModelOptions
from unslant.prompts import Prompt, by_question
from unslant.scale.ray import DEATHS, ActorPool, Unit, _connect, cut
from unslant.scale.replica import Part, ReplicaInfo

PROMPTS = [Prompt(f"{question}, way {way}", (" A",), group=f"q{question}") for question in range(6) for way in range(4)]


class Copy:
    """Answers every prompt with its text, in parts of three prompts."""

    def __init__(self, *_: object) -> None: ...

    def about(self) -> ReplicaInfo:
        return ReplicaInfo(ModelInfo(name="copy", identity={"weights": "0"}), 10)

    def score(self, prompts: Sequence[Prompt]) -> Iterator[Part]:
        for start in range(0, len(prompts), 3):
            yield Part([(i, self.answer(prompts[i])) for i in range(start, min(len(prompts), start + 3))])

    def answer(self, prompt: Prompt) -> str:
        return prompt.text


def pool_of(kind: Callable[..., Any], size: int = 2) -> ActorPool:
    return ActorPool(FakeRay(kind), "fair", ModelOptions(ray="auto"), size, {}, 1)


def run(pool: ActorPool, units: Sequence[Unit] | None = None) -> Iterator[Part]:
    units = units or cut(by_question(PROMPTS, range(len(PROMPTS))), len, pool.size, 4)
    return pool.run(units, lambda actor, unit: actor.score.remote([PROMPTS[i] for i in unit.members]), PROMPTS)


def results(parts: Iterator[Part]) -> list[tuple[int, str]]:
    return sorted(one for part in parts for one in part.results)


EVERY = [(i, prompt.text) for i, prompt in enumerate(PROMPTS)]


def test_every_prompt_is_answered_once() -> None:
    assert results(run(pool_of(Copy))) == EVERY


def test_what_arrived_before_a_death_is_kept_and_nothing_else_is_asked_again() -> None:
    asked: list[str] = []
    deaths = iter([7, 12, 13, 20])
    due = next(deaths)

    class Mortal(Copy):
        def answer(self, prompt: Prompt) -> str:
            nonlocal due
            asked.append(prompt.text)
            if len(asked) == due:
                due = next(deaths, 0)
                raise RayActorError("it was killed")
            return prompt.text

    pool = pool_of(Mortal)
    assert results(run(pool)) == EVERY
    assert len(asked) <= len(EVERY) + 4 * 3  # a part of three at each death
    assert pool.size == 2


def test_the_question_that_ends_actors_is_named_and_the_others_are_there() -> None:
    class Poisoned(Copy):
        def answer(self, prompt: Prompt) -> str:
            if prompt.group == "q3":
                raise RayActorError("The worker died because it ran out of memory.")
            return prompt.text

    parts, found = run(pool_of(Poisoned)), list[tuple[int, str]]()
    with pytest.raises(ModelError, match=rf"question 'q3': {DEATHS} actors .*out of memory.*ray.actors"):
        found.extend(one for part in parts for one in part.results)
    assert sorted(found) == [one for one in EVERY if PROMPTS[one[0]].group != "q3"]


def test_an_actor_that_died_idle_is_replaced() -> None:
    pool = pool_of(Copy)
    results(run(pool))
    for actor in pool._ray.started:
        actor.dead = True
    assert results(run(pool)) == EVERY


def test_actors_are_not_started_for_ever() -> None:
    class Stillborn(Copy):
        def about(self) -> ReplicaInfo:
            raise RayActorError("The worker died because it ran out of memory.")

    pool = pool_of(Stillborn)
    with pytest.raises(ModelError, match=f"{DEATHS} Ray actors died while loading it"):
        results(run(pool))


def test_what_is_raised_in_an_actor_is_raised_here() -> None:
    class Refusing(Copy):
        def answer(self, prompt: Prompt) -> str:
            raise ModelError(f"question {prompt.group!r}: too long")

    with pytest.raises(ModelError, match=r"^question 'q0': too long$"):
        results(run(pool_of(Refusing)))


def test_a_cluster_whose_machines_hold_different_weights_is_refused() -> None:
    numbers = iter(range(9))

    class Changing(Copy):
        def about(self) -> ReplicaInfo:
            info = ModelInfo(name="copy", identity={"weights": str(next(numbers)), "dtype": "float32"})
            return ReplicaInfo(info, 10)

    with pytest.raises(ModelError, match="not load the same model; weights differ"):
        results(run(pool_of(Changing)))


def test_actors_at_work_are_given_up_with_the_call() -> None:
    pool = pool_of(Copy)
    parts = run(pool)
    next(parts)
    parts.close()  # type: ignore[attr-defined]
    assert pool._ray.killed
    assert results(run(pool)) == EVERY


def test_units_are_whole_questions_and_get_smaller() -> None:
    questions = by_question(PROMPTS * 20, range(20 * len(PROMPTS)))
    assert [len(own) for own in questions] == [80] * 6
    pieces = [[4 * i + j for j in range(4)] for i in range(100)]
    units = cut(pieces, len, 2, 8)
    assert [i for unit in units for i in unit.members] == list(range(400))
    sizes = [len(unit.members) for unit in units]
    assert sizes[0] == 100
    assert sizes[:-1] == sorted(sizes[:-1], reverse=True)
    assert min(sizes[:-1]) == 8
    assert cut([], len, 2, 8) == []


@pytest.mark.parametrize(
    ("options", "needs", "words"),
    [
        ({"ray_actors": 2}, ("score",), "ray_actors and ray_gpus need ray$"),
        ({"ray": "auto", "ray_actors": 0}, ("score",), "ray_actors=0: give 1 or more"),
        ({"ray": "auto", "ray_gpus": -1}, ("score",), "ray_gpus=-1"),
        ({"ray": "auto"}, ("score", "train"), "weights that can be trained, in this process: leave out ray$"),
        ({"ray": "ray://head:10001"}, ("score",), 'Ray\'s client cannot stream.*ray="auto"'),
        ({"ray": "auto"}, ("generate",), "leave out ray, which has no effect here"),
    ],
)
def test_what_cannot_be_on_a_cluster_is_said_at_once(options: dict[str, Any], needs: tuple[str, ...], words: str):
    with pytest.raises(InputError, match=words):
        address_of("fair", ModelOptions(**options), needs)


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("audit fair --ray", "audit fair --ray=auto"),
        ("audit --ray fair q.jsonl", "audit --ray=auto fair q.jsonl"),
        ("audit fair --ray --ray-actors 2", "audit fair --ray=auto --ray-actors 2"),
        ("audit fair --ray local", "audit fair --ray local"),
        ("audit fair --ray 10.0.0.1:6379 -q", "audit fair --ray 10.0.0.1:6379 -q"),
        ("audit fair --ray ray://head:10001", "audit fair --ray ray://head:10001"),
        ("audit fair --ray=head:6379", "audit fair --ray=head:6379"),
    ],
)
def test_the_address_of_the_cluster_may_be_left_out(typed: str, read: str) -> None:
    assert with_values(typed.split()) == read.split()


def test_a_cluster_that_does_not_start_is_one_line() -> None:
    def slow(**_: Any) -> None:
        raise Exception("The current node timed out during startup.\nThis could happen because ...")

    fake = SimpleNamespace(is_initialized=lambda: False, init=slow)
    with socket.create_server(("127.0.0.1", 0)) as server:
        there = f"127.0.0.1:{server.getsockname()[1]}"
        reasons = {"auto": "Ray could not be started", there: "no Ray cluster there"}
        for where, words in reasons.items():
            with pytest.raises(
                ModelError, match=rf"ray {where}: {words}: The current node timed out during startup\.$"
            ):
                _connect(fake, where)
    never = SimpleNamespace(is_initialized=lambda: False, init=lambda **_: pytest.fail("Ray waits for minutes"))
    with pytest.raises(ModelError, match=rf"ray {there}: no Ray cluster there: .*refused"):
        _connect(never, there)

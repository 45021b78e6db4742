"""One view of a run: phase, rate, time left, tokens saved. Live on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.progress import TaskID

    from unslant.models.base import ScoringModel

_SECONDS_BETWEEN_DRAWINGS = 0.1
_SECONDS_BETWEEN_LINES = 10.0


class View(Protocol):
    """A watch (see :data:`unslant.asking.Watch`) that can be told whose tokens to count."""

    def __call__(self, phase: str, done: int, total: int) -> None:
        """So many of a phase's prompts are done."""
        ...

    def follow(self, model: ScoringModel) -> None:
        """Count this model's tokens."""
        ...


@contextmanager
def progress(quiet: bool) -> Iterator[View]:
    """A view on standard error while the block runs; none at all with ``quiet``."""
    if quiet:
        yield _Silent()
    elif sys.stderr.isatty():
        with _live() as view:
            yield view
    else:
        yield Lines(lambda line: print(line, file=sys.stderr, flush=True))


@dataclass
class Meter:
    """What is known of a phase: how far, how fast, how long still, at what saving."""

    phase: str
    total: int
    clock: Callable[[], float] = time.monotonic
    model: ScoringModel | None = None
    done: int = 0

    def __post_init__(self) -> None:
        self.started = self.clock()
        self.recalled_before = getattr(self.model, "recalled", 0)

    @property
    def rate(self) -> float:
        """Prompts a second, those that came from a store left out; 0 while nothing is known."""
        fresh = self.done - (getattr(self.model, "recalled", 0) - self.recalled_before)
        seconds = self.clock() - self.started
        return fresh / seconds if fresh > 0 and seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """None while nothing is known."""
        return (self.total - self.done) / self.rate if self.rate else None

    @property
    def fewer_tokens(self) -> float | None:
        """How many times the tokens would be needed, prompt by prompt, for what is done so far; None if not known."""
        if self.model is None or not self.model.cost.tokens or not self.model.cost.tokens_plain:
            return None
        cost = self.model.cost
        asked = max(self.total - getattr(self.model, "taken_over", 0), cost.prompts, 1)
        return cost.tokens_plain * (cost.prompts / asked) / cost.tokens

    def facts(self) -> list[str]:
        """Rate, time and saving, in words; as far as known."""
        found = [_rate(self.rate)] if self.rate else []
        if self.done == self.total:
            found.append(f"done in {_duration(self.clock() - self.started)}")
        elif self.seconds_left is not None:
            found.append(f"{_duration(self.seconds_left)} left")
        if self.fewer_tokens:
            found.append(f"{self.fewer_tokens:.1f}x fewer tokens")
        return found

    def __str__(self) -> str:
        return ", ".join([f"{self.phase}: {self.done:,} of {self.total:,}", *self.facts()])


def _rate(rate: float) -> str:
    return f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.2g}/s"


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, seconds = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {seconds:02} s"
    return f"{minutes // 60} h {minutes % 60:02} min"


class _Silent:
    def __call__(self, phase: str, done: int, total: int) -> None:
        pass

    def follow(self, model: ScoringModel) -> None:
        pass


class Lines:
    """A line now and then, and one at the first end of each phase: one that comes again and again is not worth more.

    Args:
        write: takes a line.
        clock: seconds, from any beginning.
    """

    def __init__(self, write: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self.write = write
        self.clock = clock
        self.model: ScoringModel | None = None
        self.meters: dict[str, Meter] = {}
        self.ended: set[str] = set()
        self.last = clock()

    def follow(self, model: ScoringModel) -> None:
        """See :class:`View`."""
        self.model = model

    def __call__(self, phase: str, done: int, total: int) -> None:
        """See :class:`View`."""
        meter = _meter(self.meters, phase, done, total, self.clock, self.model)
        now = self.clock()
        ends = done == total and total > 0 and phase not in self.ended
        if ends:
            self.ended.add(phase)
        if ends or now - self.last >= _SECONDS_BETWEEN_LINES:
            self.last = now
            self.write(str(meter))


def _meter(
    meters: dict[str, Meter],
    phase: str,
    done: int,
    total: int,
    clock: Callable[[], float],
    model: ScoringModel | None,
) -> Meter:
    """The phase's meter, brought up to date; a phase that begins anew gets a new one."""
    meter = meters.get(phase)
    if meter is None or done == 0 or done < meter.done or meter.total != total or meter.done == total:
        meter = meters[phase] = Meter(phase, total, clock, model)
    meter.done = done
    return meter


@contextmanager
def _live() -> Iterator[View]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[text]}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, TaskID] = {}
        meters: dict[str, Meter] = {}

        class Live(_Silent):
            model: ScoringModel | None = None
            last = 0.0

            def follow(self, model: ScoringModel) -> None:
                self.model = model

            def __call__(self, phase: str, done: int, total: int) -> None:
                now = time.monotonic()
                if phase not in tasks:
                    tasks[phase] = bar.add_task(phase, total=total, text="")
                elif now - self.last < _SECONDS_BETWEEN_DRAWINGS and 0 < done < total:
                    return
                self.last = now
                meter = _meter(meters, phase, done, total, time.monotonic, self.model)
                bar.update(tasks[phase], completed=done, total=total, text=", ".join(meter.facts()))

        yield Live()

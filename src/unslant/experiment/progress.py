"""Progress of a run: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from unslant.asking import Progress as Callback
from unslant.asking import at_once, no_progress
from unslant.models import Model, ScoringModel
from unslant.reports.escape import one_line

_SECONDS_BETWEEN_LINES = 10.0
_SECONDS_BEFORE_ESTIMATES, _SHARE_BEFORE_ESTIMATES = 60.0, 0.02
"""Before either, the time left is not estimated: the first prompts of a run take far longer than the rest."""


@contextmanager
def show_progress(quiet: bool) -> Iterator[ProgressView]:
    """Show progress on standard error while the block runs, unless ``quiet``."""
    live = not quiet and sys.stderr.isatty()
    view = ProgressView(None if quiet or live else lambda line: print(line, file=sys.stderr, flush=True), live=live)
    with view.bar:
        yield view


def progress_of_python() -> Callback:
    """Progress of a Python call that says nothing of it: one line, updated in place, in a notebook; else none."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if not hasattr(shell, "kernel"):
        return no_progress
    from IPython.display import display

    shown: list[Any] = []

    def write(line: str) -> None:
        if shown:
            shown[0].update({"text/plain": line}, raw=True)
        else:
            shown.append(display({"text/plain": line}, raw=True, display_id=True))

    return ProgressView(write, in_place=True)


class ProgressView:
    """A progress callback (:data:`unslant.asking.Progress`).

    Args:
        write: receives a line every ten seconds and when a phase first ends.
        in_place: a line replaces the one before, so that it may come every second and at every end.
        live: draw bars on standard error.
        clock: monotonic time in seconds.

    Attributes:
        model: source of the token counts.
    """

    def __init__(
        self,
        write: Callable[[str], None] | None,
        *,
        live: bool = False,
        clock: Callable[[], float] = time.monotonic,
        in_place: bool = False,
    ) -> None:
        self.write, self.clock, self.in_place = write, clock, in_place
        self.every = 1.0 if in_place else _SECONDS_BETWEEN_LINES
        self.model: Model | None = None
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), _Facts())
        self.bar = Progress(
            *columns, console=Console(stderr=True), transient=True, disable=not live, get_time=clock, auto_refresh=live
        )
        self._tasks: dict[str, Task] = {}
        self._ended: set[str] = set()
        self._last = clock()

    def __call__(self, phase: str, done: int, total: int) -> None:
        """Report that ``done`` of a phase's ``total`` prompts are done."""
        task = self._tasks.get(phase)
        if task is None or done == 0 or done < task.completed or (task.finished and task.total == total):
            if task is not None:
                self.bar.remove_task(task.id)
            number = self.bar.add_task(phase, total=total, model=self.model, before=_recalled(self.model))
            task = self._tasks[phase] = next(task for task in self.bar.tasks if task.id == number)
        self.bar.update(task.id, completed=done, total=total)
        ends = done == total > 0 and (self.in_place or phase not in self._ended)
        if ends:
            self._ended.add(phase)
        if self.write and (ends or self.clock() - self._last >= self.every):
            self._last = self.clock()
            self.write(", ".join([f"{phase}: {done:,} of {total:,}", *facts(task)]))

    @contextmanager
    def loading(self, name: str) -> Iterator[None]:
        """Show that a model is being loaded: at once on a terminal, elsewhere in a line once it takes a second."""
        if not self.write:
            task = self.bar.add_task(f"loading {one_line(name)}", total=None, model=None, before=0)
            try:
                yield
            finally:
                self.bar.remove_task(task)
            return
        timer = threading.Timer(1.0, self.write, [f"loading {one_line(name)} ..."])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def let_go(self) -> None:
        """Forget the models asked so far."""
        for task in self._tasks.values():
            self.bar.remove_task(task.id)
        self._tasks.clear()
        self._ended.clear()
        self.model = None


class _Facts(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(", ".join(facts(task)))


def facts(task: Task) -> list[str]:
    """Rate (without prompts recalled from the store), time left or taken, tokens saved, and what it waits for."""
    seconds, done, total = task.elapsed or 0.0, int(task.completed), int(task.total or 0)
    if task.total is None:  # a model is loaded
        return [_duration(seconds)]
    model: Model | None = task.fields["model"]
    fresh = done - (_recalled(model) - task.fields["before"])
    rate = fresh / seconds if fresh > 0 and seconds > 0 else 0.0
    found = [f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.2g}/s"] if rate else []
    if done == total:
        found.append(f"done in {_duration(seconds)}")
    elif rate and (seconds >= _SECONDS_BEFORE_ESTIMATES or done >= total * _SHARE_BEFORE_ESTIMATES):
        found.append(f"{_duration((total - done) / rate)} left")
    if model is None:
        return found
    portion = at_once(model)
    begun = min(total, -(-done // portion) * portion)  # tokens are counted a portion at a time, ahead
    saving = _fewer_tokens(model, begun)
    found += [f"{saving:.1f}x fewer tokens"] if saving > 1 else []
    return [*found, *filter(None, [model.waiting])]


def _fewer_tokens(model: Model, counted: int) -> float:
    """Token cost of the finished prompts run one by one, relative to the actual cost; 0 if unknown."""
    if not isinstance(model, ScoringModel) or not (cost := model.cost).tokens:
        return 0.0
    if not cost.tokens_baqckv:  # a server's count, which runs along with the prompts
        return cost.tokens_plain / cost.tokens
    asked = max(counted - model.taken_over, cost.prompts, 1)
    return cost.tokens_plain * (cost.prompts / asked) / cost.tokens


def _recalled(model: Model | None) -> int:
    return model.recalled if model else 0


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    if not minutes:
        return f"{rest} s"
    return f"{minutes} min {rest:02} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"

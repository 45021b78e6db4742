"""Shared by commands that ask a model: open it, show progress, store its scores, write the result."""

from __future__ import annotations

import io
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from unslant.asking import Progress
from unslant.errors import UnslantError
from unslant.experiment.command_line import COMMAND, ON_INTERRUPT
from unslant.experiment.options import StoreOptions
from unslant.experiment.progress import ProgressView, show_progress
from unslant.experiment.provenance_block import check_same, same_as_before
from unslant.models import ChatModel
from unslant.reach import url_without_secrets, without_secrets

if TYPE_CHECKING:
    from unslant.experiment.result import StudyResult
    from unslant.models import Model, ScoringModel
    from unslant.questions import QuestionSet
    from unslant.responses import Responses
    from unslant.store import Store

Asked = TypeVar("Asked", bound="ScoringModel | ChatModel")


@contextmanager
def recording(options: StoreOptions, quiet: bool) -> Iterator[Recording]:
    """Store every score and reply and show progress while the block runs; StoreError if the store cannot be opened.

    The outputs are written after the block, together with :meth:`Recording.check_kept`.
    """
    opened: Store | None = None
    if not options.no_store:
        from unslant.store import Store

        opened = Store(options.store)
    with show_progress(quiet) as view:
        found = Recording(view, opened, options.offline, options.store)
        try:
            with found.noting_the_end():
                yield found
        finally:
            if opened is not None:
                opened.close()
    for note in found.notes(quiet):
        print(note, file=sys.stderr)


class Recording:
    """A running command: its ``progress`` (for the study), models and entry in the store."""

    def __init__(
        self, progress: Progress, store: Store | None, offline: bool = False, named: Path | None = None
    ) -> None:
        self.progress = progress
        self._named, self._ended = named, False
        self._store, self.offline = store, offline
        self._run = ""
        self._stop_beating: Callable[[], None] = lambda: None
        self._models: list[Model] = []
        self._recalled = 0
        self._lost: UnslantError | None = None

    def loader(
        self, load: Callable[[], Asked], *questions: QuestionSet[Any] | None, run_of: str = ""
    ) -> Callable[[], Asked]:
        """``load`` with stored scores or replies; the run is recorded once it is called.

        Args:
            run_of: all models of the run, if there are several.
        """
        for one in questions:
            check_same(one)
        name = next((arg for arg in getattr(load, "args", ()) if isinstance(arg, str)), "the model")
        load = same_as_before(load)

        def loaded() -> Asked:
            self._let_go()
            with self.progress.loading(name) if isinstance(self.progress, ProgressView) else nullcontext():
                asked = load()
            if self._store is not None:
                self.begin(run_of or asked.name, *questions)
            model = self.stored(asked)
            self._watch(model)
            return model

        return loaded

    def _let_go(self) -> None:
        """Keep no model that was asked before in memory."""
        self._recalled += sum(model.recalled for model in self._models)
        self._models.clear()
        self._watch(None)

    def _watch(self, model: Any) -> None:
        """The view of progress counts this model's tokens; a function from Python is only called."""
        if isinstance(self.progress, ProgressView):
            self.progress.model = model

    def stored(self, model: Asked) -> Asked:
        """The model with its scores or replies stored, unless nothing is to be."""
        if self._store is None:
            return model
        self.begin(model.name)
        from unslant.models.stored import StoredModel
        from unslant.models.stored_chat import StoredChat

        kind: Any = StoredChat if isinstance(model, ChatModel) else StoredModel
        found = kind(model, self._store, self._run, offline=self.offline)
        self._models.append(found)
        return cast("Asked", found)

    def begin(self, model: str, *questions: QuestionSet[Any] | None) -> None:
        """Record the run, unless it is."""
        if self._store is not None and not self._run:
            self._run = self._store.runs.start(COMMAND.get().words, Path.cwd(), url_without_secrets(model))
            self._stop_beating = self._store.runs.keep_alive(self._run)
            asked = [found for found in questions if found is not None]
            if asked:
                names, digests = (", ".join(words) for words in zip(*((q.name, q.digest) for q in asked), strict=True))
                self._store.runs.note_questions(self._run, names, digests)

    def keep(self, responses: Responses) -> None:
        """Store the finished table, for ``unslant runs export``."""
        if self._store is not None and self._run:
            written = io.BytesIO()
            responses.to_parquet(written)
            with self._after_asking():
                self._store.runs.keep_responses(self._run, written.getvalue())

    def note_score(self, found: StudyResult | str) -> None:
        """Store what ``unslant runs list`` shows of a result: its first key number, or its headline."""
        if self._store is None or not self._run:
            return
        if not isinstance(found, str):
            from unslant.reports.numbers import number

            page = found.page()
            tile = page.tiles[0] if page.tiles and not found.failure else None
            found = f"{number(tile.estimate, tile.metric)} {tile.metric.name}" if tile else page.headline
        with self._after_asking():
            self._store.runs.note_score(self._run, found)

    @contextmanager
    def _after_asking(self) -> Iterator[None]:
        """What the store fails with once everything was asked must not cost the outputs: it is raised after them."""
        try:
            yield
        except UnslantError as error:
            self._lost = self._lost or error

    def check_kept(self) -> None:
        """Raise the first StoreError of those that came after everything had been asked."""
        if self._lost:
            raise self._lost

    def notes(self, quiet: bool) -> list[str]:
        """Notes for the user, unless ``quiet``: prompts recalled from the store."""
        self._let_go()
        recalled = self._recalled
        if not self._store or not recalled or quiet:
            return []
        return [f"{recalled:,} prompts reused from the store ({self._store.path})"]

    @contextmanager
    def noting_the_end(self) -> Iterator[None]:
        """Record in the store how the block ended."""
        ON_INTERRUPT.append(self._stop)
        try:
            yield
        except KeyboardInterrupt:
            self._stop()
            raise
        except BaseException as error:
            with suppress(UnslantError):  # the store itself may be what failed
                self._end("failed", without_secrets(str(error)) or type(error).__name__)
            raise
        finally:
            ON_INTERRUPT.remove(self._stop)
        with self._after_asking():
            self._end("done")

    def _stop(self) -> None:
        """Note that the run was interrupted, and say how to resume it; once."""
        if self._ended:
            return
        self._ended = True
        with suppress(UnslantError):
            self._end("stopped")
        if self._run:
            # whoever names a store and stops a run in it wrote its command a moment ago
            place = f" --store {shlex.quote(str(self._named))} --trust" if self._named else ""
            print(f"progress saved; continue with: unslant runs resume {self._run}{place}", file=sys.stderr, flush=True)

    def _end(self, status: str, message: str = "") -> None:
        self._stop_beating()
        if self._store is not None and self._run:
            self._store.runs.end(self._run, status, message)

"""What commands that ask a model share: the view of its progress, and the store that keeps what it says."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from unslant.cli.progress import View, progress

if TYPE_CHECKING:
    from unslant.models.base import ScoringModel
    from unslant.questions import QuestionSet
    from unslant.responses.table import Responses
    from unslant.store import Store


@contextmanager
def recording(store: Path | None, no_store: bool, quiet: bool) -> Iterator[Recording]:
    """Keep every score while the block runs, and show how far it is.

    Args:
        store: the store's file; None is the user's own.
        no_store: keep nothing.
        quiet: show nothing.

    Raises:
        StoreError: if the store cannot be opened.
    """
    opened: Store | None = None
    if not no_store:
        from unslant.store import Store

        opened = Store(store)
    with progress(quiet) as view:
        found = Recording(view, opened)
        try:
            with found.noting_the_end():
                yield found
        finally:
            if opened is not None:
                opened.close()
    if not quiet and opened is not None and found.recalled:
        typer.echo(f"{found.recalled:,} prompts had been scored before ({opened.path})", err=True)


class Recording:
    """A command at work.

    Attributes:
        watch: to be handed to the study.
    """

    def __init__(self, watch: View, store: Store | None) -> None:
        self.watch = watch
        self._store = store
        self._run = ""
        self._models: list[ScoringModel] = []

    def loader(
        self, load: Callable[[], ScoringModel], questions: QuestionSet[Any] | None = None
    ) -> Callable[[], ScoringModel]:
        """``load``, with what the model says being kept. Until it is called, no run is noted."""

        def loaded() -> ScoringModel:
            model = load()
            if self._store is not None:
                from unslant.models.stored import StoredModel

                self._begin(self._store, model.name, questions)
                model = StoredModel(model, self._store, self._run)
            self._models.append(model)
            self.watch.follow(model)
            return model

        return loaded

    def _begin(self, store: Store, model: str, questions: QuestionSet[Any] | None) -> None:
        if not self._run:
            self._run = store.runs.start(sys.argv[1:], Path.cwd(), model)
            if questions is not None:
                store.runs.note_questions(self._run, questions.name, questions.digest)

    def keep(self, responses: Responses) -> None:
        """Keep the finished table, for ``unslant runs export``."""
        if self._store is not None and self._run:
            written = io.BytesIO()
            responses.to_parquet(written)
            self._store.runs.keep_responses(self._run, written.getvalue())

    @property
    def recalled(self) -> int:
        """Prompts that came from the store."""
        return sum(getattr(model, "recalled", 0) for model in self._models)

    @contextmanager
    def noting_the_end(self) -> Iterator[None]:
        """Note in the store how the block ended."""
        from unslant.errors import UnslantError

        try:
            yield
        except BaseException as error:
            stopped = isinstance(error, KeyboardInterrupt)
            message = "" if stopped else str(error) or type(error).__name__
            with suppress(UnslantError):  # the store itself may be what failed
                self._end("stopped" if stopped else "failed", message)
            if stopped and self._run:
                typer.echo(f"what was scored is kept; go on with: unslant runs resume {self._run}", err=True)
            raise
        self._end("done")

    def _end(self, status: str, message: str = "") -> None:
        if self._store is not None and self._run:
            self._store.runs.end(self._run, status, message)

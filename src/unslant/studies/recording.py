"""Shared by commands that ask a model: open it, show progress, store its scores, write the result."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unslant.errors import InputError, UnslantError
from unslant.models import GenerateOptions, ModelOptions
from unslant.models.open import address_of, open_chat, open_model
from unslant.studies.options import LoadOptions, OutputOptions, StoreOptions
from unslant.studies.outputs import check_outputs, read_logs, write_outputs
from unslant.studies.progress import ProgressView, show_progress
from unslant.studies.provenance_block import same_as_before

if TYPE_CHECKING:
    from unslant.models import ScoringModel
    from unslant.questions import QuestionSet
    from unslant.responses import Responses
    from unslant.store import Store
    from unslant.studies.result import StudyResult


def run_study(
    study: Callable[..., Any],
    model: str,
    questions: str,
    settings: LoadOptions,
    models: ModelOptions,
    outputs: OutputOptions,
    store: StoreOptions,
    generate: GenerateOptions | None = None,
) -> Any:
    """Run a command that asks one model one question set, and return the study's result.

    Options are checked before anything is loaded, and questions are read before the model.

    Args:
        study: called with a model loader, the questions, the settings and ``progress``; its result has ``responses``.
        generate: how to generate replies, which are not stored; by default labels are scored.
    """
    check_outputs(outputs)
    address_of(model, models, ("generate",) if generate else ("score",))
    found = settings.load(questions, getattr(settings, "maths", False))
    if generate:
        with show_progress(outputs.quiet) as progress:
            result = study(partial(open_chat, model, models, generate), found, settings, progress=progress)
    else:
        with recording(store, outputs.quiet) as record:
            loader = record.loader(partial(open_model, model, models), settings.sampled(found))
            result = study(loader, found, settings, progress=record.progress)
            record.keep(result.responses)
    write_outputs(result, outputs)
    return result


def report_logs(
    paths: Sequence[Path],
    kind: type[StudyResult],
    outputs: OutputOptions,
    compare: Callable[[Sequence[Any]], StudyResult] | None = None,
) -> None:
    """Run a command that reads recorded responses: one file, or several given ``compare``.

    Raises:
        InputError: if a file cannot be read, or there are several that cannot be compared.
    """
    check_outputs(outputs)
    if len(paths) > 1 and compare is None:
        raise InputError(f"--log: give one file; to compare several, use: unslant report {' '.join(map(str, paths))}")
    found = read_logs(paths, kind)
    write_outputs(found[0] if compare is None or len(found) == 1 else compare(found), outputs)


@contextmanager
def recording(options: StoreOptions, quiet: bool) -> Iterator[Recording]:
    """Store every score and show progress while the block runs; StoreError if the store cannot be opened."""
    opened: Store | None = None
    if not options.no_store:
        from unslant.store import Store

        opened = Store(options.store)
    with show_progress(quiet) as view:
        found = Recording(view, opened, options.offline)
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

    def __init__(self, progress: ProgressView, store: Store | None, offline: bool = False) -> None:
        self.progress = progress
        self._store, self._offline = store, offline
        self._run = ""
        self._stop_beating: Callable[[], None] = lambda: None
        self._models: list[ScoringModel] = []

    def loader(
        self, load: Callable[[], ScoringModel], questions: QuestionSet[Any] | None = None
    ) -> Callable[[], ScoringModel]:
        """``load`` with stored scores; the run is recorded once it is called."""
        load = same_as_before(load, questions)

        def loaded() -> ScoringModel:
            model = load()
            self._models.append(model)
            if self._store is not None:
                from unslant.models.stored import StoredModel

                self._begin(self._store, model.name, questions)
                model = StoredModel(model, self._store, self._run, offline=self._offline)
                self._models.append(model)
            self.progress.model = model
            return model

        return loaded

    def _begin(self, store: Store, model: str, questions: QuestionSet[Any] | None) -> None:
        if not self._run:
            self._run = store.runs.start(sys.argv[1:], Path.cwd(), model)
            self._stop_beating = store.runs.keep_alive(self._run)
            if questions is not None:
                store.runs.note_questions(self._run, questions.name, questions.digest)

    def keep(self, responses: Responses) -> None:
        """Store the finished table, for ``unslant runs export``."""
        if self._store is not None and self._run:
            written = io.BytesIO()
            responses.to_parquet(written)
            self._store.runs.keep_responses(self._run, written.getvalue())

    def notes(self, quiet: bool) -> list[str]:
        """Notes for the user, unless ``quiet``: prompts recalled from the store."""
        recalled = sum(getattr(model, "recalled", 0) for model in self._models)
        found = []
        if self._store and recalled and not quiet:
            found.append(f"{recalled:,} prompts had been scored before ({self._store.path})")
        return found

    @contextmanager
    def noting_the_end(self) -> Iterator[None]:
        """Record in the store how the block ended."""
        try:
            yield
        except BaseException as error:
            stopped = isinstance(error, KeyboardInterrupt)
            message = "" if stopped else str(error) or type(error).__name__
            with suppress(UnslantError):  # the store itself may be what failed
                self._end("stopped" if stopped else "failed", message)
            if stopped and self._run:
                print(f"scores so far are stored; continue with: unslant runs resume {self._run}", file=sys.stderr)
            raise
        self._end("done")

    def _end(self, status: str, message: str = "") -> None:
        self._stop_beating()
        if self._store is not None and self._run:
            self._store.runs.end(self._run, status, message)

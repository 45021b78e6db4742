"""Tasks of lm-eval: its own loading, templates and draws of worked examples."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from unslant.errors import InputError, first_line
from unslant.extras import needed
from unslant.plugins.lm_eval.examine import Request
from unslant.plugins.lm_eval.settings import LmEvalSettings

Renderer = Callable[..., str]
"""From chat messages to text."""


class _Examples:
    """The sampler of a task's worked examples: notes what lm-eval draws for a document, and gives it again."""

    def __init__(self, sampler: Any) -> None:
        self.sampler = sampler
        self.drawn: Sequence[Any] | None = None

    def sample(self, *args: Any, **options: Any) -> Sequence[Any]:
        if self.drawn is None:
            self.drawn = self.sampler.sample(*args, **options)
        return self.drawn


class HarnessTask:
    """A multiple-choice task.

    Attributes:
        name: lm-eval's.
        task: lm-eval's object.
        chat: renders chat messages; None for plain prompts.
    """

    def __init__(self, name: str, task: Any, settings: LmEvalSettings) -> None:
        self.name, self.task = name, task
        self.chat: Renderer | None = None
        self._settings = settings
        # as in lm_eval.simple_evaluate: a task that says 0 keeps it
        if task.get_config("num_fewshot") is None or (settings.num_fewshot is not None and task.config.num_fewshot):
            task.set_config(key="num_fewshot", value=settings.num_fewshot or 0)
        task.set_fewshot_seed(seed=settings.fewshot_seed)
        self._examples = _Examples(task.sampler)
        task.sampler = self._examples

    @property
    def num_fewshot(self) -> int:
        """Worked examples before each question."""
        return int(self.task.config.num_fewshot or 0)

    @cached_property
    def split(self) -> str:
        """Name of the split that is evaluated."""
        return str(self.task.config.test_split if self.task.has_test_docs() else self.task.config.validation_split)

    def documents(self) -> Iterator[tuple[int, dict[str, Any], Sequence[Any]]]:
        """Number, document and worked examples, drawn in the sequence in which lm-eval draws them."""
        for number, doc in self.task.doc_iterator(limit=self._settings.limit):
            self._examples.drawn = None
            with self._written():
                self._context(doc, None)
            yield number, doc, self._examples.drawn or ()

    def instances(self, doc: Mapping[str, Any], examples: Sequence[Any]) -> list[Any]:
        """lm-eval's own requests for a document."""
        self._examples.drawn = examples
        with self._written():
            found = self.task.construct_requests(
                doc=doc,
                ctx=self._context(doc, self.chat),
                metadata=(self.name, 0, 1),
                apply_chat_template=self.chat is not None,
                chat_template=self.chat,
            )
        return list(found)

    def requests(self, doc: Mapping[str, Any], examples: Sequence[Any]) -> list[Request]:
        """Context and continuation for each option; without the unconditional ones of ``acc_mutual_info``."""
        n = len(self.choices(doc))
        return [(str(one.args[0]), str(one.args[1])) for one in self.instances(doc, examples)[:n]]

    @contextmanager
    def _written(self) -> Iterator[None]:
        """An error of a task's templates, or of the draw of its examples, names the task."""
        try:
            yield
        except Exception as error:  # tasks are programs, and raise anything
            raise InputError(f"{self.name}: lm-eval cannot write its prompts: {first_line(error)}") from error

    def _context(self, doc: Mapping[str, Any], chat: Renderer | None) -> Any:
        return self.task.fewshot_context(
            doc,
            num_fewshot=self.num_fewshot,
            system_instruction=self._settings.system_instruction or None,
            apply_chat_template=chat is not None,
            fewshot_as_multiturn=chat is not None and not self._settings.no_fewshot_as_multiturn,
            chat_template=chat,
            gen_prefix=self.task.doc_to_prefix(doc),
        )

    def choices(self, doc: Mapping[str, Any]) -> list[str]:
        """What is scored, without the delimiter."""
        return [str(choice) for choice in self.task.doc_to_choice(doc)]

    def answers(self, doc: Mapping[str, Any]) -> frozenset[int]:
        """Places of the right options, as lm-eval reads the target; empty where it is none of them."""
        choices = self.choices(doc)
        gold = self.task.doc_to_text(doc) if self.task.multiple_input else self.task.doc_to_target(doc)
        found = set()
        for one in gold if isinstance(gold, list) else [gold]:
            place = choices.index(one) if isinstance(one, str) and one in choices else one
            if isinstance(place, int) and 0 <= place < len(choices):
                found.add(int(place))
        return frozenset(found)

    def remade(self) -> list[tuple[Mapping[str, Any], Callable[[Mapping[str, Any]], Mapping[str, Any]]]] | None:
        """For each document its record before ``process_docs``, and what makes a document of such a record.

        None where the task has no ``process_docs``, or does not make its documents one by one and always the same.
        """
        import datasets

        process = self.task.config.process_docs
        if process is None:
            return None
        raw = self.task.dataset[self.split]

        def made(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
            return list(process(datasets.Dataset.from_list([dict(record)], features=raw.features)))

        found: list[tuple[Mapping[str, Any], Mapping[str, Any]]] = []
        wanted = self._settings.limit or len(self.task.eval_docs)
        for record in raw:
            if len(found) >= wanted:
                break
            found += [(record, doc) for doc in made(record)]
        if [doc for _, doc in found[:wanted]] != [doc for _, doc in self.task.doc_iterator(limit=self._settings.limit)]:
            return None
        return [(record, lambda other: made(other)[0]) for record, _ in found]


def load_tasks(names: str | Sequence[str], settings: LmEvalSettings) -> list[HarnessTask]:
    """Tasks by name, groups, or task files, as ``lm_eval --tasks`` takes them.

    Raises:
        InputError: if lm-eval is not installed, knows no such task, cannot load it, or it is not multiple choice.
    """
    manager = needed("lm_eval.tasks", "lm-eval's tasks", InputError).TaskManager
    wanted = [part.strip() for name in ([names] if isinstance(names, str) else names) for part in name.split(",")]
    folder = settings.include_path
    if folder is not None and not folder.is_dir():
        raise InputError.at(folder, "is no folder of task files")
    from lm_eval.defaults import DEFAULT_OTHER_SEED, DEFAULT_RANDOM_SEED

    own = str(folder) if folder else None
    with quiet():
        known = manager(include_path=own, include_defaults=False)
        if not folder or not set(wanted) <= set(known.all_tasks) or not _whole(known, wanted):
            known = manager(include_path=own)  # reading lm-eval's own takes seconds
        for name in wanted:
            if name not in known.all_tasks and not Path(name).is_file():
                raise InputError(f"lm-eval knows no task {name!r}; unslant lm-eval takes what lm_eval --tasks takes")
        random.seed(DEFAULT_RANDOM_SEED)  # as in lm_eval.simple_evaluate: some tasks shuffle as they are loaded
        np.random.seed(DEFAULT_OTHER_SEED)
        try:
            loaded = known.load(wanted)["tasks"]
        except Exception as error:  # tasks are programs, and download what they ask about
            raise InputError(f"{', '.join(wanted)}: lm-eval cannot load it: {first_line(error)}") from error
    for name, task in loaded.items():
        kind = getattr(task, "OUTPUT_TYPE", None)
        if kind != "multiple_choice" or not hasattr(task, "sampler") or getattr(task, "MULTIMODAL", False):
            shown = "shows pictures or plays sound" if getattr(task, "MULTIMODAL", False) else f"is of type {kind}"
            raise InputError(f"{name}: {shown}; only text tasks of type multiple_choice have options to put in order")
        if getattr(task, "UNSAFE_CODE", False):
            raise InputError(f"{name}: runs code that the model writes; not run here")
    return [HarnessTask(name, task, settings) for name, task in loaded.items()]


def _whole(manager: Any, names: Sequence[str]) -> bool:
    """Whether all members of groups are known too."""
    members: list[Any] = []
    for name in names:
        listed = manager.task_index[name].cfg or {}
        task = listed.get("task", [])
        members += [one.get("task", one) if isinstance(one, dict) else one for one in task if isinstance(task, list)]
    return all(isinstance(one, str) and one in manager.all_tasks for one in members)


@contextmanager
def quiet() -> Iterator[None]:
    """No warnings and progress bars of lm-eval and datasets while the block runs; each template is compiled once."""
    import datasets
    from lm_eval.utils import env

    loggers = [logging.getLogger(name) for name in ("lm_eval", "datasets")]
    levels = [logger.level for logger in loggers]
    bars = datasets.is_progress_bar_enabled()
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    datasets.disable_progress_bars()
    outermost = "from_string" not in vars(env)
    if outermost:
        env.from_string = lru_cache(env.from_string)
    try:
        yield
    finally:
        if outermost:
            del env.from_string
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
        if bars:
            datasets.enable_progress_bars()

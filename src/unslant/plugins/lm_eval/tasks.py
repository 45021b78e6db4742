"""Tasks of lm-eval: its own loading, templates and draws of worked examples."""

from __future__ import annotations

import logging
import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np

from unslant.errors import InputError, first_line, needed
from unslant.experiment import Options
from unslant.flags import check_unused
from unslant.plugins.lm_eval.option_fields import Request
from unslant.reach import Reach


@dataclass(frozen=True, kw_only=True)
class LmEvalSettings(Options):
    """How a task is run; names and defaults are those of lm-eval where it has the same option."""

    LEAST: ClassVar = {"num_fewshot": 0, "limit": 1}

    orders: str = "auto"
    """auto (24 or fewer), all, cyclic, reverse, given (as published), or how many to sample."""
    include_path: Annotated[Path | None, Reach.CODE] = None
    """Folder with your own task files, in addition to those of lm-eval."""
    num_fewshot: int | None = None
    """Worked examples before each question; by default the task's own number."""
    limit: int | None = None
    """Only the first N documents of each task, as lm-eval does."""
    apply_chat_template: bool = False
    """Write prompts with the tokenizer's chat template."""
    no_fewshot_as_multiturn: bool = False
    """In a chat, put all worked examples into one turn instead of one each."""
    system_instruction: str = ""
    """System message, or the beginning of the prompt."""
    fewshot_seed: int = 1234
    """Seed for drawing worked examples; lm-eval's own default."""
    seed: int = 0
    """Seed of sampled orders."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.apply_chat_template:
            check_unused("there is no chat (--apply-chat-template)", self, only=("no_fewshot_as_multiturn",))


Renderer = Callable[..., str]
"""From chat messages to text."""


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
        # As in lm_eval.simple_evaluate: a task whose own number is 0 keeps it.
        if task.get_config("num_fewshot") is None or (settings.num_fewshot is not None and task.config.num_fewshot):
            task.set_config(key="num_fewshot", value=settings.num_fewshot or 0)
        task.set_fewshot_seed(seed=settings.fewshot_seed)
        self._drawn: Sequence[Any] | None = None
        draw = task.sampler.sample

        def sample(*args: Any, **options: Any) -> Sequence[Any]:
            """What was drawn for the document, again."""
            self._drawn = draw(*args, **options) if self._drawn is None else self._drawn
            return self._drawn

        task.sampler.sample = sample

    @property
    def num_fewshot(self) -> int:
        """Worked examples before each question."""
        return int(self.task.config.num_fewshot or 0)

    def documents(self) -> Iterator[tuple[int, dict[str, Any], Sequence[Any]]]:
        """Number, document and worked examples, drawn in the sequence in which lm-eval draws them."""
        for number, doc in self.task.doc_iterator(limit=self._settings.limit):
            self._drawn = None
            with self._written():
                self._context(doc, None)
            yield number, doc, self._drawn or ()

    def instances(self, doc: Mapping[str, Any], examples: Sequence[Any]) -> list[Any]:
        """lm-eval's own requests for a document."""
        self._drawn = examples
        with self._written():
            return list(
                self.task.construct_requests(
                    doc=doc,
                    ctx=self._context(doc, self.chat),
                    metadata=(self.name, 0, 1),
                    apply_chat_template=self.chat is not None,
                    chat_template=self.chat,
                )
            )

    def requests(self, doc: Mapping[str, Any], examples: Sequence[Any]) -> list[Request]:
        """Context and continuation for each option; without the unconditional ones of ``acc_mutual_info``."""
        n = len(self.choices(doc))
        return [(str(one.args[0]), str(one.args[1])) for one in self.instances(doc, examples)[:n]]

    @contextmanager
    def _written(self) -> Iterator[None]:
        """Makes errors in a task's templates, or in the draw of its examples, name the task."""
        try:
            yield
        except Exception as error:  # tasks are programs that may raise anything
            raise InputError(
                f"{self.name}: lm-eval cannot write its prompts or choices: {first_line(error)}"
            ) from error

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
        """The scored texts, without the delimiter."""
        with self._written():
            return [str(choice) for choice in self.task.doc_to_choice(doc)]

    def answers(self, doc: Mapping[str, Any]) -> frozenset[int]:
        """Places of the right options, as lm-eval reads the target; empty if the target is not an option."""
        choices = self.choices(doc)
        with self._written():
            gold = self.task.doc_to_text(doc) if self.task.multiple_input else self.task.doc_to_target(doc)
        targets = gold if isinstance(gold, list) else [gold]
        places = [choices.index(one) if isinstance(one, str) and one in choices else one for one in targets]
        return frozenset(int(place) for place in places if isinstance(place, int) and 0 <= place < len(choices))

    def remade(self) -> list[tuple[Mapping[str, Any], Callable[[Mapping[str, Any]], Mapping[str, Any]]]] | None:
        """For each document its record before ``process_docs``, and a function that makes a document of such a record.

        None where the task has no ``process_docs``, or where it cannot be called record by record with the same result.
        """
        import datasets

        config, limit = self.task.config, self._settings.limit
        process = config.process_docs
        if process is None:
            return None
        raw = self.task.dataset[config.test_split if self.task.has_test_docs() else config.validation_split]

        def documents(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
            return list(process(datasets.Dataset.from_list([dict(record)], features=raw.features)))

        all_pairs = ((record, doc) for record in raw for doc in documents(record))
        pairs = list(islice(all_pairs, limit or len(self.task.eval_docs)))
        if [doc for _, doc in pairs] != [doc for _, doc in self.task.doc_iterator(limit=limit)]:
            return None
        return [(record, lambda other: documents(other)[0]) for record, _ in pairs]


def load_tasks(names: str | Sequence[str], settings: LmEvalSettings) -> list[HarnessTask]:
    """Tasks by name, groups, or task files, as ``lm_eval --tasks`` takes them.

    Raises:
        InputError: if lm-eval is not installed, does not have the task, cannot load it, or it is not multiple choice.
    """
    task_manager = needed("lm_eval.tasks", "lm-eval's tasks", InputError).TaskManager
    names = [part.strip() for name in ([names] if isinstance(names, str) else names) for part in name.split(",")]
    folder = settings.include_path
    if folder is not None and not os.path.isdir(folder):
        raise InputError.at(folder, "is not a folder of task files")
    from lm_eval.defaults import DEFAULT_OTHER_SEED, DEFAULT_RANDOM_SEED

    include_path = str(folder) if folder else None
    with quiet():
        manager = task_manager(include_path=include_path, include_defaults=False)
        if not folder or not set(names) <= set(manager.all_tasks) or not _is_whole(manager, names):
            manager = task_manager(include_path=include_path)  # with lm-eval's own tasks, which takes seconds
        for name in names:
            if name not in manager.all_tasks and not os.path.isfile(name):
                raise InputError(f"lm-eval has no task {name!r}; unslant lm-eval takes what lm_eval --tasks takes")
        random.seed(DEFAULT_RANDOM_SEED)  # as in lm_eval.simple_evaluate: some tasks shuffle as they are loaded
        np.random.seed(DEFAULT_OTHER_SEED)
        try:
            tasks = manager.load(names)["tasks"]
        except Exception as error:  # tasks are programs that download their data
            raise InputError(f"{', '.join(names)}: lm-eval cannot load it: {first_line(error)}") from error
    for name, task in tasks.items():
        kind, multimodal = getattr(task, "OUTPUT_TYPE", None), getattr(task, "MULTIMODAL", False)
        if kind != "multiple_choice" or not hasattr(task, "sampler") or multimodal:
            reason = "uses pictures or sound" if multimodal else f"is of type {kind}"
            raise InputError(f"{name}: {reason}; only text tasks of type multiple_choice have options to put in order")
        if getattr(task, "UNSAFE_CODE", False):
            raise InputError(f"{name}: executes code that the model writes, which unslant does not run")
    return [HarnessTask(name, task, settings) for name, task in tasks.items()]


def _is_whole(manager: Any, names: Sequence[str]) -> bool:
    """Whether the manager also has all members of these groups."""
    members: list[Any] = []
    for name in names:
        task = (manager.task_index[name].cfg or {}).get("task", [])
        members += [one.get("task", one) if isinstance(one, dict) else one for one in task if isinstance(task, list)]
    return all(isinstance(one, str) and one in manager.all_tasks for one in members)


@contextmanager
def quiet() -> Iterator[None]:
    """Silences lm-eval and datasets, and compiles each template only once, while the block runs."""
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

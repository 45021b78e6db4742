"""Logs of inspect_ai (``.eval``, ``.json``), read with inspect_ai itself (``pip install 'unslant[inspect]'``).

Answers are read from the reply, not from the score. After ``dataset.shuffle_choices`` a sample holds the options as
shown. The deprecated ``multiple_choice(shuffle=...)`` turns options, messages and reply back to the file's order when
it logs; the page as sent, and the reply to it, stand in the score's explanation alone, and are read there. Samples of
:func:`unslant.inspect.in_orders` tell question, order and labels in their metadata, under :data:`SHOWN`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from unslant.errors import InputError, first_line
from unslant.extras import needed
from unslant.presentations.labels import ALPHABETS, labels_for
from unslant.responses.importers.logged import Log, Logged, understood
from unslant.responses.importers.page_text import options_on_page
from unslant.responses.importers.registry import Head

SHOWN = "unslant"
"""Key of a sample's metadata: ``id`` of the question, ``order`` (the option's index in it at each place), ``labels``,
``pinned``."""
_SHUFFLED, _REPLY = "Choices were shuffled before generating a response", "Shuffled answer:"


def recognises(head: Head) -> bool:
    return {"header.json", "_journal/start.json"} & head.names != set() or {"eval", "samples", "status"} <= head.names


def read(path: Path, fields: Mapping[str, str]) -> list[Log]:
    read_eval_log = needed("inspect_ai.log", f"{path}, a log of inspect,", InputError).read_eval_log
    try:
        log = read_eval_log(str(path), resolve_attachments=True)
    except Exception as error:  # inspect's reader lets through whatever zip, JSON and pydantic raise
        raise InputError.at(path, f"inspect cannot read it: {type(error).__name__}: {first_line(error)}") from None
    pages = []
    dropped: Counter[str] = Counter()
    for sample in log.samples or []:
        if not sample.choices:
            dropped["samples that are no multiple choice"] += 1
            continue
        place = f"{path}, sample {sample.id} of epoch {sample.epoch}"
        with understood(place, "sample that can be read"):
            pages.append(page_of(sample, place))
    if log.status != "success":
        dropped[f"samples that a log of status {log.status!r} may lack"] += log.eval.dataset.samples or 0
        dropped[f"samples that a log of status {log.status!r} may lack"] -= len(log.samples or [])
    if not pages:
        raise InputError.at(path, "holds no multiple-choice samples")
    return [Log(log.eval.model, "inspect", "words", tuple(pages), log.eval.task, dropped)]


def page_of(sample: Any, place: str) -> Logged:
    """What a sample of a log, an ``EvalSample``, showed and got back."""
    choices, metadata = tuple(map(str, sample.choices)), sample.metadata or {}
    shown_as = metadata.get(SHOWN) or {}
    labels = tuple(shown_as.get("labels") or labels_for(ALPHABETS["A"], len(choices)))
    answers = target_places(sample.target, labels)
    failed = sample.error is not None or sample.output is None or not sample.output.choices
    shown, reply = choices, None if failed else sample.output.completion
    explanations = [score.explanation or "" for score in (sample.scores or {}).values()]
    if told := next((text for text in explanations if text.startswith(_SHUFFLED)), None):
        page, _, reply = told.rpartition(_REPLY)
        shown = options_on_page(page, labels)
        if sorted(shown) != sorted(choices):
            raise InputError.at(
                place,
                "was shown with shuffled options, in an order that the log does not tell; shuffle the data set instead "
                "(dataset.shuffle_choices), and log again",
            )
        texts = [choices[k] for k in answers]
        answers = frozenset(k for k, text in enumerate(shown) if text in texts)
    return Logged.of_reply(
        reply,
        labels=labels,
        options=shown,
        id=str(shown_as.get("id", sample.id)),
        order=tuple(shown_as["order"]) if "order" in shown_as else None,
        pinned=tuple(shown_as.get("pinned", ())),
        answers=answers,
        place=place,
        question=_question(sample),
        subject=str(metadata.get("subject", "")),
    )


def target_places(target: str | Sequence[str], labels: Sequence[str]) -> frozenset[int]:
    """Places of the right options in a sample's target: ``"B"``, ``["A", "C"]``, or ``"A, C"``, as inspect reads it.

    Raises:
        ValueError: if it names a label that is not there.
    """
    named = re.findall(r"[^\W\d_]|\d+", target if isinstance(target, str) else " ".join(target))
    if unknown := [name for name in named if name.upper() not in labels]:
        raise ValueError(f"target {target!r}: {unknown[0]!r} is not one of the labels {', '.join(labels)}")
    return frozenset(labels.index(name.upper()) for name in named)


def _prompt(sample: Any) -> str:
    return "\n".join(message.text for message in sample.messages if message.role == "user")


def _question(sample: Any) -> str:
    return sample.input if isinstance(sample.input, str) else _prompt(sample)

"""Tables: of responses that unslant wrote, of label scores (:mod:`label_scores`), and a general one in JSON lines, CSV
or Parquet with a row for each page that a model was shown:

``id``, ``answer`` (label, or place from 0), and one of ``logprobs`` or ``probs`` (a number for each place, from the
top), ``chosen`` (label or place) and ``reply`` (a text, read as unslant reads replies). Optional: ``labels`` (else A,
B, ...), ``options`` (texts as shown), ``order`` (for each place, the index of its option in the file), ``question``,
``subject``, ``model``, ``repeat`` (sample number) and ``score`` (1 if the answer was counted as right). Lists may be
JSON or separated by ``|``. ``probs`` with a list for every order of the options, in lexicographic order, is a whole set
of pages in one row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain, permutations
from math import factorial
from pathlib import Path
from sys import intern
from typing import Any

import numpy as np

from unslant.arrays import Floats
from unslant.errors import InputError, one_of
from unslant.presentations.presentation import ALPHABETS, LETTERS, labels_for
from unslant.questions.answers import parse_list
from unslant.questions.formats import whole_records
from unslant.replies.extraction import extract_answer
from unslant.responses.checks import MOST_POSITIVE
from unslant.responses.importers.label_scores import has_label_scores, is_responses, load_recorded
from unslant.responses.importers.logged import Consistency, Log, Logged, find_columns, understood
from unslant.responses.importers.registry import Head, Importer
from unslant.responses.table import Responses

FIELDS: dict[str, tuple[str, ...]] = {
    "id": ("id", "question_id", "qid", "idx", "doc_id"),
    "answer": ("answer", "gold", "target", "ideal", "correct", "label"),
    "labels": ("labels", "labels_shown"),
    "options": ("options", "choices"),
    "order": ("order", "permutation"),
    "logprobs": ("logprobs", "log_probs", "label_logprobs"),
    "probs": ("probs", "probabilities"),
    "chosen": ("chosen", "choice", "prediction", "pred"),
    "reply": ("reply", "response", "completion", "output"),
    "question": ("question", "stem", "input"),
    "subject": ("subject", "category"),
    "model": ("model", "model_name"),
    "repeat": ("repeat", "sample", "epoch"),
    "finish_reason": ("finish_reason", "stop_reason"),
    "score": ("score", "is_correct", "acc", "correct"),
}
"""Field -> its usual column names, tried in turn."""
_VERDICTS = {"0": 0.0, "1": 1.0, "false": 0.0, "true": 1.0, "0.0": 0.0, "1.0": 1.0}
"""Values of a column that says whether an answer was right."""
_SAME = ("answer", "labels", "options", "order", "logprobs", "probs", "chosen")
"""Fields whose columns must agree where a table has two of them."""
_APART = 0.01
"""How far two columns with probabilities of one answer may differ: some tables round one of them."""
_ANSWERS = ("logprobs", "probs", "chosen", "reply")


def recognises(head: Head) -> bool:
    return is_responses(head) or has_label_scores(head) or _has_pages(head)


def _has_pages(head: Head) -> bool:
    columns = find_columns(_record(head.first) or head.names, head.fields, FIELDS)
    return bool(columns["id"]) and any(columns[key] for key in _ANSWERS)


def _record(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields of a record, which some files hold under one key, ``data``."""
    return record["data"] if isinstance(record.get("data"), Mapping) else record


def read(head: Head) -> list[Log] | Responses:
    if is_responses(head):
        return Responses.from_parquet(head.path)
    return load_recorded(head.path, fields=head.fields) if has_label_scores(head) else _pages(head.path, head.fields)


def _pages(path: Path, fields: Mapping[str, str]) -> list[Log]:
    unknown = sorted(set(fields) - set(FIELDS))
    if unknown:
        raise InputError(f"unknown field {unknown[0]!r} for a table of pages: {one_of(unknown[0], FIELDS)}")
    by_model: dict[str, list[Logged]] = {}
    words, contradicted = True, 0
    answers: set[str] = set()
    name, metric = "", ""
    consistency: dict[str, Consistency] = {}
    for record in whole_records(path, list(chain(*FIELDS.values()))):
        row = _Row(_record(record.data), fields, record.place)
        with understood(record.place, "page"):
            pages = row.pages()
            row.check_agreement(pages)
        name, metric = row.names["answer"], metric or (row.names["score"] if pages[0].score is not None else "")
        answers.add(str(row.get("answer")).lower())
        words &= pages[0].logprobs is None
        model = str(row.get("model") or path.stem)
        by_model.setdefault(model, []).extend(pages)
        for page in pages:
            consistency.setdefault(model, Consistency()).check(page)
        contradicted += row.contradicts(pages)
    if name == "correct" and "answer" not in fields and answers <= set(_VERDICTS):
        holds = f"holds only {' and '.join(sorted(answers))}: this says whether an answer was right, not which one is"
        raise InputError.at(
            path, f"{holds}; add a column answer (if these are places, --fields answer=correct)", field=name
        )
    scores = "words" if words else "labels"
    note = f"Rows whose reply names another option than the scores or choice that are read: {contradicted:,}."
    notes = (note,) if contradicted else ()
    return [
        Log(model, "a table of pages", scores, tuple(pages), path.stem, notes=notes, checked=True, metric=metric)
        for model, pages in by_model.items()
    ]


# A large log repeats the same few answers, orders and texts on every page; one shared object for all of them takes a
# fraction of the memory.


@lru_cache(maxsize=64)
def _alone(place: int) -> frozenset[int]:
    return frozenset({place})


@lru_cache(maxsize=1000)
def _shared(order: tuple[int, ...]) -> tuple[int, ...]:
    return order


class _Row:
    """One record, by field."""

    def __init__(self, data: Mapping[str, Any], fields: Mapping[str, str], place: str) -> None:
        self.data, self.place = data, place
        self.names, self.fields = find_columns(data, fields, FIELDS), fields

    def get(self, key: str) -> Any:
        name = self.names[key]
        return self.data[name] if name else None

    def fail(self, key: str, reason: str) -> InputError:
        return InputError.at(self.place, reason, field=self.names[key] or key)

    def listed(self, key: str) -> list[Any]:
        """A list; in CSV it is written as JSON, or as values with bars between them."""
        value = self.get(key)
        if isinstance(value, str) and value.strip():
            text = value.strip()
            value = parse_list(text) if text.startswith("[") else text.split("|")
            if value is None:
                raise self.fail(key, f"{text!r} is not a list: write JSON, or values with | between them")
        if value in (None, ""):
            return []
        if not isinstance(value, Sequence):
            raise self.fail(key, f"{value!r} is not a list")
        return list(value)

    def numbers(self, key: str) -> Floats | None:
        items = self.listed(key)
        if not items:
            return None
        try:
            values = np.array(items, dtype=np.float64)
        except (TypeError, ValueError):
            raise self.fail(key, f"{items!r} is not a list of numbers") from None
        if key == "probs":
            if not (np.isfinite(values) & (values >= 0) & (values <= 1 + 1e-6)).all():
                raise self.fail(key, "holds a value that is not a probability, 0 to 1")
            with np.errstate(divide="ignore"):
                return np.minimum(np.log(values), 0.0)
        if not (values <= MOST_POSITIVE).all():
            raise self.fail(key, "holds a value that is not a natural-log probability: above 0, or not a number")
        return np.minimum(values, 0.0)

    def check_agreement(self, pages: Sequence[Logged]) -> None:
        """Raises InputError if two columns of one field differ, naming both, how each is read, and how to choose."""
        # Of columns such as "answer" and "gold", one may be about the page and the other about the question file.
        # Silently taking the first could change every number.
        for key in _SAME:
            column = self.names[key]
            for name in FIELDS[key] if column and key not in self.fields else ():
                value = self.under(key, name) if name != column and self.data.get(name) not in (None, "") else None
                if value is not None and value != self.under(key, column):
                    raise self.fail(
                        key,
                        f"{self.data[column]!r} is {key} by this column, {self.data[name]!r} by {name!r}: name the one "
                        f"to read, --fields {key}={column} or --fields {key}={name}",
                    )
        page = pages[0]
        if len(pages) > 1 and self.get("order") not in (None, "", []):
            raise self.fail("order", "is one order, where the row holds every order; leave it out (--fields order=)")
        if page.logprobs is None or len(pages) > 1:
            return
        best = {int(i) for i in np.flatnonzero(page.logprobs == page.logprobs.max())}
        if self.get("chosen") not in (None, ""):
            place = self.place_of("chosen", page.labels)
            if place not in best:
                scores = "logprobs" if self.listed("logprobs") else "probs"
                raise self.fail(
                    "chosen",
                    f"is {page.labels[place]}, but {scores} are highest for {page.labels[min(best)]}: to read the "
                    f"scores, leave this out (--fields chosen=); to read this, leave those out (--fields {scores}=)",
                )
        probs = self.numbers("probs") if self.listed("logprobs") else None
        if probs is not None and probs.shape == page.logprobs.shape:
            one, other = (np.exp(scores - np.logaddexp.reduce(scores)) for scores in (page.logprobs, probs))
            if np.abs(one - other).max() > _APART:
                reason = "contradict logprobs: name the one to read by leaving the other out (--fields probs=)"
                raise self.fail("probs", reason)

    def under(self, key: str, name: str) -> object:
        """The value of a field by another column, in comparable form; None if the column cannot be that field."""
        row = _Row(self.data, {**self.fields, key: name}, self.place)
        try:
            if key in ("answer", "chosen"):
                if name == "correct" and str(self.data[name]).lower() in _VERDICTS:
                    return None  # whether the answer was right, not which answer is
                labels = tuple(map(str, self.listed("labels"))) or ALPHABETS["A"][:LETTERS]
                return row.place_of(key, labels)
            return [str(item).strip() for item in row.listed(key)] or None
        except InputError:
            return None

    def contradicts(self, pages: Sequence[Logged]) -> bool:
        """Whether the row's reply names another option than the column that is read."""
        reply, page = self.get("reply"), pages[0]
        if reply in (None, "") or page.reply is not None or len(pages) > 1:
            return False
        answer = {int(np.argmax(page.logprobs))} if page.logprobs is not None else page.chosen or frozenset()
        labels = extract_answer(str(reply), page.labels, page.options).labels
        return len(labels) == 1 and not set(map(page.labels.index, labels)) <= answer

    def pages(self) -> list[Logged]:
        """The page of a row, or the pages in all orders, if the row holds them."""
        if self.get("id") in (None, ""):
            raise self.fail("id", "is missing")
        options = tuple(intern(str(option)) for option in self.listed("options"))  # the same on many pages
        logprobs = next((scores for key in ("logprobs", "probs") if (scores := self.numbers(key)) is not None), None)
        n = len(options) or (logprobs.shape[-1] if logprobs is not None else 0) or len(self.listed("labels"))
        labels = tuple(map(str, self.listed("labels"))) or labels_for(ALPHABETS["A"], n)
        common: dict[str, Any] = {
            "id": intern(str(self.get("id"))),
            "labels": labels,
            "place": self.place,
            "question": intern(str(self.get("question") or "")),
            "subject": intern(str(self.get("subject") or "")),
            "repeat": self.repeat(),
            "score": self.score(),
        }
        if n < 2 or len(labels) != n:
            reason = f"{len(labels)} labels for {n} options; give labels, options or a number for each"
            raise self.fail("labels", reason)
        if logprobs is not None and logprobs.ndim == 2:
            if logprobs.shape != (factorial(n), n):
                reason = f"holds {len(logprobs)} lists; {factorial(n)}, one for each order, can be read"
                raise self.fail("probs", reason)
            right = self.place_of("answer", labels)
            return [
                Logged(
                    answers=frozenset({order.index(right)}),
                    options=tuple(options[i] for i in order) if options else (),
                    order=order,
                    logprobs=row,
                    **common,
                )
                for order, row in zip(permutations(range(n)), logprobs, strict=True)
            ]
        common |= {"answers": _alone(self.place_of("answer", labels)), "options": options, "order": self.order(n)}
        if logprobs is not None:
            if logprobs.shape != (n,):
                raise self.fail("logprobs", f"holds {len(logprobs)} numbers for {n} options")
            return [Logged(logprobs=logprobs, **common)]
        if self.get("chosen") not in (None, ""):
            return [Logged(chosen=_alone(self.place_of("chosen", labels)), **common)]
        reply = None if self.get("reply") is None else str(self.get("reply"))
        return [Logged.of_reply(reply, finish_reason=self.get("finish_reason"), **common)]

    def score(self) -> float | None:
        """Whether the table itself counts the answer as right; None without such a column."""
        name = self.names["score"]
        return _VERDICTS.get(str(self.data[name]).lower()) if name and name != self.names["answer"] else None

    def repeat(self) -> int:
        value = self.get("repeat")
        text = str(value if value not in (None, "") else 0)
        if not text.removesuffix(".0").isdigit():
            raise self.fail("repeat", f"{value!r} is not a sample number: 0, 1, ...")
        return int(text.removesuffix(".0"))

    def order(self, n: int) -> tuple[int, ...] | None:
        indices = self.listed("order")
        if not indices:
            return None
        try:
            order = tuple(int(i) for i in indices)
        except (TypeError, ValueError):
            order = ()
        if sorted(order) != list(range(n)):
            raise self.fail("order", f"{indices!r} does not name every option, 0 to {n - 1}, once")
        return _shared(order)

    def place_of(self, key: str, labels: Sequence[str]) -> int:
        """A place, given as a label or counted from 0."""
        value = self.get(key)
        text = str(value).strip()
        if text in labels:
            return list(labels).index(text)
        if text.isdigit() and int(text) < len(labels) and not any(label.isdigit() for label in labels):
            return int(text)
        reason = f"{value!r} is neither one of the labels {', '.join(labels)} nor a place, 0 to {len(labels) - 1}"
        raise self.fail(key, reason)


IMPORTER = Importer(
    "a table: of unslant; label scores (columns lp_A, lp_B, ..., or label and logprob); or a row per page (id, answer, "
    "labels, order, logprobs or chosen or reply)",
    recognises,
    read,
)

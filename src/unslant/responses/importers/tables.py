"""Tables: of responses that unslant wrote, of label scores (:mod:`label_scores`), and a table for anybody, JSON lines,
CSV or Parquet with a row for each page that a model was shown:

``id``, ``answer`` (label, or place from 0), and one of ``logprobs`` or ``probs`` (a number for each place, from the
top), ``chosen`` (label or place) and ``reply`` (a text, read as unslant reads replies). If wanted ``labels`` (else A,
B, ...), ``options`` (texts as shown), ``order`` (for each place, the index of its option in the file), ``question``,
``subject``, ``model`` and ``repeat`` (sample number). Lists may be JSON or separated by ``|``. ``probs`` with a list
for every order of the options, in lexicographic order, is a whole set of pages in one row.
"""

from __future__ import annotations

from collections import Counter
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
from unslant.presentations.labels import ALPHABETS, LETTERS, labels_for
from unslant.questions.answer_kinds import parse_list
from unslant.questions.formats import whole_records
from unslant.responses.importers.label_scores import has_label_scores, load_recorded, own_table
from unslant.responses.importers.logged import Consistency, Log, Logged, understood
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
}
"""Field -> names it is found under, tried in turn."""
_SAME = ("answer", "labels", "options", "order", "logprobs", "probs", "chosen")
"""Fields whose columns must agree where a table has two of them."""
_APART = 0.01
"""How far probabilities of one answer may differ that two columns give, rounded."""
_ANSWERS = ("logprobs", "probs", "chosen", "reply")


def recognises(head: Head) -> bool:
    return own_table(head) or has_label_scores(head) or _has_pages(head)


def _has_pages(head: Head) -> bool:
    names = set(head.first["data"]) if _is_wrapped(head.first) else set(head.names)

    def there(key: str) -> bool:
        return bool(names & ({head.fields[key]} if key in head.fields else set(FIELDS[key])))

    return there("id") and any(map(there, _ANSWERS))


def _is_wrapped(record: Mapping[str, Any]) -> bool:
    return isinstance(record.get("data"), Mapping)


def read(head: Head) -> list[Log] | Responses:
    if own_table(head):
        return Responses.from_parquet(head.path)
    return load_recorded(head.path, fields=head.fields) if has_label_scores(head) else _pages(head.path, head.fields)


def _pages(path: Path, fields: Mapping[str, str]) -> list[Log]:
    unknown = sorted(set(fields) - set(FIELDS))
    if unknown:
        raise InputError(f"unknown field {unknown[0]!r} for a table of pages: {one_of(unknown[0], FIELDS)}")
    by_model: dict[str, list[Logged]] = {}
    words = True
    unused: Counter[str] = Counter()
    consistency: dict[str, Consistency] = {}
    for record in whole_records(path, list(chain(*FIELDS.values()))):
        data = record.data["data"] if _is_wrapped(record.data) else record.data
        row = _Row(data, fields, record.place)
        with understood(record.place, "page"):
            pages = row.pages()
        words &= pages[0].logprobs is None
        model = str(row.get("model") or path.stem)
        by_model.setdefault(model, []).extend(pages)
        for page in pages:
            consistency.setdefault(model, Consistency()).check(page)
        unused.update(row.unused(pages))
    scores = "words" if words else "labels"
    notes = tuple(f"Rows {reason}: {n:,}." for reason, n in unused.items())
    what = "a table of pages"
    return [
        Log(model, what, scores, tuple(pages), path.stem, notes=notes, checked=True)
        for model, pages in by_model.items()
    ]


# A large log has the same few of these on every page; one object for all takes a fraction of the memory.


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
        self.names = {
            key: next((name for name in ((fields[key],) if key in fields else usual) if name in data), "")
            for key, usual in FIELDS.items()
        }
        self.given = fields

    def get(self, key: str) -> Any:
        name = self.names[key]
        return self.data[name] if name else None

    def fail(self, key: str, reason: str) -> InputError:
        return InputError.at(self.place, reason, field=self.names[key] or key)

    def listed(self, key: str) -> list[Any]:
        """A list, from JSON text or texts with bars between them where it is written so."""
        found = self.get(key)
        if isinstance(found, str) and found.strip():
            text = found.strip()
            found = parse_list(text) if text.startswith("[") else text.split("|")
            if found is None:
                raise self.fail(key, f"{text!r} is not a list: write JSON, or values with | between them")
        if found in (None, ""):
            return []
        if not isinstance(found, Sequence):
            raise self.fail(key, f"{found!r} is not a list")
        return list(found)

    def numbers(self, key: str) -> Floats | None:
        found = self.listed(key)
        if not found:
            return None
        try:
            values = np.array(found, dtype=np.float64)
        except (TypeError, ValueError):
            raise self.fail(key, f"{found!r} are no numbers") from None
        if key == "probs":
            if not (np.isfinite(values) & (values >= 0) & (values <= 1 + 1e-6)).all():
                raise self.fail(key, "holds a value that is not a probability, 0 to 1")
            with np.errstate(divide="ignore"):
                return np.minimum(np.log(values), 0.0)
        if not (values <= 1e-4).all():
            raise self.fail(key, "holds a value that is not a natural-log probability: above 0, or not a number")
        return np.minimum(values, 0.0)

    def check_agreement(self, pages: Sequence[Logged]) -> None:
        """Check that columns with the same content agree; the others are named by ``--fields``.

        Raises:
            InputError: naming both columns, how each is read, and how to choose.
        """
        for key in _SAME:
            own = self.names[key]
            for name in FIELDS[key] if own and key not in self.given else ():
                found = self.under(key, name) if name != own and self.data.get(name) not in (None, "") else None
                if found is not None and found != self.under(key, own):
                    raise self.fail(
                        key,
                        f"{self.data[own]!r} is {key} by this column, {self.data[name]!r} by {name!r}: name the one to "
                        f"read, --fields {key}={own} or --fields {key}={name}",
                    )
        page = pages[0]
        if len(pages) > 1 and self.get("order") not in (None, "", []):
            raise self.fail("order", "is one order, where the row holds every order; leave it out (--fields order=)")
        if page.logprobs is None or len(pages) > 1:
            return
        best = {int(i) for i in np.flatnonzero(page.logprobs == page.logprobs.max())}
        if self.get("chosen") not in (None, ""):
            chosen = self.place_of("chosen", page.labels)
            if chosen not in best:
                scores = "logprobs" if self.listed("logprobs") else "probs"
                raise self.fail(
                    "chosen",
                    f"is {page.labels[chosen]}, but {scores} are highest for {page.labels[min(best)]}: to read the "
                    f"scores, leave this out (--fields chosen=); to read this, leave those out (--fields {scores}=)",
                )
        probs = self.numbers("probs") if self.listed("logprobs") else None
        if probs is not None and probs.shape == page.logprobs.shape:
            one, other = (np.exp(own - np.logaddexp.reduce(own)) for own in (page.logprobs, probs))
            if np.abs(one - other).max() > _APART:
                raise self.fail(
                    "probs", "contradict logprobs: name the one to read by leaving the other out (--fields probs=)"
                )

    def under(self, key: str, name: str) -> object:
        """What a column says of a field, comparably; None where it is not what the field needs."""
        value = self.data[name]
        row = _Row({**self.data, name: value}, {**self.given, key: name}, self.place)
        try:
            if key in ("answer", "chosen"):
                if name == "correct" and str(value).lower() in ("0", "1", "true", "false", "0.0", "1.0"):
                    return None  # whether the answer was right, not which is
                labels = tuple(map(str, self.listed("labels"))) or ALPHABETS["A"][:LETTERS]
                return row.place_of(key, labels)
            return [str(item).strip() for item in row.listed(key)] or None
        except InputError:
            return None

    def unused(self, pages: Sequence[Logged]) -> list[str]:
        """In words, if the row's reply names another option than the column that was read."""
        reply, page = self.get("reply"), pages[0]
        if reply in (None, "") or page.reply is not None or len(pages) > 1:
            return []
        named = Logged.of_reply(str(reply), labels=page.labels, options=page.options, id=page.id, place=page.place,
                                answers=page.answers).named  # fmt: skip
        read = {int(np.argmax(page.logprobs))} if page.logprobs is not None else page.chosen
        return ["whose reply names another option than the scores or choice that are read"] if named not in (
            None, *(read or ())) else []  # fmt: skip

    def pages(self) -> list[Logged]:
        """One, or all orders of a row that holds them."""
        found = self.read()
        self.check_agreement(found)
        return found

    def read(self) -> list[Logged]:
        if self.get("id") in (None, ""):
            raise self.fail("id", "is missing")
        options = tuple(intern(str(option)) for option in self.listed("options"))  # the same on many pages
        logprobs = next((found for key in ("logprobs", "probs") if (found := self.numbers(key)) is not None), None)
        n = len(options) or (logprobs.shape[-1] if logprobs is not None else 0) or len(self.listed("labels"))
        labels = tuple(map(str, self.listed("labels"))) or labels_for(ALPHABETS["A"], n)
        common: dict[str, Any] = {
            "id": intern(str(self.get("id"))),
            "labels": labels,
            "place": self.place,
            "question": intern(str(self.get("question") or "")),
            "subject": intern(str(self.get("subject") or "")),
            "repeat": self.repeat(),
        }
        if n < 2 or len(labels) != n:
            raise self.fail(
                "labels", f"{len(labels)} labels for {n} options; give labels, options or a number for each"
            )
        if logprobs is not None and logprobs.ndim == 2:
            if logprobs.shape != (factorial(n), n):
                raise self.fail(
                    "probs", f"holds {len(logprobs)} lists; {factorial(n)}, one for each order, can be read"
                )
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
        reply = self.get("reply")
        reason = self.get("finish_reason")
        return [Logged.of_reply(None if reply is None else str(reply), finish_reason=reason, **common)]

    def repeat(self) -> int:
        found = self.get("repeat")
        text = str(found if found not in (None, "") else 0)
        if not text.removesuffix(".0").isdigit():
            raise self.fail("repeat", f"{found!r} is not a sample number: 0, 1, ...")
        return int(text.removesuffix(".0"))

    def order(self, n: int) -> tuple[int, ...] | None:
        found = self.listed("order")
        if not found:
            return None
        try:
            order = tuple(int(i) for i in found)
        except (TypeError, ValueError):
            order = ()
        if sorted(order) != list(range(n)):
            raise self.fail("order", f"{found!r} does not name every option, 0 to {n - 1}, once")
        return _shared(order)

    def place_of(self, key: str, labels: Sequence[str]) -> int:
        """A place, given as a label or counted from 0."""
        found = self.get(key)
        text = str(found).strip()
        if text in labels:
            return list(labels).index(text)
        if text.isdigit() and int(text) < len(labels) and not any(label.isdigit() for label in labels):
            return int(text)
        raise self.fail(
            key, f"{found!r} is none of the labels {', '.join(labels)}, nor a place, 0 to {len(labels) - 1}"
        )


IMPORTER = Importer(
    "a table: of unslant; label scores (columns lp_A, lp_B, ..., or label and logprob); or a row per page (id, answer, "
    "labels, order, logprobs or chosen or reply)",
    recognises,
    read,
)

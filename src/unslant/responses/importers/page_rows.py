"""One row of a table of pages: its columns by field, and the page or pages that it holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import permutations
from math import factorial
from sys import intern
from typing import Any

import numpy as np

from unslant.arrays import Floats
from unslant.errors import InputError
from unslant.presentations import ALPHABETS, LETTERS, alphabetical, labels_for
from unslant.questions.answer_forms import FLAGS, READERS, RawAnswer, are_flags, as_text, integer
from unslant.questions.fields import CHOICE_FIELDS, find_columns, lookup, option_columns, options_in
from unslant.questions.numbering import split_options
from unslant.questions.records import BadRecord, is_missing, parse_written, whole_number
from unslant.responses.checks import MOST_POSITIVE
from unslant.responses.importers.logged import BadRow, Logged, as_score, unit_share

FIELDS: dict[str, tuple[str, ...]] = {
    "id": ("id", "question_id", "qid", "idx", "doc_id"),
    "answer": CHOICE_FIELDS["answer"],
    "labels": ("labels", "labels_shown"),
    "options": ("options", "choices"),
    "order": ("order", "permutation"),
    "logprobs": ("logprobs", "log_probs", "label_logprobs"),
    "probs": ("probs", "probabilities"),
    "chosen": tuple(
        "chosen choice prediction pred predicted predicted_answer predicted_letter model_answer model_prediction "
        "model_choice selected_letter extracted_answer parsed_answer".split()
    ),
    "reply": tuple(
        "reply response completion output model_output model_response generated_text raw_response raw_output "
        "model_raw_output llm_response llm_output generation".split()
    ),
    "question": ("question", "stem", "input", "question_text", "question_stem"),
    "context": CHOICE_FIELDS["context"],
    "subject": ("subject", "category"),
    "model": ("model", "model_name"),
    "repeat": ("repeat", "sample", "epoch"),
    "finish_reason": ("finish_reason", "stop_reason"),
    "score": ("score", "is_correct", "acc", "correct"),
}
"""Field -> its usual column names, tried in turn."""
VERDICTS = {"0": 0.0, "1": 1.0, "false": 0.0, "true": 1.0, "0.0": 0.0, "1.0": 1.0, "no": 0.0, "yes": 1.0}
"""Values of a column that says whether an answer was right."""
_SAME = ("answer", "labels", "options", "order", "logprobs", "probs", "chosen")
"""Fields whose columns must agree where a table has two of them."""
_APART = 0.01
"""How far two columns with probabilities of one answer may differ: some tables round one of them."""
ANSWERS = ("logprobs", "probs", "chosen", "reply")


@lru_cache(maxsize=256)
def columns_of(
    keys: tuple[str, ...], fields: tuple[tuple[str, str], ...]
) -> tuple[Mapping[str, tuple[str, ...]], Mapping[str, str]]:
    """Field -> its columns among the keys of a row (several that hold an option each by commas), and the one to read;
    empty if there is none."""
    columns = find_columns(keys, dict(fields), FIELDS)
    if "options" not in dict(fields) and not columns["options"] and (family := option_columns(keys)):
        columns["options"] = (",".join(family),)
    return columns, {key: names[0] if names else "" for key, names in columns.items()}


class Readings:
    """How the answers in one column can be read: as labels or places, as texts of options, or as both."""

    def __init__(self) -> None:
        self.only_labels = self.only_texts = 0
        self.clash: InputError | None = None
        self.numbers = set[int]()

    def check(self) -> None:
        """Raises InputError at a row that names one option as a label or place, and another as a text, if the texts of
        other rows are read, or no row is read as a label or place alone."""
        if self.clash and (self.only_texts or not self.only_labels):
            raise self.clash


def counting_doubt(readings: Sequence[Readings]) -> tuple[str, ...]:
    """A caveat where the places of a table are read as counted from 0, and would all fit counted from 1."""
    numbers = sorted(set[int]().union(*(reading.numbers for reading in readings)))
    if not numbers or 0 in numbers:
        return ()
    return (
        f"Answers {', '.join(map(str, numbers))} of the table are read as places counted from 0, and none is 0: if "
        "they count from 1, each is the option before; subtract 1, or write letters.",
    )


# A large log repeats the same few answers, orders, labels and texts on every page; one shared object for all of them
# takes a fraction of the memory.
_shared_places, _shared = lru_cache(maxsize=1000)(frozenset[int]), lru_cache(maxsize=1000)(tuple[Any, ...])


def _as_scores(items: Sequence[Any]) -> list[Any]:
    """The numbers of a list, or of a list for each order."""
    return [_as_scores(item) if isinstance(item, list | tuple) else as_score(item) for item in items]


class PageRow:
    """One record, by field."""

    def __init__(self, data: Mapping[str, Any], fields: Mapping[str, str], place: str) -> None:
        self.data, self.place = data, place
        self.columns, self.names = columns_of(tuple(data), tuple(fields.items()))
        self.fields = fields
        self.own_labels = True
        """Whether the labels are those of the table, and not A, B, ... by default."""

    def raw(self, key: str) -> Any:
        """The value of a field, also an empty text; None without a column of it."""
        return lookup(self.data, self.names[key]) if self.names[key] else None

    def get(self, key: str) -> Any:
        """The value of a field; None without a column of it, or where it is empty."""
        return None if is_missing(value := self.raw(key)) else value

    def fail(self, key: str, reason: str) -> InputError:
        return (InputError if key in ANSWERS else BadRow).at(self.place, reason, field=self.names[key] or key)

    def written(self, key: str) -> Any:
        """A list or an object; in CSV it is written as JSON, with bars between values, or in several columns."""
        if "," in (name := self.names[key]) and name not in self.data:
            cells = [lookup(self.data, part.strip()) for part in name.split(",")]
            return [cell for cell in cells if not is_missing(cell)]
        value = self.get(key) if name else None
        if isinstance(value, str):
            text = value.strip()
            value = parse_written(text) if text.startswith(("[", "{")) else text.split("|")
            if value is None:
                raise self.fail(key, f"{text!r} is not a list: write JSON, or values with | between them")
        return [] if value is None else value

    def listed(self, key: str) -> list[Any]:
        value = self.written(key)
        if not isinstance(value, Sequence):
            raise self.fail(key, f"{value!r} is not a list")
        return list(value)

    def by_label(self, key: str) -> dict[str, Any]:
        """Numbers that are given for each label, without spaces around it, as tokens have them; empty for a list."""
        value = self.written(key)
        return {str(label).strip(): number for label, number in value.items()} if isinstance(value, Mapping) else {}

    def options(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The texts of the options, which are the same on many pages, and their names in the table, if it has any."""
        name = self.names["options"]
        if not name or (name in self.data and is_missing(self.data[name])):
            return (), ()
        try:
            texts, names, _ = options_in(self.data, name)
        except BadRecord as error:
            raise self.fail("options", str(error)) from None
        return tuple(map(intern, texts)), names

    def _text(self, key: str) -> str:
        return intern("" if (value := self.get(key)) is None else str(value))  # passages may be numbered from 0

    def numbers(self, key: str, labels: Sequence[str] = ()) -> Floats | None:
        scores = self.by_label(key)
        if missing := [label for label in labels if scores and label not in scores]:  # other tokens may be there too
            raise self.fail(key, f"has no number for the label {missing[0]}, only for {', '.join(scores)}")
        items = [scores[label] for label in labels] if scores else self.listed(key)
        if not items:
            return None
        try:
            values: Floats = np.array(_as_scores(items))
        except (TypeError, ValueError):
            hint = "; write decimals with a point" * any("," in str(item) for item in items)
            raise self.fail(key, f"{items!r} is not a list of numbers{hint}") from None
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
            column, *more = self.columns[key] or [""]
            for name in more if more and key not in self.fields and self.get(key) is not None else ():
                value = self.under(key, name, pages[0]) if not is_missing(self.data[name]) else None
                if value is not None and value != self.under(key, column, pages[0]):
                    raise self.fail(
                        key,
                        f"{self.data[column]!r} is {key} by this column, {self.data[name]!r} by {name!r}: name the one "
                        f"to read, --fields {key}={column} or --fields {key}={name}",
                    )
        page = pages[0]
        if len(pages) > 1 and self.listed("order"):
            raise self.fail("order", "is one order, where the row holds every order; leave it out (--fields order=)")
        if page.logprobs is None or len(pages) > 1:
            return
        if self.get("chosen") is not None:
            best = {int(i) for i in np.flatnonzero(page.logprobs == page.logprobs.max())}
            chosen = self.places_of("chosen", page.labels, page.options)
            if not chosen <= best:
                scores = "logprobs" if self.written("logprobs") else "probs"
                raise self.fail(
                    "chosen",
                    f"is {', '.join(page.labels[k] for k in sorted(chosen))}, but {scores} are highest for "
                    f"{page.labels[min(best)]}: to read the scores, leave this out (--fields chosen=); to read this, "
                    f"leave those out (--fields {scores}=)",
                )
        probs = self.numbers("probs", page.labels) if self.names["probs"] and self.written("logprobs") else None
        if probs is not None and probs.shape == page.logprobs.shape:
            one, other = (np.exp(scores - np.logaddexp.reduce(scores)) for scores in (page.logprobs, probs))
            if np.abs(one - other).max() > _APART:
                reason = "contradict logprobs: name the one to read by leaving the other out (--fields probs=)"
                raise self.fail("probs", reason)

    def under(self, key: str, name: str, page: Logged) -> object:
        """The value of a field by another column, in comparable form; None if the column cannot be that field."""
        row = PageRow(self.data, {**self.fields, key: name}, self.place)
        try:
            if key in ("answer", "chosen"):
                if name == "correct" and str(self.data[name]).lower() in VERDICTS:
                    return None  # whether the answer was right, not which answer is
                labels = page.labels if page.options or self.listed("labels") else ALPHABETS["A"][:LETTERS]
                return row.places_of(key, labels, page.options)
            if key == "options":
                return [text.strip() for text in row.options()[0]] or None
            if scores := row.by_label(key):
                return [str(scores.get(label)).strip() for label in page.labels]
            return [str(item).strip() for item in row.listed(key)] or None
        except InputError:
            return None

    def contradicts(self, pages: Sequence[Logged]) -> bool:
        """Whether the row's reply names another option than the column that is read."""
        reply, page = self.get("reply"), pages[0]
        if reply is None or page.reply is not None or len(pages) > 1:
            return False
        from unslant.replies.extraction import extract_answer  # compiles many patterns

        answer = {int(np.argmax(page.logprobs))} if page.logprobs is not None else page.chosen or frozenset()
        labels = extract_answer(str(reply), page.labels, page.options).labels
        return len(labels) == 1 and not set(map(page.labels.index, labels)) <= answer

    def pages(self, readings: Mapping[str, Readings]) -> list[Logged]:
        """The page of a row, or the pages in all orders, if the row holds them."""
        needed = "id" if self.names["id"] else "question"
        if self.get(needed) is None:
            raise self.fail(needed, "is missing")
        (options, names), question = self.options(), self._text("question")
        scored = next((key for key in ("logprobs", "probs") if self.written(key)), "")
        if not (options or scored or self.names["labels"]) and (parts := split_options(question)):
            question, options = parts[0], tuple(map(intern, parts[1]))
        usual = any(set(names) == set(alphabet[: len(names)]) for alphabet in ALPHABETS.values())
        labels = _shared(tuple(map(str, self.listed("labels")))) or (names if usual else ())
        self.own_labels = bool(labels)
        labels = labels or labels_for(ALPHABETS["A"], len(options))
        labels = labels or alphabetical(list(self.by_label(scored)) if scored else [])
        logprobs = self.numbers(scored, labels) if scored else None
        n = len(options) or (logprobs.shape[-1] if logprobs is not None else 0) or len(labels)
        labels = labels or labels_for(ALPHABETS["A"], n)
        common: dict[str, Any] = {
            "id": intern(str(self.get("id") if self.names["id"] else self.place)),
            "labels": labels,
            "place": self.place,
            "question": intern(question),
            "context": self._text("context"),
            "subject": self._text("subject"),
            "repeat": self.repeat(),
            "score": self.score(),
        }
        if not n or len(labels) != n:
            ends = ": the text does not end with A. ..., B. ..." * bool(question)
            reason = f"{len(labels)} labels for {n} options" if n else f"the number of options is not known{ends}"
            reason += "; name the column of their texts (--fields options=COLUMN), or add a column labels, such as "
            raise self.fail("labels", reason + "A|B|C|D")
        if logprobs is not None and logprobs.ndim == 2:
            if logprobs.shape != (factorial(n), n):
                reason = f"holds {len(logprobs)} lists; {factorial(n)}, one for each order, can be read"
                raise self.fail("probs", reason)
            right = self.places_of("answer", labels, options, names, readings["answer"])
            common["score"] = None  # it is of the whole row (of the average, for example), and of none of its pages
            return [
                Logged.of_scores(
                    row,
                    answers=frozenset(map(order.index, right)),
                    options=tuple(options[i] for i in order) if options else (),
                    order=order,
                    **common,
                )
                for order, row in zip(permutations(range(n)), logprobs, strict=True)
            ]
        answers = self.places_of("answer", labels, options, names, readings["answer"])
        common |= {"answers": answers, "options": options, "order": self.order(n)}
        if logprobs is not None:
            if logprobs.shape != (n,):
                raise self.fail("logprobs", f"holds {len(logprobs)} numbers for {n} options")
            return [Logged.of_scores(logprobs, **common)]
        if self.get("chosen") is not None:
            return [Logged(chosen=self.places_of("chosen", labels, options, names, readings["chosen"]), **common)]
        # An empty text is a reply without an answer, as of a model that only thought; null is none at all.
        reply = self.raw("reply")
        reply = reply.get("content") if isinstance(reply, Mapping) else reply
        if not isinstance(reply, str | int | float | None):
            raise self.fail("reply", f"is {type(reply).__name__}, and not a text; name the column with the text")
        alone = self.names["chosen"] and not any(self.names[key] for key in ANSWERS if key != "chosen")
        error = self.data.get("error")  # CSV has an empty text in place of null
        if is_missing(reply) and not is_missing(error) and VERDICTS.get(str(error).strip().lower()) != 0:
            return [Logged(status="error", reply=str(error), **common)]
        # Likewise an empty text, unless its score is empty too; of null only one that is counted as wrong.
        if alone and (common["score"] == 0 or (isinstance(self.raw("chosen"), str) and self.raw("score") != "")):
            return [Logged(status="unparsed", **common)]
        text = None if is_missing(reply) and not isinstance(reply, str) else str(reply)
        return [Logged.of_reply(text, finish_reason=self.get("finish_reason"), **common)]

    def score(self) -> float | None:
        """How far the table itself counts the answer as right, from 0 to 1; None where it does not say so."""
        text = "" if self.names["score"] == self.names["answer"] else str(self.get("score")).strip().lower()
        try:
            return VERDICTS[text] if text in VERDICTS else unit_share(float(text))
        except ValueError:  # also where there is no value
            return None

    def repeat(self) -> int:
        text = whole_number(str(self.get("repeat") or 0))
        if not text.isdigit():
            raise self.fail("repeat", f"{text!r} is not a sample number: 0, 1, ...")
        return int(text)

    def order(self, n: int) -> tuple[int, ...] | None:
        if not (indices := self.listed("order")):
            return None
        try:
            order = tuple(int(whole_number(str(i))) for i in indices)  # not 0 for 0.5
        except (TypeError, ValueError):
            order = ()
        if sorted(order) != list(range(n)):
            reason = f"{indices!r} does not name every option, 0 to {n - 1}, once"
            raise self.fail("order", reason + "; where options are listed as shown, leave it out (--fields order=)")
        return _shared(order)

    def places_of(
        self, key: str, labels: tuple[str, ...], options: tuple[str, ...], names: tuple[str, ...] = (),
        readings: Readings | None = None,
    ) -> frozenset[int]:  # fmt: skip
        """The places that a field names: by labels, counted from 0, or by the texts or names of options."""
        if (value := self.get(key)) is None:
            raise self.fail(key, "is missing")
        places: list[int] = []
        n = len(labels) if key == "answer" and not self.own_labels else 0  # a reply may name both of two options
        items = RawAnswer(value, options, options, (*labels, *names)).items
        if (key == "answer" or len(items) == len(labels)) and are_flags(items, n):
            raise self.fail(key, FLAGS)
        for item in items:
            number = integer(item)
            text = whole_number(str(item if number is None else number).strip())
            raw = RawAnswer(item, options, options, labels)
            named = (labels.index(text),) if text in labels else ()
            # Labels after Z are numbers: where the table does not give its labels, only a number itself is a place.
            numbered = any(label.isdigit() for label in labels) and (self.own_labels or isinstance(item, str))
            is_place = text.isdecimal() and not numbered
            if is_place and int(text) < len(labels):
                named = (int(text),)
            exact = tuple(k for k, option in enumerate(options) if option == (item if number is None else text))
            texts = exact if exact or named else as_text(str(item), raw, 0)
            if readings is not None:
                readings.numbers |= set(named) if is_place and not texts else set()
                readings.only_labels += not texts
                readings.only_texts += not named
                if named and texts and named[0] not in texts and readings.clash is None:
                    reason = f"{item!r} is {labels[named[0]]} by label or place, and {labels[texts[0]]} by its text; "
                    reason += "where these are labels, leave the texts out (--fields options=)"
                    readings.clash = self.fail(key, reason)
            found = named or texts or READERS["label"](text.strip("()[].: "), raw, 0)
            for reading in ("letter", "marked") if labels == ALPHABETS["A"][: len(labels)] else ():
                found = found or READERS[reading](text, replace(raw, options=labels), 0)
            found = found or READERS["label"](text, replace(raw, labels=names), 0)
            if not found:
                reason = f"{item!r} is neither one of the labels {', '.join(labels)}, nor "
                reason += f"a place, counted from 0 to {len(labels) - 1}" if not numbered else "read as a place, since "
                reason += "some of these are numbers" * numbered + ", nor an option's text" * bool(options)
                if is_place and int(text) == len(labels):
                    reason += "; where places count from 1, subtract 1, or write letters"
                if key == "chosen":  # parsers write "N/A", "None" or -1 for a reply that they could not read
                    reason += "; where this says that there was no answer, read the column as replies "
                    reason += f"(--fields reply={self.names[key]}) and not as choices (--fields chosen=)"
                raise self.fail(key, reason)
            if key == "chosen" and not set(found).isdisjoint(places):
                raise self.fail(key, f"names {labels[found[0]]} twice; write a row for each sample (repeat 0, 1, ...)")
            places += found
        return _shared_places(frozenset(places))

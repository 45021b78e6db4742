"""A log says the same of a question wherever it tells a thing twice."""

from __future__ import annotations

from collections.abc import Iterable

from unslant.errors import InputError
from unslant.responses.importers.logged import Logged


class ToldOnce:
    """Check the pages of one log, one by one, against those before.

    An id stands for one question with the same options. By order, an option of the question file has one text on every
    page, and the right one is always the same. (Another log may number options otherwise: its file was shuffled anew.)
    """

    def __init__(self) -> None:
        self._first: dict[str, Logged] = {}
        self._texts: dict[tuple[str, int], tuple[str, Logged]] = {}
        self._right: dict[str, tuple[frozenset[int], Logged]] = {}

    def check(self, page: Logged) -> None:
        """Raises InputError, naming both places, and how each of two columns that contradict each other is read."""
        first = self._first.setdefault(page.id, page)
        for index, text in zip(page.order or (), page.options, strict=False):
            before, other = self._texts.setdefault((page.id, index), (text.strip(), page))
            if before != text.strip():
                raise InputError.at(page.place, _contradiction(page, other, index, text, before))
        if first is page:
            self._note_right(page)
            return
        own, known = page.question.strip(), first.question.strip()
        if own != known and own and known:
            raise InputError.at(
                page.place,
                f"question {page.id!r} asks {own[:60]!r} here, and {known[:60]!r} before ({first.place}); give each "
                "question an id of its own",
            )
        if page.options and first.options and page.options != first.options:
            new = {text.strip() for text in page.options} - {text.strip() for text in first.options}
            if new:
                shows = f"question {page.id!r} shows {min(new)!r} here, which it does not before ({first.place})"
                raise InputError.at(page.place, f"{shows}; give each question an id of its own")
        self._note_right(page)

    def _note_right(self, page: Logged) -> None:
        if page.order is None:
            return
        right = frozenset(page.order[k] for k in page.answers)
        known, other = self._right.setdefault(page.id, (right, page))
        if right != known:
            raise InputError.at(
                page.place,
                f"the right option of question {page.id!r} is, by order, {_listed(right)} here and {_listed(known)} in "
                f"{other.place} (counted from 0 in the question file). An answer is the label or place as shown; if it "
                "is that of the question file, turn it by order, or leave order out (--field order=)",
            )


def _contradiction(page: Logged, other: Logged, index: int, text: str, before: str) -> str:
    by_order, by_options = "another option there", "the options as listed"
    if other.options == page.options:
        by_order, by_options = "the same options in another order", "one order"
    return (
        f"order {_listed(page.order)} and options contradict those of {other.place}, order {_listed(other.order)}: "
        f"option {index} of question {page.id!r} would be {text!r} here and {before!r} there. By order, these rows "
        f"show {by_order}; by options, they show {by_options}. Options are listed as shown, from the top, and order "
        "has the index in the question file of each. If order is wrong, leave it out (--field order=); if options are "
        "not as shown, leave those out (--field options=)"
    )


def _listed(numbers: Iterable[int] | None) -> str:
    found = numbers if isinstance(numbers, tuple) else sorted(numbers or ())
    return ", ".join(map(str, found)) or "none"

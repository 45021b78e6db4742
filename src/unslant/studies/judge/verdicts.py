"""Verdicts of one judge as arrays: a row for each page that it was shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unslant.arrays import Bools, Floats, Ints
from unslant.errors import InputError
from unslant.metrics import Bootstrap
from unslant.responses import Responses
from unslant.responses.importers.joining import UNPLACED


@dataclass(frozen=True, eq=False)
class Verdicts:
    """R pages of Q pairs (or lists) of at most N answers.

    Attributes:
        ids, stems, subjects: (Q,) of each pair; pairs about the same question are drawn together.
        exists: (Q, N) which answers there are.
        right: (Q, N) answers that the label prefers; none without a label, all in a tie.
        doublings: (Q, N) log2 of the length in characters plus one; nan where no texts are known.
        system: (Q, N) index into ``systems`` of who wrote each answer; -1 where that is not known.
        pair: (R,) pair of each page.
        order: (R, N) answer at each place; -1 in the padding.
        placed: (R,) whether the order is the one shown.
        repeat: (R,) sample number.
        credit: (R, N) share of the verdict that each answer gets: 1, or 1/k in a tie of k; nan without a decision.
        probs: (R, N) probability of each answer; nan where only words are known.
    """

    ids: tuple[str, ...]
    stems: tuple[str, ...]
    subjects: tuple[str, ...]
    systems: tuple[str, ...]
    exists: Bools
    right: Bools
    doublings: Floats
    system: Ints
    pair: Ints
    order: Ints
    placed: Bools
    repeat: Ints
    credit: Floats
    probs: Floats

    @classmethod
    def of(cls, responses: Responses) -> Verdicts:
        """Raises InputError if there is no pair."""
        rows = [row for row in responses.rows() if row.n_options > 1]
        if not rows:
            raise InputError("no judgements: nothing to measure")
        texts = {question.id: question for question in responses.questions}
        places = {name: k for k, name in enumerate(dict.fromkeys(row.question_id for row in rows))}
        first = {row.question_id: row for row in reversed(rows)}
        known = [texts.get(name) for name in places]
        names = sorted({author for question in known if question for author in question.authors})
        width, shape = max(row.n_options for row in rows), (len(places), max(row.n_options for row in rows))
        exists, right = np.zeros(shape, bool), np.zeros(shape, bool)
        doublings, system = np.full(shape, np.nan), np.full(shape, -1)
        for (name, q), question in zip(places.items(), known, strict=True):
            exists[q, : first[name].n_options] = True
            right[q, sorted(code for code in first[name].answers if code >= 0)] = True
            if question:
                n = len(question.options)
                doublings[q, :n] = np.log2([len(option) + 1 for option in question.options])
                if len(set(question.authors)) > 1:
                    system[q, :n] = [names.index(author) for author in question.authors]
        credit, probs = np.full((len(rows), width), np.nan), np.full((len(rows), width), np.nan)
        order = np.full((len(rows), width), -1)
        for r, row in enumerate(rows):
            shown = [code for code in row.contents if code >= 0]
            order[r, : len(shown)] = shown
            chosen = sorted(code for code in row.chosen or () if code >= 0)
            if row.status == "ok" and chosen:
                credit[r, : row.n_options] = 0.0
                credit[r, chosen] = 1 / len(chosen)
            if row.logprobs is not None and row.status == "ok":
                probs[r, list(row.contents)] = np.exp(row.logprobs - np.logaddexp.reduce(row.logprobs))
        return cls(
            ids=tuple(places),
            stems=tuple(question.stem if question else name for name, question in zip(places, known, strict=True)),
            subjects=tuple(first[name].subject for name in places),
            systems=tuple(names) if (system >= 0).any() else (),
            exists=exists,
            right=right,
            doublings=doublings,
            system=system,
            pair=np.array([places[row.question_id] for row in rows]),
            order=order,
            placed=np.array([row.kind != UNPLACED for row in rows]),
            repeat=np.array([row.repeat for row in rows]),
            credit=credit,
            probs=probs,
        )

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def bootstrap(self) -> Bootstrap:
        """Over pairs, those about one question together."""
        return Bootstrap(len(self), contexts=self.stems)

    @cached_property
    def labelled(self) -> Bools:
        """(Q,) pairs with a label; where all answers are right, it is a tie."""
        return np.asarray(self.right.any(axis=1))

    @cached_property
    def decided(self) -> Bools:
        """(R,) pages with a decision, ties among them."""
        return ~np.isnan(self.credit[:, 0])

    @cached_property
    def tied(self) -> Bools:
        """(R,) pages whose decision is a tie."""
        most = self.credit.max(axis=1, initial=0.0, where=~np.isnan(self.credit))
        return np.asarray(self.decided & (most < 1))

    @cached_property
    def by_place(self) -> Floats:
        """(R, N) the credit of the answer at each place."""
        found: Floats = np.where(self.order >= 0, np.take_along_axis(self.credit, np.maximum(self.order, 0), 1), np.nan)
        return found

    @cached_property
    def swapped(self) -> Bools:
        """(R,) pages that do not show the answers in the order of the file."""
        return np.asarray((self.order != np.where(self.order >= 0, np.arange(self.order.shape[1]), -1)).any(axis=1))

    @cached_property
    def pages_of(self) -> tuple[Sequence[int], ...]:
        """The pages of each pair, of the first sample."""
        found: list[list[int]] = [[] for _ in self.ids]
        for r in np.flatnonzero(self.repeat == 0):
            found[self.pair[r]].append(int(r))
        return tuple(found)

    @cached_property
    def same(self) -> Bools:
        """(Q,) pairs with one verdict on all pages; a page without a decision agrees with none."""
        return np.array([self.agree(pages) for pages in self.pages_of])

    def agree(self, pages: Sequence[int]) -> bool:
        """Whether some pages have one verdict."""
        credit = np.nan_to_num(self.credit[list(pages)])
        return bool(len(pages) and self.decided[list(pages)].all() and np.ptp(credit, axis=0).max() < 1e-9)

    @cached_property
    def moved(self) -> Floats:
        """(Q,) credit at the first place less that at the last, over decided pages; nan without one."""
        last = self.by_place[np.arange(len(self.pair)), (self.order >= 0).sum(axis=1) - 1]
        return self.per_pair(self.by_place[:, 0] - last, self.placed)

    @cached_property
    def follows(self) -> Bools:
        """(Q,) pairs in which the answer at one place wins on every page."""
        wins = np.nan_to_num(self.by_place) == 1
        return np.array([bool(pages) and bool(wins[list(pages)].all(axis=0).any()) for pages in self.pages_of])

    @cached_property
    def in_orders(self) -> Bools:
        """(Q,) pairs shown in two orders or more."""
        return np.array([len(pages) > 1 and bool(self.placed[list(pages)].all()) for pages in self.pages_of])

    @cached_property
    def mean_credit(self) -> Floats:
        """(Q, N) credit over all pages of a pair; one without a decision gives none; nan in the padding."""
        total = np.zeros(self.exists.shape)
        np.add.at(total, self.pair, np.nan_to_num(self.credit))
        pages = np.bincount(self.pair, minlength=len(self))[:, None]
        return np.where(self.exists, total / pages, np.nan)

    @cached_property
    def voted(self) -> Bools:
        """(Q, N) the answers with most credit over all pages; none where no page has a decision."""
        best = np.nan_to_num(self.mean_credit, nan=-1.0)
        top = best.max(axis=1, keepdims=True)
        return np.asarray((best >= top - 1e-9) & (top > 0))

    def per_pair(self, values: Floats, pages: Bools) -> Floats:
        """(Q,) mean of page values over the pages given of each pair; nan where it has none."""
        kept = pages & ~np.isnan(values)
        total = np.bincount(self.pair[kept], values[kept], len(self))
        n = np.bincount(self.pair[kept], minlength=len(self))
        return np.asarray(np.divide(total, n, out=np.full(len(self), np.nan), where=n > 0))

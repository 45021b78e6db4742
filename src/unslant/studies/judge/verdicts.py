"""Verdicts of one judge as arrays: a row for each page that it was shown."""

from __future__ import annotations

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
        """The verdicts in a table.

        Raises:
            InputError: if it holds no pair.
        """
        rows = responses.rows()
        if not rows:
            raise InputError("no judgements: nothing to measure")
        texts = {question.id: question for question in responses.questions}
        places = {name: k for k, name in enumerate(dict.fromkeys(row.question_id for row in rows))}
        first = {row.question_id: row for row in reversed(rows)}
        questions = [texts.get(name) for name in places]
        names = sorted({author for question in questions if question for author in question.authors})
        shape = len(places), max(row.n_options for row in rows)
        exists, right = np.zeros(shape, bool), np.zeros(shape, bool)
        doublings, system = np.full(shape, np.nan), np.full(shape, -1)
        for (name, q), question in zip(places.items(), questions, strict=True):
            exists[q, : first[name].n_options] = True
            right[q, list(first[name].answers)] = True
            if question:
                n = len(question.options)
                doublings[q, :n] = np.log2([len(option) + 1 for option in question.options])
                if len(set(question.authors)) > 1:
                    system[q, :n] = [names.index(author) for author in question.authors]
        order = np.full((len(rows), shape[1]), -1)
        credit, probs = np.full(order.shape, np.nan), np.full(order.shape, np.nan)
        for r, row in enumerate(rows):
            order[r, : row.n_options] = row.contents
            winners = sorted(code for code in row.chosen or () if code >= 0)  # a reply may prefer none of several
            if row.logprobs is not None and row.status == "ok":
                probs[r, list(row.contents)] = np.exp(row.logprobs - np.logaddexp.reduce(row.logprobs))
                # Equal scores are a tie: which one a row calls chosen depends on the order shown.
                winners = np.flatnonzero(probs[r] == np.nanmax(probs[r])).tolist()
            if row.status == "ok" and winners:
                credit[r, : row.n_options] = 0.0
                credit[r, winners] = 1 / len(winners)
        return cls(
            ids=tuple(places),
            stems=tuple(question.stem if question else name for name, question in zip(places, questions, strict=True)),
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
    def clear_label(self) -> Bools:
        """(Q,) pairs whose label is not a tie."""
        return np.asarray(self.labelled & (self.right != self.exists).any(axis=1))

    @cached_property
    def decided(self) -> Bools:
        """(R,) pages with a decision, ties among them."""
        return ~np.isnan(self.credit[:, 0])

    @cached_property
    def tied(self) -> Bools:
        """(R,) pages whose decision is a tie."""
        return np.asarray(self.decided & (np.nan_to_num(self.credit).max(axis=1) < 1))

    @cached_property
    def by_place(self) -> Floats:
        """(R, N) the credit of the answer at each place."""
        return np.where(self.order >= 0, np.take_along_axis(self.credit, np.maximum(self.order, 0), 1), np.nan)

    @cached_property
    def swapped(self) -> Bools:
        """(R,) pages that do not show the answers in the order of the file."""
        return np.asarray((self.order != np.where(self.order >= 0, np.arange(self.order.shape[1]), -1)).any(axis=1))

    @cached_property
    def page(self) -> Ints:
        """(R,) number of the pair and order; samples of the same page have the same one."""
        return np.asarray(np.unique(np.column_stack([self.pair, self.order]), axis=0, return_inverse=True)[1].ravel())

    def as_first(self, group: Ints) -> Bools:
        """(R,) pages whose verdict is that of the first page of their group (its first sample), both decided."""
        rows = np.flatnonzero(self.repeat == 0)[::-1]
        first = np.full(len(group), -1)
        first[group[rows]] = rows
        credit, other = np.nan_to_num(self.credit), first[group]
        same = (np.abs(credit - credit[other]) < 1e-9).all(axis=1)
        return np.asarray((other >= 0) & self.decided & self.decided[other] & same)

    def on_all(self, pages: Bools) -> Bools:
        """(Q, ...) whether (R, ...) hold on every page of a pair, of its first sample."""
        result, first = np.ones((len(self), *pages.shape[1:]), bool), self.repeat == 0
        np.logical_and.at(result, self.pair[first], pages[first])
        return result

    @cached_property
    def same(self) -> Bools:
        """(Q,) pairs with one verdict on all pages; a page without a decision agrees with none."""
        return self.on_all(self.as_first(self.pair))

    @cached_property
    def follows(self) -> Bools:
        """(Q,) pairs in which the answer at one place wins on every page."""
        return np.asarray(self.on_all(self.by_place == 1).any(axis=1))

    @cached_property
    def in_orders(self) -> Bools:
        """(Q,) pairs shown in two orders or more."""
        return self.on_all(self.placed) & (np.bincount(self.pair[self.repeat == 0], minlength=len(self)) > 1)

    @cached_property
    def complete(self) -> Bools:
        """(Q,) pairs in two orders or more with a decision on every page."""
        return self.in_orders & self.on_all(self.decided)

    @cached_property
    def moved(self) -> Floats:
        """(Q,) credit at the first place minus that at the last; nan where a decision is missing, or answers are not
        first as often as last."""
        last = (self.order >= 0).sum(axis=1) - 1
        # An answer that is first more often than last would add its own quality to what the place moves.
        balance = np.zeros(self.exists.shape)
        weights = 1 / np.bincount(self.page)[self.page]
        np.add.at(balance, (self.pair, self.order[:, 0]), weights)
        np.add.at(balance, (self.pair, self.order[np.arange(len(last)), last]), -weights)
        difference = self.per_pair(self.by_place[:, 0] - self.by_place[np.arange(len(last)), last], self.placed)
        return np.where(self.complete & (np.abs(balance).max(axis=1) < 1e-9), difference, np.nan)

    @cached_property
    def voted(self) -> Bools:
        """(Q, N) the answers with most credit over all orders; none where no page has a decision."""
        return best(self.over_orders(self.credit))

    def over_orders(self, values: Floats) -> Floats:
        """(Q, N) mean over all orders of (R, N) values, 0 on a page without them; nan in the padding."""
        columns = [self.per_pair(column) for column in np.nan_to_num(values).T]
        return np.where(self.exists, np.stack(columns, axis=1), np.nan)

    def per_pair(self, values: Floats, pages: Bools | bool = True) -> Floats:
        """(Q,) mean over orders, each the mean of its samples, of (R,) values on the pages given; nan without one."""
        rows = pages & ~np.isnan(values)
        weights = 1 / np.maximum(np.bincount(self.page[rows], minlength=self.page.max() + 1), 1)[self.page[rows]]
        total = np.bincount(self.pair[rows], weights * values[rows], len(self))
        n = np.bincount(self.pair[rows], weights, len(self))
        return np.asarray(np.divide(total, n, out=np.full(len(self), np.nan), where=n > 0))


def best(credit: Floats) -> Bools:
    """(Q, N) the answers with the highest credit; none where nobody has any."""
    scores = np.nan_to_num(credit, nan=-1.0)
    top = scores.max(axis=1, keepdims=True)
    return np.asarray((scores >= top - 1e-9) & (top > 0))

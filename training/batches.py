"""From drawn items to tensors."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from training.mixture import Item
from training.tokenizer import EOS, train_tokenizer


@dataclass(frozen=True)
class Batch:
    """One forward pass of training data; ``n`` supervised positions, ``o`` option lines, ``p`` pointers.

    Attributes:
        ids: token ids, shape ``(sequences, length)``, padded on the right.
        row, column: place of each supervised position, shape ``(n,)``.
        target: probabilities of the next token there, shape ``(n, vocabulary)``.
        kinds: what kind of item each belongs to.
        lines: (row, column of the option's text, token of its label), shape ``(o, 3)``.
        pointers: (row, column of the supervised position, column of an option's text), shape ``(p, 3)``.
        looks: share of attention that each of the pointers deserves, shape ``(p,)``; they sum to 1 for each position.
        values: (row, column of the supervised position, token of the true value), shape ``(v, 3)``.
    """

    ids: Tensor
    row: Tensor
    column: Tensor
    target: Tensor
    kinds: list[str]
    lines: Tensor
    pointers: Tensor
    values: Tensor
    looks: Tensor


class Batcher:
    """Turns sequences of items into token ids, supervised positions and target distributions."""

    def __init__(self) -> None:
        self.tokenizer = train_tokenizer()
        self.vocabulary: int = self.tokenizer.get_vocab_size()
        self.eos = self.token(EOS)

    def token(self, text: str) -> int:
        """The id of a text that is one token."""
        ids = self.tokenizer.encode(text).ids
        if len(ids) != 1:
            raise ValueError(f"{text!r} is {len(ids)} tokens, an answer must be one")
        return int(ids[0])

    def batch(self, sequences: list[list[Item]]) -> Batch:
        """Encode sequences; after the last item of each the end-of-text token is learned."""
        pieces = [piece for items in sequences for item in items for piece in (item.before, item.answer, item.after)]
        encoded = iter(self.tokenizer.encode_batch(pieces, add_special_tokens=False))
        rows: list[list[int]] = []
        supervised: list[tuple[int, int]] = []
        targets: list[dict[int, float]] = []
        kinds: list[str] = []
        lines: list[tuple[int, int, int]] = []
        pointers: list[tuple[int, int, int]] = []
        values: list[tuple[int, int, int]] = []
        looks: list[float] = []
        for row, items in enumerate(sequences):
            ids: list[int] = []
            for item in items:
                before, answer, after = (next(encoded).ids for _ in range(3))
                place = len(ids) + len(before) - 1
                supervised.append((row, place))
                targets.append({self.token(text): p for text, p in item.targets.items()})
                kinds.append(item.kind)
                columns = [len(ids) + at for at in self._option_columns(before, item)]
                labels = [self.token(label) for label, _ in item.options]
                lines += [(row, column, label) for column, label in zip(columns, labels, strict=True)]
                if item.look is not None:
                    pointers += [(row, place, column) for column in columns]
                    looks += item.look
                if item.value is not None:
                    values.append((row, place, self.token(f" {item.value}")))
                ids += before + answer + after
            if ids[-1] == self.eos:  # a chat turn brings its own
                ids.pop()
            supervised.append((row, len(ids) - 1))
            targets.append({self.eos: 1.0})
            kinds.append("end")
            rows.append(ids)
        length = max(map(len, rows))
        dense = torch.zeros(len(targets), self.vocabulary)
        for i, target in enumerate(targets):
            dense[i, list(target)] = torch.tensor(list(target.values()), dtype=torch.float32)
        where = torch.tensor(supervised)
        return Batch(
            ids=torch.tensor([ids + [0] * (length - len(ids)) for ids in rows]),
            row=where[:, 0],
            column=where[:, 1],
            target=dense,
            kinds=kinds,
            lines=_triples(lines),
            pointers=_triples(pointers),
            values=_triples(values),
            looks=torch.tensor(looks),
        )

    def _option_columns(self, before: list[int], item: Item) -> list[int]:
        """Place of each option's text in the ids of the item, found from the end."""
        columns = []
        at = len(before)
        for _, text in reversed(item.options):
            token = self.token(f" {text}")
            at = next(i for i in range(at - 1, -1, -1) if before[i] == token)
            columns.append(at)
        return columns[::-1]


def _triples(rows: list[tuple[int, int, int]]) -> Tensor:
    return torch.tensor(rows, dtype=torch.long).reshape(-1, 3)

"""Attention over the orders of a question (P1, figure 2): what the last token looks at while only the order changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np

from unslant.arrays import Floats
from unslant.auditing import AuditSettings, order_presentations
from unslant.auditing.panels_scores import order_name
from unslant.errors import InputError, ModelError
from unslant.flags import with_options
from unslant.models import ScoringModel
from unslant.models.open import opened
from unslant.presentations import parse_labels
from unslant.prompts import Cloze, Prompt
from unslant.questions import Question
from unslant.reports import Chart, Column, Page, Panel, Style, Table
from unslant.reports.numbers import Cell, count
from unslant.reports.style import alt, axis_of, rule_at

if TYPE_CHECKING:
    from unslant.models.hf.model import TransformersModel

DRAWN = 2
"""Heads drawn, as many as in the paper's figure."""


@dataclass(frozen=True)
class AttentionOverOrders:
    """What the last token of a question's prompt attends to under each order of the options.

    Attributes:
        orders: the orders, named by the options' labels in the file; the file's own comes first.
        weights: (orders, heads, tokens) attention weights of one layer; nan behind the end of a shorter prompt.
        start: tokens that all orders begin with, the question among them; the options follow.
    """

    model: str
    question: str
    orders: tuple[str, ...]
    weights: Floats
    start: int

    @property
    def spread(self) -> Floats:
        """(heads, 2) standard deviation over orders of the attention to a place, mean over the places of the common
        beginning without its first token, and over those behind it."""
        deviation = np.nanstd(self.weights, axis=0)
        return np.stack([deviation[:, 1 : self.start].mean(axis=1), deviation[:, self.start :].mean(axis=1)], axis=1)

    def page(self) -> Page:
        spread = self.spread
        strongest = np.argsort(-spread[:, 1], kind="stable")[:DRAWN].tolist()
        more = int((spread[:, 1] > spread[:, 0]).sum())
        n, heads = len(self.orders), len(spread)
        drawings = tuple(
            Chart(
                f"attention-{head}",
                f"Attention of the last token, head {head}",
                "One line per order, the file's own highlighted; the dashed line is where the options begin. The first "
                "token, which absorbs unused attention, is left out (selection-bias paper, figure 2).",
                partial(self._drawn, head),
                of="orders",
            )
            for head in strongest
        )
        rows: list[tuple[Cell, ...]] = [(f"head {head}", *map(float, spread[head])) for head in range(heads)]
        columns = (Column("head"), Column("before the options", 5), Column("from the options on", 5))
        how = "Standard deviation over orders of the attention to a place, mean over places."
        table = Table("attention", "How far attention moves with the order", columns, tuple(rows), how, folded=True)
        return Page(
            about=f"{self.model} on question {self.question}: {count(n, 'order')}",
            headline=f"{self.model}: attention to the options moves with their order more than that to the rest in "
            f"{more} of {count(heads, 'head')} of the last layer",
            panels=(
                Panel(
                    "attention",
                    "Attention over orders",
                    f"The {len(drawings)} heads that move most.",
                    drawings,
                    (table,),
                ),
            ),
            name=self.model,
        )

    def _drawn(self, head: int, style: Style) -> Any:
        rows: list[dict[str, Any]] = [
            {"at": at, "attention": float(value), "order": name, "own": i == 0, "n": len(self.orders)}
            for i, name in enumerate(self.orders)
            for at, value in enumerate(self.weights[i, head])
            if at and np.isfinite(value)
        ]
        scale, title = axis_of("attention", None, (row["attention"] for row in rows), True, 1)
        x = alt.X("at:Q", title="token of the prompt", scale=alt.Scale(nice=False))
        tips = [alt.Tooltip("order:N"), alt.Tooltip("at:Q", title="token"), alt.Tooltip("attention:Q", format=".4f")]
        y = alt.Y("attention:Q", title=title, scale=scale)
        base = alt.Chart(alt.Data(values=rows)).encode(x=x, y=y, detail="order:N", tooltip=tips)
        width = style.scaled(1.2)
        others = base.mark_line(strokeWidth=width, color=style.accent, opacity=0.35).transform_filter("!datum.own")
        in_file = base.mark_line(strokeWidth=width, color=style.contrast).transform_filter("datum.own")
        start = rule_at(style, self.start, x=alt.X("at:Q", title="token of the prompt"))
        return alt.layer(start, others, in_file).properties(width=style.width, height=style.scaled(220))


class ShownKeywords(TypedDict, total=False):
    """Fields of :class:`~unslant.auditing.AuditSettings` that say how a question is shown."""

    orders: str | int
    labels: str | Sequence[str]
    seed: int
    template: str | Path
    chat: bool
    to_end: bool


def attention_over_orders(
    model: str | ScoringModel, question: Question, **options: Unpack[ShownKeywords]
) -> AttentionOverOrders:
    """Attention of the last token in the last layer under every order of one question.

    Each order is run alone, through the attention that transformers calls eager: for a few questions, not for a set.

    Args:
        options: those of :func:`unslant.audit` that say how a question is shown (orders, labels, template).

    Raises:
        InputError: if the question has one order only, or reads the same in all.
        ModelError: if the model is not one of transformers, or gives no attention weights.
    """
    from unslant.models.hf.model import TransformersModel

    settings = with_options(AuditSettings, None, options).resolved(False)
    pages = order_presentations(question, settings.orders, parse_labels(settings.labels), settings.seed)
    file_order = tuple(range(len(question.options)))
    pages.sort(key=lambda page: page.kind != "given" and tuple(page.contents) != file_order)
    if len(pages) < 2:
        raise InputError(f"question {question.id!r} has one order only: nothing to compare")
    local = opened(model)
    if not isinstance(local, TransformersModel):
        raise ModelError(f"{local.name}: only models that transformers runs here show their attention")
    cloze = Cloze(settings.writer())
    attention = last_token_attention(local, [cloze.prompts(page)[0] for page in pages])
    tokens = [tokens for tokens, _ in attention]
    weights = np.full((len(pages), len(attention[0][1]), max(map(len, tokens))), np.nan)
    for i, (_, of_order) in enumerate(attention):
        weights[i, :, : of_order.shape[1]] = of_order
    start = next((i for i, column in enumerate(zip(*tokens, strict=False)) if len(set(column)) > 1), None)
    if start is None:
        raise InputError(f"question {question.id!r} reads the same in every order: its options are one text")
    orders = tuple(order_name(page.contents) for page in pages)
    return AttentionOverOrders(local.name.rstrip("/").split("/")[-1], question.id, orders, weights, start)


def last_token_attention(model: TransformersModel, prompts: Sequence[Prompt]) -> list[tuple[list[str], Floats]]:
    """Tokens of each prompt, and the attention weights of its last token in the last layer, (heads, tokens).

    A head's weights sum to 1. Prompts are run one by one, through eager attention.

    Raises:
        ModelError: if the model gives no attention weights (state-space layers, custom attention).
    """
    import torch

    from unslant.models.hf.engine import inference, using

    attention = []
    try:
        with using(model.model, "eager"), inference(model.model):
            for item in model.encode(prompts):
                ids = torch.from_numpy(item.context).to(model.device, torch.long)[None]
                weights = model.model(input_ids=ids, output_attentions=True, use_cache=False).attentions
                if not weights or weights[-1] is None:
                    raise NotImplementedError("it returns no attention weights")
                tokens = [model.tokenizer.decode([token]) for token in item.context.tolist()]
                attention.append((tokens, weights[-1][0, :, -1].double().cpu().numpy()))
    except (NotImplementedError, ValueError) as error:  # of the library: a class without eager attention
        raise ModelError(f"{model.name}: no attention to show ({error})") from error
    return attention

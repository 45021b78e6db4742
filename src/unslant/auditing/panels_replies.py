"""The panel of an audit in words: replies without an answer, by order; noise; what stopping early saved."""

from __future__ import annotations

from unslant.auditing.panels_orders import order_name
from unslant.auditing.replies import Adaptive, Replies
from unslant.errors import shortened
from unslant.metrics.calibration import Calibration
from unslant.metrics.summary import Counts
from unslant.reports import Chart, Column, Figure, Panel, charts
from unslant.reports.charts import Mark
from unslant.reports.numbers import Cell, count, number, percent, with_interval
from unslant.responses import NO_ANSWER


def replies_panel(replies: Replies | None) -> Panel:
    """Nothing where labels were scored."""
    if replies is None:
        return Panel("replies", "", "")
    values: dict[str, Cell] = {
        "replies.right": replies.right,
        **(
            {"replies.right_by_label": replies.right_by_label, "replies.right_by_text": replies.right_by_text}
            if replies.example
            else {}
        ),
        "unparsed": replies.unparsed,
        "replies.conflict": replies.conflict,
        "replies.cut": replies.cut,
        "refused": replies.refused,
        "replies.none_or_several": replies.none_or_several,
        **replies.noise.cells(),
        **calibration_values(replies.calibration),
        "adaptive.other_vote": replies.adaptive.other_vote if replies.adaptive else None,
    }
    orders = [order_name(row.order) or f"{row.n_options} options, all orders" for row in replies.by_order]
    rows = [{**vars(row), "order": name} for row, name in zip(replies.by_order, orders, strict=True)]
    words = {"replies": "replies", "answered": "answers", "none_or_several": "none or several"}
    words |= {name: name for name in NO_ANSWER} | {"failed": "no reply"}
    by_order = Figure(
        "replies",
        "Replies by order",
        ["order"],
        [Column(name, key=key) for key, name in words.items()],
        rows,
        explanation="Orders are named by the options' labels in the file, from top to bottom. A reply that names none "
        "or several options, is unparsed, gives a label with another option's text (conflict), was cut or refused "
        "counts as not right.",
    )
    labels = Figure(
        "labels-written",
        "Labels as written",
        ["label"],
        [
            Column("replies naming it", key="written"),
            Column("right option under it", key="right"),
            Column("shown", key="of"),
        ],
        [vars(one) for one in replies.labels],
        explanation="Labels that replies name, whether the text after them is that option's or another's.",
    )
    numbers = Figure.of_metrics(
        "noise", "Flips and confidence", {"value": values}, calibration_chart(replies.calibration)
    )
    return Panel(
        "replies",
        "Replies",
        "Whether replies are answers, and whether answers change when nothing does.",
        short="Replies",
        figures=[numbers, by_order, labels],
    )


def calibration_values(found: Calibration | None) -> dict[str, Cell]:
    """Its numbers by key."""
    return {**found.numbers.cells()} if found else {}


def calibration_chart(found: Calibration | None) -> tuple[Chart, ...]:
    """The reliability diagram; nothing where there is no confidence."""
    if found is None:
        return ()
    points = [Mark(f"{b.above:.1f} to {b.to:.1f}", b.right, at=b.confidence) for b in found.bins]
    chart = Chart(
        "reliability",
        "Is confidence earned?",
        f"Share right, with 95 % intervals, against confidence, in ten bins; {count(found.replies, 'answer')}. On the "
        "dashed line both agree; below it the model is overconfident.",
        lambda style: charts.against(points, style, rows="confidence", axis="share right"),
    )
    return (chart,)


def unanswered_lines(counts: Counts) -> list[str]:
    """How many replies are no answer, and what they count as."""
    if not counts.unanswered_rows:
        return []
    return [
        f"{count(counts.unanswered_rows, 'reply', 'replies')} of {counts.rows:,} without an answer (unparsed, "
        "conflicting, cut, refused, or naming none or several options): counted as not right, their questions as not "
        "consistent."
    ]


def reply_lines(replies: Replies | None) -> list[str]:
    """Why answers are missing that could be there: labels that conflict with texts, and replies that were cut."""
    if replies is None:
        return []
    n = sum(row.replies for row in replies.by_order)
    conflicts, cut = sum(row.conflict for row in replies.by_order), sum(row.cut for row in replies.by_order)
    lines = []
    if conflicts:
        written, label = replies.example or ("", "")
        example = f', such as "{shortened(written, 60)}" (that text stood under {label})' if written else ""
        lines.append(
            f"{conflicts:,} of {count(n, 'reply gives', 'replies give')} a label with another option's text{example}; "
            f"they count as unanswered. {number(replies.right.value)} of replies are right, "
            f"{number(replies.right_by_label.value)} if these count by label, {number(replies.right_by_text.value)} by "
            "text. Label habits are measured from the labels as written."
        )
    if cut:
        lines.append(
            f"{cut:,} of {count(n, 'reply was', 'replies were')} cut off before an answer: raise --max-tokens."
        )
    if again := replies.again:
        lines.append(
            f"Asked again about {count(again.asked, 'reply', 'replies')} unread or in conflict, the model named one "
            f"option in {again.answered:,}; with these answers {number(again.right.value)} of replies are right. No "
            "other number uses them."
        )
    return lines


def adaptive_lines(found: Adaptive | None) -> list[str]:
    """What stopping early has saved, and what it can have cost."""
    if found is None:
        return []
    saved = found.requests_of_all - found.requests
    known = found.tokens_saved == found.tokens_saved
    tokens = f" and about {abs(found.tokens_saved):,.0f} tokens" if known else ""
    share = percent(abs(saved) / found.requests_of_all) if found.requests_of_all else "0 %"
    asked = f"{found.requests:,} requests in place of {found.requests_of_all:,}: {share}{tokens}"
    if found.at_random:
        lines = [
            f"{asked} saved. {found.checked:,} of {found.agreeing:,} questions, drawn at random, were asked in all "
            "orders and represent the others, asked as published only, in every number over orders."
        ]
    else:
        lines = [
            f"Asked adaptively: {asked} {'saved' if saved >= 0 else 'more, as answers mostly differ between orders'}. "
            f"Of the questions with further orders, {found.agreeing:,} had the same answer as given and reversed; "
            f"{found.checked:,} of them, drawn at random, were asked in all orders and represent the others in every "
            "number over orders."
        ]
    if found.other_vote.defined:
        lines.append(
            f"The vote over all orders was another answer in {with_interval(found.other_vote)} of those drawn. "
            "Numbers of single orders (worst, best, whether orders differ) need all questions in all orders."
        )
    return lines

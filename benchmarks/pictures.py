"""Draws the pictures that explain the engine, the intervals and the preference, from unslant's own numbers.

    python -m benchmarks.pictures

Every picture is an SVG on a light card, so that it can be read on a light and on a dark page, and says in words what it
shows. The pages are ``docs/engine.md``, ``docs/intervals.md`` and ``docs/metrics.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import permutations
from pathlib import Path

import numpy as np

from benchmarks.coverage import MODELS, SETS, interval, numbers
from unslant.metrics import Bootstrap, Estimate

FOLDER = Path(__file__).parents[1] / "docs" / "images"
INK, MUTED, LINE, BLUE, ORANGE, FAINT = "#1d1f23", "#5e636b", "#d5d7db", "#2b5a9e", "#b4531a", "#e9eef6"
WIDTH = 720


class Drawing:
    """An SVG that grows shape by shape."""

    def __init__(self, height: float, title: str, told: str) -> None:
        self.height, self.title, self.told = height, title, told
        self.shapes: list[str] = []

    def text(self, x: float, y: float, words: str, *, size: int = 13, colour: str = INK, at: str = "start") -> None:
        self.shapes.append(
            f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{colour}" text-anchor="{at}">{escape(words)}</text>'
        )

    def line(self, x: float, y: float, to_x: float, to_y: float, colour: str = LINE, width: float = 1.5) -> None:
        self.shapes.append(
            f'<path d="M{x:.1f} {y:.1f}L{to_x:.1f} {to_y:.1f}" stroke="{colour}" stroke-width="{width:g}"/>'
        )

    def box(self, x: float, y: float, width: float, height: float, fill: str, edge: str = "none") -> None:
        self.shapes.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="2" fill="{fill}"'
            f' stroke="{edge}"/>'
        )

    def dot(self, x: float, y: float, colour: str) -> None:
        self.shapes.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6" fill="{colour}"/>')

    def save(self, name: str) -> None:
        size = f'width="{WIDTH}" height="{self.height:g}" viewBox="0 0 {WIDTH} {self.height:g}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="title told"'
        card = f'<rect width="{WIDTH}" height="{self.height:g}" rx="10" fill="#ffffff"/>'
        words = f'<title id="title">{escape(self.title)}</title>\n<desc id="told">{escape(self.told)}</desc>'
        lines = [f'{head} font-family="Helvetica, Arial, sans-serif">', words, card, *self.shapes, "</svg>"]
        (FOLDER / f"{name}.svg").write_text("\n".join(lines) + "\n", "utf-8")


def beginnings(orders: Iterable[Sequence[str]]) -> int:
    """Option lines of a prefix tree: distinct beginnings of the orders."""
    return len({tuple(order[:k]) for order in orders for k in range(1, len(order) + 1)})


def tree() -> None:
    """The prefix tree of one question with three options."""
    orders = sorted(permutations(("grass", "blood", "sky"), 3))
    kept, plain, four = beginnings(orders), 3 * len(orders), list(permutations("abcd"))
    told = (
        f"One question with three options in all {len(orders)} orders. The question is computed once, each first option"
        f" once: {kept} option lines in place of {plain}. Four options: {beginnings(four)} in place of {4 * len(four)}."
    )
    drawing = Drawing(300, "Prompts that begin alike share what they have in common", told)
    drawing.text(24, 30, "Six prompts, one tree: what they begin with in common is computed once", size=15)
    tops = [56 + 34 * i for i in range(len(orders))]
    columns = [24, 204, 344, 484, 624]

    def node(column: int, rows: Sequence[int], words: str, fill: str) -> float:
        middle = sum(tops[i] for i in rows) / len(rows) + 12
        drawing.box(columns[column], middle - 12, 158 if not column else 110 if column < 4 else 72, 24, fill, BLUE)
        drawing.text(columns[column] + 8, middle + 4.5, words)
        return middle

    root = node(0, range(len(orders)), "Question: Which is red?", FAINT)
    for prefix in sorted({order[:1] for order in orders}):
        under = [i for i, order in enumerate(orders) if order[:1] == prefix]
        y = node(1, under, f"A. {prefix[0]}", FAINT)
        drawing.line(182, root, columns[1], y, BLUE)
        for i in under:
            second, third = node(2, [i], f"B. {orders[i][1]}", FAINT), node(3, [i], f"C. {orders[i][2]}", FAINT)
            drawing.line(columns[1] + 110, y, columns[2], second, BLUE)
            drawing.line(columns[2] + 110, second, columns[3], third, BLUE)
            drawing.line(columns[3] + 110, third, columns[4], node(4, [i], "Answer:", "#ffffff"), BLUE)
    drawing.text(24, 284, f"{kept} option lines instead of {plain}, the question once instead of {len(orders)} times. "
                 f"With four options: {beginnings(four)} instead of {4 * len(four)}.", colour=MUTED)  # fmt: skip
    drawing.save("tree")


def intervals(samples: int = 40, sizes: Sequence[int] = (60, 400)) -> None:
    """Intervals of many samples from one pool, whose own value is the truth."""
    key, model = "expected_accuracy", "A when unsure"
    kind = SETS["4 options"]
    pool = kind.scores(MODELS[model])
    number = numbers(pool)[key]
    rng = np.random.default_rng(0)
    drawing = Drawing(340, "What a 95 % interval promises", "")
    drawing.text(
        24, 30, f"The same audit on {samples} samples of questions: how often the interval holds the truth", size=15
    )
    said = []
    for column, n in enumerate(sizes):
        left, right = 36 + 348 * column, 340 + 348 * column
        found = []
        for _ in range(samples):
            rows = kind.draw(n, rng)
            found.append(interval(Bootstrap(n, ["" for _ in rows]), number, rows))
        missed = [one for one in found if not one.low <= number.truth <= one.high]
        low, high = 0.4, 0.8

        def x(value: float, left: float = left, right: float = right, low: float = low, high: float = high) -> float:
            return left + (value - low) / (high - low) * (right - left)

        drawing.line(x(number.truth), 62, x(number.truth), 62 + 5.6 * samples, INK, 1)
        for i, one in enumerate(found):
            colour, y = ORANGE if one in missed else BLUE, 68 + 5.6 * i
            drawing.line(x(max(one.low, low)), y, x(min(one.high, high)), y, colour)
            drawing.dot(x(one.value), y, colour)
        for tick in (0.4, 0.5, 0.6, 0.7, 0.8):
            drawing.text(x(tick), 304, f"{tick:.1f}", size=11, colour=MUTED, at="middle")
        words = f"N = {n}: {samples - len(missed)} of {samples} hold the truth, {number.truth:.3f}"
        drawing.text(left, 52, words, colour=MUTED)
        drawing.text((left + right) / 2, 324, "accuracy, mean over orders", size=11, colour=MUTED, at="middle")
        said.append(words)
    drawing.told = f"Planted model, {model}; the truth is that of a pool of 20,000 questions. {'; '.join(said)}."
    drawing.save("intervals")


def preference(names: Sequence[str] = ("prefers-a", "prefers-last")) -> None:
    """Effects of label and position of two reference models."""
    import unslant

    drawing = Drawing(100 + 160 * len(names), "Label or position", "")
    drawing.text(24, 30, "What an option gains by its label, and by its place on the page", size=15)
    told = []
    for row, name in enumerate(names):
        found = unslant.audit(name, "embedded").metrics.preference
        top = 70 + 160 * row
        drawing.text(24, top, f"{name}: {found.phrase}", size=14)
        for column, (title, slots) in enumerate((("label", found.labels), ("position", found.positions))):
            shown = [
                slot for slot in slots if slot.label in "ABCD" or slot.label in ("first", "second", "third", "fourth")
            ]
            shown += [slot for slot in slots if slot.label == "last"]
            bars(drawing, 36 + 350 * column, top + 20, title, [(slot.label, slot.effect) for slot in shown])
            most = max(shown, key=lambda slot: slot.effect.value)
            told.append(f"{name}, {title}: {most.label} {most.effect.value:+.2f} nats, the most")
    drawing.text(24, drawing.height - 16, "Effects in nats with 95 % intervals, on questions the model is unsure of; "
                 "0: no pull.", size=12, colour=MUTED)  # fmt: skip
    drawing.told = f"{'; '.join(told)}."
    drawing.save("preference")


def bars(drawing: Drawing, left: float, top: float, title: str, marks: Sequence[tuple[str, Estimate]]) -> None:
    """Effects as bars from a middle line, -1 to 2.5 nats."""
    height, low, high = 96.0, -1.0, 2.5

    def y(value: float) -> float:
        return top + height * (high - min(max(value, low), high)) / (high - low)

    drawing.text(left, top, f"by {title}", size=12, colour=MUTED)
    drawing.line(left, y(0), left + 310, y(0), MUTED, 1)
    for i, (name, effect) in enumerate(marks):
        x = left + 10 + 60 * i
        up = effect.value > 0
        drawing.box(
            x, min(y(0), y(effect.value)), 34, abs(y(effect.value) - y(0)), ORANGE if effect.value > 1 else BLUE
        )
        drawing.line(x + 17, y(effect.low), x + 17, y(effect.high), INK, 1.5)
        drawing.text(x + 17, top + height + 16, name, size=12, at="middle")
        drawing.text(
            x + 17, y(effect.high if up else 0) - 5, f"{effect.value:+.2f}", size=11, colour=MUTED, at="middle"
        )


def main() -> None:
    tree()
    intervals()
    preference()


if __name__ == "__main__":
    main()

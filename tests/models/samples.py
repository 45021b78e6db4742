"""Questions and prompts that the model tests score, written as the library writes them."""

from __future__ import annotations

from functools import cache

from unslant.presentations import orders_for, present
from unslant.prompts import Cloze, Counterfactual, Prompt, Writer
from unslant.prompts.templates import load_template
from unslant.questions.question import Question

_TEXTS = (
    ("An object that lets no light through is", "transparent|opaque", 1),
    ("Which gas do plants take from the air to make sugar?", "oxygen|nitrogen|carbon dioxide", 2),
    (
        "A boy sees his shadow grow longer in the afternoon. What makes it longer?",
        "The Sun is lower in the sky.|The Sun is nearer to the Earth.|The boy grows.|The Earth turns more slowly.",
        0,
    ),
    ("Which of these numbers is prime?", "9|15|21|23|33", 3),
    (
        "Where would you most likely find a kettle?",
        "kitchen|kitchen cupboard|garden|kitchen garden|bus stop|library|swimming pool|garden shed",
        0,
    ),
    ("Which planet is the largest?", "Mars|Venus|Earth|Jupiter|Saturn|Uranus|Neptune|Mercury|Pluto|Ceres", 3),
)
QUESTIONS = tuple(
    Question(f"q{i}", stem, tuple(options.split("|")), frozenset({answer}))
    for i, (stem, options, answer) in enumerate(_TEXTS)
)
"""Of 2, 3, 4, 5, 8 and 10 options."""

SHOTS = tuple(
    Question(f"s{i}", stem, options, frozenset({0}))
    for i, (stem, options) in enumerate(
        [("Ice is", ("frozen water", "a metal")), ("How many legs has a spider?", ("8", "6", "4"))]
    )
)


@cache
def sample_prompts() -> tuple[Prompt, ...]:
    """About 180 prompts: all 24 orders of four options and a few of the others, cloze and counterfactual, some after
    a preamble of worked examples, labels of several tokens among them."""
    writer = Writer(load_template("plain"))
    cloze, counterfactual = Cloze(writer), Counterfactual(writer)
    shots = [present(shot, kind="shot") for shot in SHOTS]
    prompts: list[Prompt] = []
    for question in QUESTIONS:
        for order in orders_for(question, "24" if len(question.options) == 4 else "6"):
            shown = present(question, order)
            prompts += cloze.prompts(shown.with_shots(shots))
            if order[0] < 2 and len(question.options) < 6:
                prompts += counterfactual.prompts(shown)
        words = [f"choice number {letter}" for letter in "ABCDEFGHIJ"[: len(question.options)]]
        prompts += cloze.prompts(present(question, labels=words))
    return tuple(prompts)


def preamble_prompts() -> list[Prompt]:
    """The prompts of :func:`sample_prompts` that begin with the worked examples."""
    return [prompt for prompt in sample_prompts() if "spider" in prompt.text]

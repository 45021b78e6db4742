"""Questions about the colour of things, and a rule that knows every second one and takes A otherwise."""

from __future__ import annotations

import re

from tests.serving import Fault, completion

OPTIONS = ("red", "green", "blue", "grey")

STEMS = [f"Which colour is thing {i}?" for i in range(24)]


def page(text):
    """The question of a prompt, and label -> option."""
    stem = next(stem for stem in STEMS if stem in text)
    return STEMS.index(stem), dict(re.findall(r"^([A-Z])\) (.*)$", text, re.MULTILINE))


def prefers_a(text):
    """The label that a model says which knows every second thing, and takes A otherwise."""
    thing, shown = page(text)
    return next(label for label, option in shown.items() if option == OPTIONS[thing % 4]) if thing % 2 else "A"


def answering(request):
    return Fault(body=completion(f"ANSWER: {prefers_a(request['messages'][-1]['content'])}"))

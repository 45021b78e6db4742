"""Hypothesis strategies for questions."""

from __future__ import annotations

from hypothesis import strategies as st

from unslant.questions.question import Question

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@st.composite
def questions(
    draw: st.DrawFn,
    *,
    min_options: int = 2,
    max_options: int = 6,
    pins: bool = True,
    distinct: bool = False,
    answers: int | None = None,
) -> Question:
    """Any question: empty and repeated option texts included unless ``distinct``; ``answers`` fixes their number."""
    n = draw(st.integers(min_options, max_options))
    options = draw(st.lists(TEXTS, min_size=n, max_size=n, unique=distinct))
    indices = st.integers(0, n - 1)
    right = draw(st.frozensets(indices, min_size=answers or 0, max_size=n if answers is None else answers))
    pinned = tuple(sorted(draw(st.sets(indices)))) if pins else ()
    return Question(draw(TEXTS), draw(TEXTS), tuple(options), right, context=draw(TEXTS), pinned=pinned)

"""Thinking is cut, mark-up undone, answer fields are marked, and a reply of any length is read in bounded time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unslant.presentations import ALPHABETS
from unslant.replies import extract_labels, extract_verdict
from unslant.replies.text import LIMIT, clean, without_thinking

OPTIONS = ("Lisbon", "Paris", "All of the above", "None")


def test_thinking_is_cut(subtests: pytest.Subtests) -> None:
    for reply, said in (
        ("<think>A?</think>B", "B"),
        ("<thinking>\nA?\n</thinking>\n\nB", "B"),
        ("A or C ...\n</think>\nB", "B"),
        ("B<think>A?", "B"),
        ("<think>A?", ""),
        ("<think>A <think>nested</think> C</think>B", "B"),
        ("[THINK]A?[/THINK]B", "B"),
        ("◁think▷A?◁/think▷B", "B"),
        ("<|think|>A?<|/think|>B", "B"),
        ("<|channel|>analysis<|message|>A?<|end|><|start|>assistant<|channel|>final<|message|>B", "B"),
        ("analysisMaybe A.assistantfinalB", "B"),
        ("I think that B", "I think that B"),
    ):
        with subtests.test(reply=reply, said=said):
            assert without_thinking(reply).strip() == said


def test_markup_is_undone(subtests: pytest.Subtests) -> None:
    for reply, text in (
        ("**B.** *Paris*", "B. Paris"),
        ("### Answer\n\n`B`", "Answer:\n\nB"),
        ("| A | no |\n|---|---|\n| B | yes |", "A: no\n\nB: yes"),
        ("- [x] B\n- [ ] A", "B (correct)\nA (incorrect)"),
        ("✅ B\n❌ A", "B (correct)\nA (incorrect)"),
        ("~~A~~ B", "B"),
        ("$\\boxed{\\text{B}}$", "⟦B⟧"),
        ("$\\frac{1}{2} \\times 3$", "1/2 × 3"),
        ('{"answer": ["A", "B"], "why": "x"}', "⟦A, B⟧\nwhy: x"),
        ('{"answer": null}', "⟦null⟧"),
        ('Sure: {"answer": "B", "why": "cut of', "Sure: {\n⟦B, ...⟧"),
        ("<answer>\nB\n</answer>", "⟦\nB\n⟧"),
        ("Ｂ．", "B."),
        ("B<|im_end|>\n<|im_start|>user\nA?", "B"),
        ("3*4 = 12 and y_2", "3*4 = 12 and y_2"),
    ):
        with subtests.test(reply=reply, text=text):
            assert "\n".join(line.strip() for line in clean(reply).split("\n")) == text


PIECES = (
    *(
        "A) ",
        "A, B, C and ",
        "(((",
        "1 2 3 ",
        "none of the ",
        "is not ",
        "the answer is ",
        "if A then ",
        "A or B ",
        "✅",
        "﷽",
    ),
    *(
        "\\boxed{",
        '{"answer": ',
        "<think>",
        "</think>",
        "| A | B |\n",
        "A\n",
        "ABCD ",
        "the second option ",
        "Lisbon, ",
    ),
)


@pytest.mark.thorough
@pytest.mark.parametrize("piece", PIECES)
def test_what_is_read_of_a_long_reply_is_bounded(piece):
    """Reading is linear in what is left after cleaning; this was 13 s for a quarter of a million "A) "."""
    reply = (piece * 250_000)[:250_000]
    assert len(clean(reply)) <= LIMIT + 2
    assert extract_labels(reply, "ABCD", OPTIONS).status in ("ok", "unparsed", "refused")
    assert extract_verdict(reply).status in ("ok", "unparsed", "refused")


FRAGMENTS = st.lists(
    st.one_of(
        st.sampled_from([*PIECES, *OPTIONS, "A", "b)", "⟦", "⟧", "\U000f0000", "\n", ". ", "not ", "?"]),
        st.text(max_size=8),
    ),
    max_size=40,
)


@given(
    FRAGMENTS.map("".join), st.sampled_from(sorted(ALPHABETS)), st.lists(st.text(max_size=12), min_size=2, max_size=8)
)
def test_no_reply_to_any_options_raises(reply, alphabet, options):
    labels = ALPHABETS[alphabet][: len(options)]
    extracted = extract_labels(reply, labels, options)
    assert extracted.status in ("ok", "unparsed", "refused")
    assert extracted.labels <= set(labels)
    assert extracted.status == "ok" or not extracted.labels
    assert extract_verdict(reply).status in ("ok", "unparsed", "refused")

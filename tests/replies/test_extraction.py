"""Any answer, in any supported format, parses back; and what real models wrote is read as others read it."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unslant.presentations import ALPHABETS, NONE, present
from unslant.questions import Question
from unslant.replies import chosen_contents, extract, extract_labels, extract_verdict

ALPHABET = {**ALPHABETS, "0": tuple(str(i) for i in range(26))}
LISTS = [
    lambda ls: ", ".join(ls),
    lambda ls: ",".join(ls),
    lambda ls: " and ".join(ls),
    lambda ls: " ".join(ls),
    lambda ls: "/".join(ls),
    lambda ls: " / ".join(ls),
    lambda ls: "; ".join(ls),
    lambda ls: " & ".join(ls),
    lambda ls: " + ".join(ls),
    lambda ls: ", ".join(ls[:-1]) + (" and " if len(ls) > 1 else "") + ls[-1],
    lambda ls: ", ".join(ls[:-1]) + (", and " if len(ls) > 1 else "") + ls[-1],
    lambda ls: ", ".join(f"({x})" for x in ls),
    lambda ls: " and ".join(f"[{x}]" for x in ls),
    lambda ls: f"({', '.join(ls)})",
    lambda ls: f"[{', '.join(ls)}]",
    lambda ls: "{" + ",".join(ls) + "}",
    lambda ls: ", ".join(f"**{x}**" for x in ls),
    lambda ls: ", ".join(f'"{x}"' for x in ls),
    lambda ls: ", ".join(f"option {x}" for x in ls),
    lambda ls: "Options " + ", ".join(ls),
]
FRAMES = [
    "{}",
    "{}.",
    " {}\n",
    "Answer: {}",
    "Answer: {}.",
    "**Answer:** {}",
    "The answer is {}.",
    "The answer is: {}",
    "The correct answer is {}.",
    "The correct options are {}.",
    "Final answer: {}",
    "So the answer is {}, as the passage says.",
    "I would choose {}.",
    "Let me think about the lamp first.\n\n{}",
    "Let me think about the lamp first.\n\nAnswer: {}",
    "First I thought the answer is nothing at all.\nThe final answer is {}.",
    "$\\boxed{{{}}}$",
    '{{"answer": "{}"}}',
    "<think>The answer is perhaps another.</think>\n{}",
    "The correct answers:\n{}",
]
NONES = [
    "none",
    "None",
    "None of the above",
    "none of the options",
    "none of these options",
    "None of the options is correct",
    "no correct answer",
    "No correct option",
    "no option is correct",
]
VERDICT_WORDS = {"True": ["True", "true", "TRUE"], "False": ["False", "false"], "Unknown": ["Unknown", "Uncertain"]}


@st.composite
def rendered(draw):
    """Labels, the chosen ones among them, and a reply that says so."""
    labels = ALPHABET[draw(st.sampled_from(sorted(ALPHABET)))][: draw(st.integers(2, 12))]
    chosen = draw(st.lists(st.sampled_from(labels), unique=True, max_size=len(labels)))
    body = draw(st.sampled_from(LISTS))(chosen) if chosen else draw(st.sampled_from(NONES))
    return labels, frozenset(chosen), draw(st.sampled_from(FRAMES)).format(body)


def expected(said, chosen, labels):
    """Status and labels: "A / B / C" of three options or more, in their order, is the question again and no answer, and
    "2/3" a fraction."""
    again = len(labels) > 2 and any(joined in said for joined in ("/".join(labels), " / ".join(labels)))
    again |= len(chosen) > 1 and "/" in said.replace("</", "") and any(map(str.isdigit, labels))
    return ("unparsed", frozenset()) if again else ("ok", frozenset(chosen))


@given(rendered())
def test_any_answer_in_any_format_parses_back(case):
    labels, chosen, reply = case
    extracted = extract_labels(reply, labels)
    assert (extracted.status, extracted.labels) == expected(reply, chosen, labels), (reply, extracted)


@pytest.mark.thorough
@pytest.mark.parametrize("count", [2_000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_thousands_of_generated_replies(count):
    rng = random.Random(42)
    wrong = []
    for _ in range(count):
        labels = ALPHABET[rng.choice(sorted(ALPHABET))][: rng.randint(2, 10)]
        chosen = rng.sample(labels, rng.randint(0, len(labels)))
        body = rng.choice(LISTS)(chosen) if chosen else rng.choice(NONES)
        reply = rng.choice(FRAMES).format(body)
        extracted = extract_labels(reply, labels)
        if (extracted.status, extracted.labels) != expected(body, chosen, labels):
            wrong.append((reply, chosen, extracted))
    assert not wrong, (len(wrong), wrong[:5])


@given(st.sampled_from(sorted(VERDICT_WORDS)), st.integers(0, 2), st.sampled_from(FRAMES))
def test_any_verdict_parses_back(verdict, i, frame):
    words = VERDICT_WORDS[verdict]
    reply = frame.format(words[i % len(words)])
    assert extract_verdict(reply).labels == {verdict}, reply


@given(st.text(max_size=300), st.sampled_from(sorted(ALPHABET)), st.integers(2, 10))
def test_no_text_breaks_it(reply, alphabet, n):
    labels = ALPHABET[alphabet][:n]
    extracted = extract_labels(reply, labels)
    assert extracted.status in ("ok", "unparsed", "refused")
    assert extracted.labels <= set(labels)
    assert extracted.status == "ok" or not extracted.labels
    assert extract_verdict(reply).status in ("ok", "unparsed", "refused")


@pytest.mark.thorough
def test_long_replies_are_read_in_time():
    """Patterns that backtrack without bound would run into the suite's time limit here."""
    for text in ("A, B, C and " * 9000, "(((" * 9000, "1 2 3 " * 9000, "none of the " * 9000, "is not " * 9000):
        assert extract_labels("word " + text, ("A", "B", "1", "2")).status == "unparsed" or "none" in text
        assert extract_verdict(text).labels <= {"True", "False", "Unknown"}


UNITS = (
    "A) ",
    "**",
    "A. text ",
    "wait ",
    "The correct answer is A. ",
    "A和",
    "_",
    '{"a":',
    "so ",
    "if A ",
    "A isn't ",
    "\n",
)


@pytest.mark.thorough
@pytest.mark.slow
@given(st.lists(st.sampled_from(UNITS), min_size=1, max_size=3))
@settings(max_examples=5)
def test_long_replies_of_any_pattern_are_read_in_time(units):
    """As above: time must not grow faster than the reply."""
    unit = "".join(units)
    reply = (unit * 100_000)[:100_000]
    assert extract_labels(reply, "ABCD", ("text", "other text", "5", "7")).status in ("ok", "unparsed", "refused")
    assert extract_verdict(reply).status in ("ok", "unparsed", "refused")


def test_contents_of_an_answer():
    question = Question("q", "Which?", ("x", "y", "z"), frozenset({0}))
    shown = present(question, (2, 0, 1))
    assert chosen_contents(extract("A and C", shown), shown) == {2, 1}
    assert chosen_contents(extract("none", shown), shown) == {NONE}
    assert chosen_contents(extract("who knows", shown), shown) is None


# Recorded by the authors of MMLU-Pro with their own patterns (first "answer is (X)", else "Answer: X", else the last
# capital). Where ours differs we looked at each:
DIFFERENT = {
    # "The answer is (B), but the correct answer is (D) if ...": two answers, so left to a judge.
    "Mistral-7B-Instruct-v0.2/1824": None,
    # "The answer is (H) and (J).": two options were chosen; the recording keeps the first.
    "Mistral-7B-Instruct-v0.2/9811": "HJ",
    # "The correct answer is (A). ... The answer is (B).": the last one counts with us.
    "Meta-Llama-3-8B/6317": "B",
}
FOUND_MORE = {
    # "The answer is (none of the above).": an answer, though no label.
    "Mistral-7B-Instruct-v0.2/3325": "",
    # "... is not listed, but the closest one is (X)": an answer, given with doubt.
    "Phi-3-mini-4k-instruct/344": "I",
    "Phi-3-mini-4k-instruct/8489": "G",
    "Phi-3-mini-4k-instruct/12008": "C",
    # "Answer: (A)" at the end of the reply.
    "Phi-3-mini-4k-instruct/705": "A",
    # "The statement that best represents the criticism ... is (D)."
    "Phi-3-mini-4k-instruct/4941": "D",
    # "The answer is not in the options": labelled so by reading.
    "Phi-3-mini-4k-instruct/11768": "",
    # "Therefore, the best experiment would be to remove ants and measure subsequent leaf damage (I)."
    "Mistral-7B-Instruct-v0.2/3215": "I",
    # "Therefore, judgment should be for (D) Neither, because ...", cut off.
    "Phi-3-mini-4k-instruct/1558": "D",
}


@pytest.fixture(scope="module")
def recorded(shared_data):
    path = shared_data / "recorded" / "mmlu_pro_generations.jsonl"
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.mark.thorough
def test_real_replies_are_read_as_recorded(recorded):
    different, more, parsed = {}, {}, 0
    for row in recorded:
        extracted = extract_labels(row["generated_text"], ALPHABETS["A"][: row["n_options"]])
        ours = "".join(sorted(extracted.labels)) if extracted.status == "ok" else None
        parsed += row["pred"] is not None
        if row["pred"] is not None and ours != row["pred"]:
            different[row["id"]] = ours
        if row["pred"] is None and ours is not None:
            more[row["id"]] = ours
    assert parsed == 211
    assert 1 - len(different) / parsed >= 0.97
    assert different == DIFFERENT
    assert more == FOUND_MORE

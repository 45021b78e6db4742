"""Any option of any question file, alone, with others or none, in any format, reads back."""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from unslant.presentations import ALPHABETS
from unslant.replies import extract_labels

Labels = Sequence[str]
Texts = Sequence[str]


def joined(items: Sequence[str], last: str = " and ") -> str:
    return last.join([", ".join(items[:-1]), items[-1]]) if len(items) > 1 else items[0]


def marked(labels: Labels, texts: Texts, form: str) -> list[str]:
    return [form.format(label, text) for label, text in zip(labels, texts, strict=True)]


FORMATS: dict[str, Callable[[Labels, Texts], str]] = {
    "labels": lambda ls, ts: ", ".join(ls),
    "sentence": lambda ls, ts: (
        f"The correct answer{'s are' if len(ls) > 1 else ' is'} {joined(marked(ls, ts, '{}. {}'))}"
        + ("" if ts[-1][-1:] in (".", "?", "!") else ".")
    ),
    "field": lambda ls, ts: "Answer: " + ", ".join(marked(ls, ts, "{}. {}")),
    "text in brackets": lambda ls, ts: "Answer: " + ", ".join(marked(ls, ts, "{} ({})")),
    "bold lines": lambda ls, ts: "\n\n".join(marked(ls, ts, "**{}. {}**")),
    "lines": lambda ls, ts: "The answer:\n" + "\n".join(marked(ls, ts, "({}) {}")),
    "json": lambda ls, ts: json.dumps({"answer": list(ls) if len(ls) > 1 else ls[0]}),
    "json with texts": lambda ls, ts: json.dumps({"answer": marked(ls, ts, "{}) {}"), "confidence": 0.9}),
    "boxed": lambda ls, ts: f"So the answer is $\\boxed{{{', '.join(ls)}}}$.",
    "bullets": lambda ls, ts: "The correct options are:\n\n" + "\n".join(marked(ls, ts, "- **{})** {}")),
    "choice": lambda ls, ts: f"I would choose {joined(marked(ls, ts, 'option {} ({})'))}.",
    "predicate": lambda ls, ts: f"{joined(marked(ls, ts, '({})'))} {'are' if len(ls) > 1 else 'is'} correct.",
    "final answer": lambda ls, ts: (
        "Let me think about the lamp first.\n\n**Final answer:** " + "; ".join(marked(ls, ts, "**{}**: {}"))
    ),
}
NONE = (
    "None of the options is correct.",
    "None of the above.",
    "none",
    "Answer: None",
    "The correct answer is none of these.",
    "No option is correct.",
    '{"answer": []}',
    "\\boxed{\\text{None}}",
    "**None of the options.**",
    "There is no correct answer.",
    "I would choose none of them.",
    "None of these options is right.",
)
SAYS_NONE = re.compile(r"\s*(?:\d+[.)]\s*)?(?:none|neither)\b", re.IGNORECASE)
LISTS_NUMBERS = re.compile(r"[\d, ]+")
AWKWARD = re.compile(
    r"\s*(?:none|not|no|false|true|both|all|neither|nothing)\b|.*[\[{|#*_$]|\s*[-+.\d]|\W*\Z", re.I | re.S
)


def questions(folder: Path) -> list[tuple[str, list[str]]]:
    found = []
    for path in sorted([*folder.glob("*.jsonl"), *folder.glob("*.jsonl.gz")]):
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()
        records = map(json.loads, filter(None, text.split("\n")))
        found += [(r["id"], r["options"]) for r in records if 2 <= len(r.get("options") or ()) <= 26]
    return found


def misread(asked: Sequence[tuple[str, list[str]]], per_question: int, seed: int) -> Iterator[tuple[object, ...]]:
    """Replies on ``asked`` that are not read as the answer they were made of."""
    rng = random.Random(seed)
    for question, options in asked:
        style = rng.choice("AAAa1I")
        if style == "1" and all(LISTS_NUMBERS.fullmatch(option) for option in options):
            style = "A"  # "3. 1,2, 4. 1,4" can be read in several ways
        labels = ALPHABETS[style][: len(options)]
        for name in rng.sample(sorted(FORMATS), per_question):
            for k in {1, rng.randint(2, max(2, len(options) - 1))} - {len(options)}:
                chosen = sorted(rng.sample(range(len(options)), k))
                reply = FORMATS[name]([labels[i] for i in chosen], [options[i] for i in chosen])
                extracted = extract_labels(reply, labels, options)
                if extracted.status != "ok" or extracted.labels != {labels[i] for i in chosen}:
                    yield question, name, labels, options, reply, extracted
        if not any(SAYS_NONE.match(option) for option in options):
            reply = rng.choice(NONE)
            extracted = extract_labels(reply, labels, options)
            if extracted.status != "ok" or extracted.labels:
                yield question, "none", labels, options, reply, extracted


@pytest.mark.thorough
def test_a_sample_of_all_questions_and_of_awkward_ones(shared_data):
    every = questions(shared_data)
    assert len(every) > 26_000
    awkward = [(name, options) for name, options in every if any(map(AWKWARD.match, options))]
    rng = random.Random(5)
    asked = [*rng.sample(every, 700), *rng.sample(awkward, 1_000)]
    wrong = list(misread(asked, 3, seed=5))
    assert not wrong, (len(wrong), wrong[:5])


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_every_question(shared_data):
    wrong = list(misread(questions(shared_data), 6, seed=6))
    assert not wrong, (len(wrong), wrong[:5])


@pytest.mark.parametrize("reply", ["None of the above.", "None of these options is right.", "Answer: none"])
def test_an_option_that_says_none_is_what_none_chooses(reply):
    assert extract_labels(reply, "ABCD", ("Lisbon", "Paris", "Oslo", "None of the above")).labels == {"D"}

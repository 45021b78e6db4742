"""Replies that are built to take long: the tokens and cues the reader knows, repeated, nested, left open and mixed.

Every reply is read at three lengths by a process of its own, which is ended if it hangs. It fails where reading raises,
takes longer than :data:`LONGEST`, or takes longer for more text than a linear reader would.
"""

from __future__ import annotations

import multiprocessing
import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection

from benchmarks.reliability import Options, Row
from unslant.replies import extract_labels, extract_preference, extract_verdict, stated_confidence
from unslant.replies.grammar import languages
from unslant.replies.judge import read_judgement

SIZES = (1_000, 30_000, 1_000_000)
"""Characters of a reply."""
LONGEST = 1.5
"""Seconds of processor time that reading one reply may take."""
_HANG = 120
"""Seconds after which the process that reads is ended."""

TOKENS = {
    "turn tokens": "<|im_end|> <|im_start|> <|eot_id|> </s> <s> <end_of_turn> [INST] [/INST] <|a <| "
    "<|channel|>final<|message|> assistantfinal \n\nQuestion: \nUser:",
    "thinking tags": "<think> </think> <thinking> <|think|> <|/think|> [THINK] [/THINK] ◁think▷ ◁/think▷ <think",
    "fields": '<answer> </answer> <answer>A</answer> <answer </answer><answer> <final> <verdict> ⟦ ⟧ ⟦A',
    "JSON": '{ } {} [ ] {"answer": {"answer":"A" {"a":{ {"answer":["A", "answer":[ "answer": ,"a": " null }, {"a":[[',
    "LaTeX": r"\boxed{ \boxed{A \boxed \fbox{{ \text{ \frac{ \frac{1}{ \begin{ \end{a} \\ \[ \( $ $$ \left \_",
    "markdown": "``` ```json ` * ** *** _ __ ~~ # > - | |A| |-|-| - [x]  - [ ]  ✅ ❌ 👉 ✅A",
    "labels": "A a B A, A/ A. A) (A) (A A: AB ABCD A和 A是 1 1. 1,000 12345 I II. i) 选项A Ａ ①",
    "punctuation": "( ) [ ] \" ' : ; , .. . ! ? … → -> = ≈ + & / • 。 ， 、 ：",
    "numbers": "9 9.9 0. 80% 8/10 9.9/ 99999 confidence( confidence:9 confidence",
}  # fmt: skip
SPACES = (" ", "\n", "\t", "\r", "\r\n", "\x0b", "\x0c", "\x1c", "\x85", "\u00a0", "\u2028", "\u3000", "\u200b", " \n")
CHARACTERS = (
    "\ud800", "\udfff", "\ud83d", "\U000f0000", "\U000f1000", "\U00100000", "\x00", "\ufe0f", "\u0301\u0323",
    "\u0323\u0301", "e\u0301", "\u0f71\u0f72\u0f74", "\ufdfa", "\u1100", "\u1161\u11a8", "\u202e", "ß", "ﬁ", "½", "İ",
)  # fmt: skip
LABELS, TEXTS = "ABCD", ("Lisbon", "hold a lamp near the floor", "None of the above", "both of them")
_MANY = [chr(65 + i) for i in range(26)]
_LONG = [f"{'very long option text ' * 400}{i}" for i in range(26)]
_ALIKE = ["a " * 2_000 + "b", "a " * 2_000 + "c", "a a", "the a"]
READERS: dict[str, Callable[[str], object]] = {
    "choice": lambda reply: extract_labels(reply, LABELS, TEXTS),
    "long options": lambda reply: extract_labels(reply, _MANY, _LONG),
    "options alike": lambda reply: extract_labels(reply, LABELS, _ALIKE),
    "numbers": lambda reply: extract_labels(reply, "1234", ("5", "1", "1,000", "I")),
    "verdict": extract_verdict,
    "confidence": stated_confidence,
    "judge": lambda reply: read_judgement(reply, LABELS),
    "preference": extract_preference,
}


def cues() -> list[str]:
    """Every phrase of every language, without the signs of regular expressions."""
    phrases = (str(language[name]).split() for language in languages().values() for name in language)
    written = (re.sub(r"\\[bwsdAZnW]|\{[^}]*\}|\(\?[=!<:P-]*|[\\()?*+\[\]^$|]", " ", p) for ps in phrases for p in ps)
    return sorted({" ".join(phrase.replace("_", " ").split()) + " " for phrase in written if phrase.strip()})


Unit = tuple[str, ...]
"""Parts of a reply, in the order in which they are repeated."""


def _repeated(unit: Unit, size: int) -> str:
    text = "".join(unit)
    return (text * (size // len(text) + 1))[:size]


def _nested(unit: Unit, size: int) -> str:
    """All of the first part, then all of the others: opened and closed, or never closed."""
    half = size // 2
    return _repeated(unit[:1], half) + _repeated(unit[1:] or ("A",), half)


def _mixed(unit: Unit, size: int) -> str:
    """The parts in random order."""
    rng = random.Random(repr(unit))
    return "".join(rng.choices(unit, k=size))[:size]


def _around(unit: Unit, size: int) -> str:
    """A first sentence, a flood and an answer."""
    return f"Let me see {_repeated(unit, size)}\n\nThe answer is (B)."


SHAPES = {"repeated": _repeated, "nested": _nested, "mixed": _mixed, "around": _around}


def units(name: str, rng: random.Random, count: int) -> Iterator[Unit]:
    """Units of one class: every token alone, then random ones together with tokens and cues of any class."""
    tokens = {**{key: value.split(" ") for key, value in TOKENS.items()}, "spaces": SPACES, "characters": CHARACTERS}
    phrases = cues()
    own = [token for token in (phrases if name == "cues" else tokens[name]) if token]
    everything = [token for group in tokens.values() for token in group if token]
    yield from ((token,) for token in rng.sample(own, min(len(own), count)))
    for _ in range(count):
        others = (rng.choice(phrases if rng.random() < 0.4 else everything) for _ in range(rng.randint(1, 3)))
        yield (rng.choice(own), *others)


CLASSES = (*TOKENS, "spaces", "characters", "cues")


def _read(replies: Connection, results: Connection) -> None:
    """Read what comes in, and send back for every reply how long it took and what it raised."""
    while (case := replies.recv()) is not None:
        reader, shape, unit, size = case
        reply = SHAPES[shape](unit, size)
        started, error = time.process_time(), ""
        try:
            READERS[reader](reply)
        except Exception as raised:
            error = f"{type(raised).__name__} {str(raised)[:80]!r}"
        results.send((time.process_time() - started, error))


class _Worker:
    """A process that reads, started anew where it hung."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        replies, self._replies = context.Pipe(duplex=False)
        self._results, results = context.Pipe(duplex=False)
        self._process = context.Process(target=_read, args=(replies, results), daemon=True)
        self._process.start()
        replies.close()  # so that a process that dies ends its pipe
        results.close()

    def read(self, case: tuple[str, str, Unit, int]) -> tuple[float, str] | None:
        """Seconds and error; None if it hangs or died."""
        self._replies.send(case)
        if not self._results.poll(_HANG):
            return None
        try:
            return self._results.recv()
        except EOFError:
            return None

    def end(self) -> None:
        self._process.kill()
        self._process.join()


def attack(name: str, options: Options) -> Row:
    """Read hostile replies of one class."""
    row, rng = Row("long_replies", name), random.Random(f"{options.seed} {name}")
    longest, worker = 0.0, _Worker()
    for unit in units(name, rng, max(2, options.cases // 500)):
        reader, shape = rng.choice(list(READERS)), rng.choice(list(SHAPES)) if len(unit) > 1 else "repeated"
        seconds: list[float] = []
        for size in SIZES:
            row.attempts += 1
            case, read = f"{reader}, {shape} {unit!a}, {size:,}", worker.read((reader, shape, unit, size))
            if read is None:
                worker.end()
                worker = _Worker()
                row.fail(f"{case}: hangs")
                break
            seconds.append(read[0])
            longest = max(longest, read[0])
            growth = seconds[-1] / max(0.02, *seconds[:-1]) if len(seconds) > 1 else 0
            if read[1]:
                row.fail(f"{case}: {read[1]}")
            elif read[0] > LONGEST:
                row.fail(f"{case}: {read[0]:.1f} s")
            elif growth > 3 * size / SIZES[len(seconds) - 2]:
                row.fail(f"{case}: {growth:.0f} times as long as {SIZES[len(seconds) - 2]:,} characters")
    worker.end()
    row.note = f"{len(SIZES)} lengths up to 1 MB; the longest took {longest:.1f} s"
    return row


def rows(options: Options, classes: Sequence[str] = CLASSES) -> Iterator[Row]:
    """One row a class of hostile replies."""
    for name in classes:
        if options.wants("long_replies", name):
            yield attack(name, options)

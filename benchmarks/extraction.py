"""How well readers of replies agree with a careful person: ``python -m benchmarks.extraction REPLIES...``.

Every reader reads the same labelled replies (JSON lines with ``options``, ``labels_shown``, ``kind``, ``reply``,
``status``, ``labels`` and, if two people could differ, ``doubtful``, which leaves a reply out). The readers are
unslant's and those that evaluation frameworks score multiple-choice questions with:

- lm-eval: the filters of the installed package, with MMLU-Pro's pattern, and option texts where that finds nothing;
- inspect: ``parse_answers`` of the installed package, as its multiple-choice solver calls it;
- OpenCompass: the patterns of its documented ``first_option_postprocess``, written for this comparison;
- simple-evals: the one pattern that its README and MMLU prompt describe, written for this comparison.

The last two are not their code. None but unslant's can say that no option is right, and most know no verdicts: such
replies are counted all the same, for whoever answers in these ways is scored by these rules.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from unslant.replies import VERDICTS, extract_labels, extract_verdict

Row = Mapping[str, Any]
Reader = Callable[[Sequence[Row]], list[frozenset[str] | None]]
"""The labels that each reply chooses; None where it finds no answer."""
OUTCOMES = ("equal", "another", "phantom", "unread")
"""As a person reads it; another answer than a person reads; an answer where a person finds none; no answer."""
_MMLU_PRO = r"answer is \(?([ABCDEFGHIJ])\)?"
_SIMPLE_EVALS = r"(?i)answer[ \t]*:[ \t]*\$?([A-{last}])\$?"
_OPENCOMPASS = (
    r"答案是?\s*[:：]?\s*([{letters}])",
    r"(?:应该|故|应)?选(?:择|项)?\s*[:：]?\s*([{letters}])",
    r"(?i:answer is:?\s*(?:option\s*)?\(?)([{letters}])",
    r"(?i:(?:best|correct) (?:answer|option)(?: is)?:?\s*\(?)([{letters}])",
    r"(?i:answer:?\s*\(?)([{letters}])\b",
    r"(?m)^\s*\(?([{letters}])(?:[.,:)]|\s*$)",
    r"\b([{letters}])\b",
    r"([{letters}])",
)
"""In the order in which they are tried: answers stated in Chinese and English, a line under a letter, any letter."""


def of_letters(read: Callable[[Sequence[Row]], Sequence[str | frozenset[str]]]) -> Reader:
    """A reader of letters A, B, ..., which every framework shows, as one of the labels that a row shows."""

    def labels(rows: Sequence[Row]) -> list[frozenset[str] | None]:
        found: list[frozenset[str] | None] = []
        for row, said in zip(rows, read(rows), strict=True):
            shown, places = row["labels_shown"], [ord(letter) - ord("A") for letter in said]
            found.append(frozenset(shown[place] for place in places if 0 <= place < len(shown)) or None)
        return found

    return labels


def one_by_one(read: Callable[[Row], Any]) -> Callable[[Sequence[Row]], list[Any]]:
    """A reader of many replies from one of a single reply."""
    return lambda rows: [read(row) for row in rows]


def letters(row: Row) -> str:
    """The letters of a row's options."""
    return "".join(chr(ord("A") + place) for place in range(len(row["labels_shown"])))


def unslant(row: Row) -> frozenset[str] | None:
    """The reader of this project."""
    if row["kind"] == "judging" and tuple(row["labels_shown"]) == VERDICTS:
        found = extract_verdict(row["reply"])
    else:
        found = extract_labels(row["reply"], row["labels_shown"], row["options"])
    return found.labels if found.status == "ok" else None


def lm_eval(rows: Sequence[Row]) -> list[str]:
    """MMLU-Pro's filter, else the filter that also looks for texts of options, as lm-eval offers for "exact_match"."""
    from lm_eval.filters.extraction import MultiChoiceRegexFilter, RegexFilter

    replies = [[row["reply"]] for row in rows]
    docs = [{"choices": list(row["options"])} for row in rows]
    first = RegexFilter(regex_pattern=_MMLU_PRO, group_select=0).apply(replies, docs)
    more = MultiChoiceRegexFilter(regex_pattern=r"(\([A-Z]\))", group_select=0, ignore_case=True).apply(replies, docs)
    return [
        one[0] if one[0] in letters(row) else other[0].strip("()")[:1]
        for row, one, other in zip(rows, first, more, strict=True)
    ]


def inspect_ai(row: Row) -> frozenset[str]:
    """The solver's own parser; first for one answer, then for several."""
    from inspect_ai.solver._multiple_choice import parse_answers

    state: Any = SimpleNamespace(output=SimpleNamespace(completion=row["reply"]), choices=row["labels_shown"])
    return frozenset(parse_answers(state, False) or parse_answers(state, True))


def opencompass(row: Row) -> Sequence[str]:
    """The first pattern that is met anywhere."""
    for pattern in _OPENCOMPASS:
        if match := re.search(pattern.replace("{letters}", letters(row)), row["reply"]):
            return match[1]
    return ""


def simple_evals(row: Row) -> Sequence[str]:
    """ "Answer: B" anywhere; the first one counts."""
    match = re.search(_SIMPLE_EVALS.replace("{last}", letters(row)[-1]), row["reply"])
    return match[1].upper() if match else ""


PEERS: Mapping[str, tuple[str, Callable[[Sequence[Row]], Any]]] = {
    "lm-eval": ("lm_eval", lm_eval),
    "inspect": ("inspect_ai", one_by_one(inspect_ai)),
    "OpenCompass (patterns)": ("", one_by_one(opencompass)),
    "simple-evals (pattern)": ("", one_by_one(simple_evals)),
}
"""Name, the package that it needs, and how it reads."""


def readers() -> dict[str, Reader]:
    """Those whose packages are installed."""
    there = {name: of_letters(read) for name, (needs, read) in PEERS.items() if not needs or _installed(needs)}
    return {"unslant": one_by_one(unslant), **there}


def _installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def outcome(row: Row, read: frozenset[str] | None) -> str:
    """One of :data:`OUTCOMES`."""
    right = frozenset(row["labels"]) if row["status"] in ("ok", "none") else None
    if read == right:
        return "equal"
    return "phantom" if right is None else "unread" if read is None else "another"


def compared(rows: Sequence[Row]) -> dict[tuple[str, str], Counter[str]]:
    """(kind of replies, reader) -> how many replies have each outcome; doubtful ones are left out."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    clear = [row for row in rows if not row.get("doubtful")]
    for name, read in readers().items():
        for row, found in zip(clear, read(clear), strict=True):
            kind = row.get("stratum") or f"{row['file']}, {row['kind']}"
            counts.setdefault((kind, name), Counter())[outcome(row, found)] += 1
    return counts


def table(counts: Mapping[tuple[str, str], Counter[str]]) -> str:
    """Markdown, a row a kind and reader, with a total at the end."""
    total: dict[str, Counter[str]] = {}
    for (_, name), one in counts.items():
        total.setdefault(name, Counter()).update(one)
    kinds = dict.fromkeys(kind for kind, _ in counts)
    every = {**{(kind, name): counts[kind, name] for kind in kinds for name in total if (kind, name) in counts}}
    lines = ["| replies | reader | N | equal | another | phantom | unread |", "|---|---|---|---|---|---|---|"]
    for (kind, name), one in {**every, **{("all", name): one for name, one in total.items()}}.items():
        shares = " | ".join(f"{one[outcome]:,}" for outcome in OUTCOMES)
        lines.append(f"| {kind} | {name} | {one.total():,} | {shares} |")
    return "\n".join(lines)


def load(files: Sequence[Path]) -> list[Row]:
    """The replies of all files, each with the name of its own."""
    return [
        {**json.loads(line), "file": file.stem}
        for file in files
        for line in file.read_text("utf-8").splitlines()
        if line
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, and write it with ``--out``."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("files", nargs="+", type=Path, help="labelled replies, JSON lines")
    parser.add_argument("--out", type=Path, help="write the table to this file")
    given = parser.parse_args(arguments)
    written = table(compared(load(given.files)))
    print(written)
    if given.out:
        given.out.write_text(f"# Readers of replies\n\n{written}\n", "utf-8")


if __name__ == "__main__":
    main()

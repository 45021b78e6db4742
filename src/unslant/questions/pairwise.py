"""Pairs of responses with a verdict, as judges are given them: a question with two options.

Which response stands first is the order of the options, so a judge's preference for the first answer is measured as
any other selection bias.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from unslant.questions.answer_kinds import parse_list
from unslant.questions.fields import text_of, usual_name
from unslant.questions.records import Record

STEM = "Which response to this prompt is better?"
_PROMPTS = ("prompt", "question", "instruction", "query", "input")
_COLUMN = re.compile(
    r"(?:(?:model|assistant)_?(?P<before>[ab12])_)?(?P<what>response|answer|output|completion|conversation|generation"
    r"|candidate|reply|text|assistant)(?:_?(?:model_)?(?P<after>[ab012]))?"
)
_WINNERS = "winner preference preferred preferred_response better better_response human_preference".split()
_VERDICTS = ("verdict", "judgment", "judgement", "label")
"""Names of a winner's column only where the others can hold nothing but responses."""
_ONE_HOT = ("winner_model_a", "winner_model_b", "winner_tie")
_TIES = {"both", "bothbad", "both bad", "draw", "equal", "same", "neither", "none", "c", "no preference"}
_KEPT = ("subject", "category", "topic", "source")
_SIDE = re.compile(r"(?:(?:model|response|assistant|answer|output|completion|option)[ _-]?)?([ab012])")


def pairs_of(records: Sequence[Record]) -> tuple[list[Record], str] | None:
    """The records as questions of two options, and a note for the report; None where they are no pairs.

    Known by their columns: two responses (``response_a`` and ``response_b``, ``answer_1`` and ``answer_2``,
    ``conversation_a`` and ``conversation_b``, ...) with a ``winner`` or one-hot ``winner_model_a``, ``winner_model_b``
    and ``winner_tie``; or ``chosen`` and ``rejected``. The prompt becomes the context. A winner is ``a``, ``model_a``,
    ``[[A]]``, the model's own name where ``model_a`` has it, an index, or a tie: then both responses are right.
    """
    first = next((record.data for record in records if not record.problem), {})
    names = {usual_name(column): column for column in first}
    sides, surely = _sides(names)
    spoken = (*_WINNERS, *(_VERDICTS if surely else ()))
    winner = next((names[name] for name in spoken if name in names), None)
    if sides is None and {"chosen", "rejected"} <= names.keys() and not {"options", "choices"} & names.keys():
        sides, winner = (names["chosen"], names["rejected"]), ""
    if sides is None or (winner is None and not set(_ONE_HOT[:2]) <= names.keys()):
        return None
    prompt = next((names[name] for name in _PROMPTS if name in names), "")
    ids = next((names[name] for name in ("id", "question_id") if name in names), "")
    seen: Counter[str] = Counter()
    found, ties = [], 0
    for record in records:
        data = record.data
        shared, options = _texts(data, sides)
        answer = "A" if winner == "" else _winner(data, names, sides, winner)
        ties += answer == ["A", "B"]
        made: dict[str, Any] = {
            "question": STEM,
            "context": _text(data.get(prompt)) or shared,
            "options": options,
            "answer": answer,
            "labels": ["A", "B"],
            "pinned": [],
            **{name: data[names[name]] for name in _KEPT if name in names and names[name] in data},
        }
        if data.get(ids) is not None:
            own = str(data[ids])
            seen[own] += 1
            made["id"] = own if seen[own] == 1 else f"{own}#{seen[own]}"
        found.append(Record(record.place, {} if record.problem else made, record.problem))
    note = f"pairs of responses: {', '.join(sides)} are the options, and the prompt is the context"
    return found, note + (f"; ties, where both are right: {ties:,}" if ties else "")


def _sides(names: Mapping[str, str]) -> tuple[tuple[str, str] | None, bool]:
    """The columns of the two responses, and whether their name leaves no doubt that they are such."""
    found: dict[tuple[str, ...], dict[str, str]] = {}
    for name, column in names.items():
        match = _COLUMN.fullmatch(name)
        if match and bool(match["before"]) != bool(match["after"]):
            stem = match["what"], str(match.start("before"))
            found.setdefault(stem, {})[match["before"] or match["after"]] = column
    for (what, _), keys in found.items():
        for first, second in ("ab", "12", "01"):
            if {first, second} == keys.keys():
                return (keys[first], keys[second]), what not in ("answer", "candidate", "text", "assistant")
    return None, False


def _winner(data: Mapping[str, Any], names: Mapping[str, str], sides: tuple[str, str], column: str | None) -> Any:
    """``A`` or ``B``, where it names a column by its end, both for a tie, or the value: an index, or refused."""
    if column is None:
        hot = [bool(data.get(names[name])) for name in _ONE_HOT if name in names]
        return ["A", "B"] if hot[2:] == [True] else [label for label, on in zip("AB", hot, strict=False) if on] or None
    value = data.get(column)
    if not isinstance(value, str):
        return value
    said = value.strip(" []().").casefold()
    if said.startswith("tie") or said in _TIES:
        return ["A", "B"]
    models = [str(data.get(names.get(name, ""), "")).casefold() for name in ("model_a", "model_b")]
    if said and models.count(said) == 1:
        return "AB"[models.index(said)]
    match = _SIDE.fullmatch(said)
    keys = [_key(side) for side in sides]
    return "AB"[keys.index(match[1])] if match and match[1] in keys else value


def _key(side: str) -> str:
    match = _COLUMN.fullmatch(usual_name(side))
    return (match["before"] or match["after"] or "") if match else ""


def _texts(data: Mapping[str, Any], sides: tuple[str, str]) -> tuple[str, list[str | None]]:
    """What two conversations share at their beginning, and how each goes on; other responses as texts."""
    values = [data.get(side) for side in sides]
    talks = [_messages(value) for value in values]
    if isinstance(data.get("turn"), int):  # of MT-bench: what was judged ends there
        talks = [talk[: 2 * data["turn"]] for talk in talks]
    if not all(talks):
        return "", [_text(value) if value is not None else None for value in values]
    a, b = talks
    n = next((i for i, pair in enumerate(zip(a, b, strict=False)) if pair[0] != pair[1]), min(len(a), len(b)))
    return _spoken(a[:n]), [_spoken(talk[n:]) for talk in talks]


def _messages(value: Any) -> list[Mapping[str, Any]]:
    listed = parse_list(value) if isinstance(value, str) else value
    if isinstance(listed, list) and listed and all(isinstance(item, Mapping) and "content" in item for item in listed):
        return listed
    return []


def _spoken(messages: Sequence[Mapping[str, Any]]) -> str:
    if len(messages) == 1:
        return text_of(messages[0]["content"])
    return "\n\n".join(f"{message.get('role', 'user')}: {text_of(message['content'])}" for message in messages)


def _text(value: Any) -> str:
    """A text; several turns, given as a list or as the text of one, stand under each other."""
    if messages := _messages(value):
        return _spoken(messages)
    listed = parse_list(value) if isinstance(value, str) else None
    return text_of(listed if listed and all(isinstance(item, str) for item in listed) else value)

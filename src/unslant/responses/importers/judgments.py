"""Judgements: which of two answers (or of several) a judge prefers, by ``unslant study judge``.

=====================  =========================================================================================
JudgeBench             ``response_A``, ``response_B``, ``label``, ``judgments``: two, the second of the swapped order
MT-Bench, pairs        ``model_1``, ``model_2``, ``g1_winner``, ``g2_winner`` (swapped, but named by its model)
MT-Bench, Arena votes  ``model_a``, ``model_b``, ``winner``, ``judge``; which answer came first is not logged
AlpacaEval             ``output_1``, ``output_2``, ``generator_1``, ``generator_2``, ``preference`` (1 to 2, 1.5 is a
                       tie); the order shown was random, and is not logged
a table                :data:`FIELDS`, under names of your own by ``--fields FIELD=COLUMN``
=====================  =========================================================================================

Each format becomes :class:`_Judgement` s; options are the answers, as numbered in the file.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unslant.errors import InputError
from unslant.presentations.labels import ALPHABETS
from unslant.questions.formats import whole_records
from unslant.questions.records import Record
from unslant.replies import extract_preference
from unslant.responses.importers.logged import Log, Logged, understood
from unslant.responses.importers.registry import Head, Importer

FIELDS: dict[str, tuple[str, ...]] = {
    "id": ("id", "pair_id", "question_id"),
    "question": ("question", "prompt", "instruction", "input"),
    "response_A": ("response_A", "response_a", "answer_a", "answer_A"),
    "response_B": ("response_B", "response_b", "answer_b", "answer_B"),
    "system_A": ("system_A", "system_a", "model_a"),
    "system_B": ("system_B", "system_b", "model_b"),
    "responses": ("responses", "answers"),
    "chosen": ("chosen",),
    "rejected": ("rejected",),
    "systems": ("systems", "models"),
    "label": ("label", "gold"),
    "decision": ("decision", "verdict", "winner", "preference"),
    "scores": ("scores",),
    "order": ("order", "swapped"),
    "reply": ("reply", "judgment", "judgement", "explanation"),
    "judge": ("judge", "judge_model", "annotator"),
    "subject": ("subject", "source", "category", "subset"),
    "repeat": ("repeat", "sample", "trial"),
}
"""Field -> names it is found under. ``decision`` names a place as shown (A is the answer shown first), ``label`` an
answer of the file; ``order`` is AB or BA, whether the pair was swapped, or the index of the answer at each place."""
_NO_DECISION = {"", "none", "null", "error", "n/a", "nan", "invalid"}
_MADE_OF = r"\bStart of Assistant {0}'s [^\]>|\n]{{1,40}}[\]>|]+\n(.*?)\n[\[<|]+The End of Assistant {0}'s"
_ASKED = re.compile(r"(?:\[User Question\]|<\|User Prompt\|>)\n(.*?)\n\n[\[<|]+The Start of", re.DOTALL)
_PERSON = re.compile(r"(?:expert|author|annotator|(?:arena_)?user)_\d+")


@dataclass(frozen=True, kw_only=True)
class _Judgement:
    """One verdict of one judge.

    Attributes:
        answers: texts, as numbered in the file; systems: who wrote them.
        right: of the label; empty without one.
        preferred: answers that the verdict prefers, several in a tie; None without a decision.
        order: answer at each place; None where that is not logged.
    """

    judge: str
    id: str
    question: str
    answers: tuple[str, ...]
    preferred: frozenset[int] | None
    systems: tuple[str, ...] = ()
    right: frozenset[int] = frozenset()
    order: tuple[int, ...] | None = None
    reply: str | None = None
    subject: str = ""
    repeat: int = 0
    failed: bool = False

    def page(self, place: str) -> Logged:
        order = self.order or tuple(range(len(self.answers)))
        chosen = None if self.preferred is None else frozenset(order.index(i) for i in self.preferred)
        return Logged(
            id=self.id,
            labels=ALPHABETS["A"][: len(order)],
            answers=frozenset(order.index(i) for i in self.right),
            place=place,
            question=self.question,
            options=tuple(self.answers[i] for i in order),
            authors=tuple(self.systems[i] for i in order) if self.systems else (),
            order=order,
            chosen=chosen,
            status="error" if self.failed else "unparsed" if chosen is None else "ok",
            reply=self.reply,
            subject=self.subject,
            repeat=self.repeat,
            placed=self.order is not None,
        )


def _sides(value: object, place: str, field: str) -> frozenset[int] | None:
    """The places that a verdict names: the first, the second, or both in a tie; None without a decision."""
    text = str("" if value is None else value).strip()
    if text.lower() in _NO_DECISION:
        return None
    if text.lower().startswith("tie"):  # "tie (bothbad)"
        return frozenset({0, 1})
    read = extract_preference(text)
    if read.status != "ok":
        raise InputError.at(place, f"{text!r} is not a verdict: A, B or tie (also A>B, B>A, A=B)", field=field)
    return frozenset("AB".index(label) for label in read.labels)


def _judge_bench(record: Record, fields: Mapping[str, str]) -> Iterator[_Judgement]:
    data, place = record.data, record.place
    judgments = data["judgments"]
    if not 1 <= len(judgments) <= 2:
        raise InputError.at(place, f"holds {len(judgments)}; one, or two (the second swapped)", field="judgments")
    known = [one["judgment"] for one in judgments if one]
    for order, one in zip(((0, 1), (1, 0)), judgments, strict=False):
        said = one["judgment"] if one else {}
        shown = _sides(one["decision"], place, "decision") if one else None
        judge = str(next((found["judge_model"] for found in [said, *known] if found.get("judge_model")), ""))
        scores = said.get("scores", "")
        yield _Judgement(
            judge=judge or str(data.get("judge_name", "judge")),
            id=str(data["pair_id"]),
            question=data["question"],
            answers=(data["response_A"], data["response_B"]),
            right=_sides(data.get("label"), place, "label") or frozenset(),
            preferred=None if shown is None else frozenset(order[k] for k in shown),
            order=order,
            reply=said.get("response") or (scores if isinstance(scores, str) else json.dumps(scores)),
            subject=str(data.get("source") or ""),
            failed=not one,
        )


def _mt_bench(record: Record, fields: Mapping[str, str]) -> Iterator[_Judgement]:
    data = record.data
    judge = data["judge"]
    prompt = str(data.get("g1_user_prompt") or "")
    texts = [re.search(_MADE_OF.format(letter), prompt, re.DOTALL) for letter in "AB"]
    asked = _ASKED.search(prompt)
    for order, game in (((0, 1), "g1"), ((1, 0), "g2")):
        winner = str(data[f"{game}_winner"]).replace("model_", "")
        yield _Judgement(
            judge=str(judge[0] if isinstance(judge, list) else judge),
            id="/".join(str(data[key]) for key in ("question_id", "turn", "model_1", "model_2") if key in data),
            question=asked[1] if asked else f"question {data['question_id']}",
            answers=tuple(found[1] if found else "" for found in texts),
            systems=(str(data["model_1"]), str(data["model_2"])),
            preferred=_sides(winner, record.place, f"{game}_winner"),
            order=order,
            reply=data.get(f"{game}_judgment"),
            subject=str(data.get("category") or ""),
        )


def _said(conversation: object) -> str:
    """What an assistant said in a conversation."""
    turns = conversation if isinstance(conversation, list) else []
    return "\n\n".join(str(turn["content"]) for turn in turns if turn.get("role") == "assistant")


def _votes(record: Record, fields: Mapping[str, str]) -> Iterator[_Judgement]:
    data = record.data
    judge = data.get("judge") or data.get("judge_id") or "judge"
    name = str(judge[0] if isinstance(judge, list) else judge)
    talk = data.get("conversation_a")
    asked = next((turn["content"] for turn in talk if turn.get("role") == "user"), "") if isinstance(talk, list) else ""
    yield _Judgement(
        judge="people" if _PERSON.fullmatch(name) else name,
        id="/".join(str(data[key]) for key in ("question_id", "turn", "model_a", "model_b") if key in data),
        question=str(asked or data["question_id"]),
        answers=(_said(talk), _said(data.get("conversation_b"))),
        systems=(str(data["model_a"]), str(data["model_b"])),
        preferred=_sides(str(data["winner"]).replace("model_", ""), record.place, "winner"),
    )


def _alpaca(record: Record, fields: Mapping[str, str]) -> Iterator[_Judgement]:
    data, value = record.data, record.data["preference"]
    if value is not None and not (isinstance(value, int | float) and (value == 0 or 1 <= value <= 2)):
        raise InputError.at(record.place, f"{value!r} is not a number from 1 to 2, or null", field="preference")
    systems = str(data["generator_1"]), str(data["generator_2"])
    digest = hashlib.sha256(str(data["instruction"]).encode()).hexdigest()[:12]
    preferred = None if value is None else {0, 1} if value in (0, 1.5) else {0} if value < 1.5 else {1}
    yield _Judgement(
        judge=str(data.get("annotator") or "judge"),
        id="/".join([digest, *systems]),
        question=data["instruction"],
        answers=(data["output_1"], data["output_2"]),
        systems=systems,
        preferred=None if preferred is None else frozenset(preferred),
        subject=str(data.get("dataset") or ""),
    )


@dataclass(frozen=True)
class Answers:
    """The answers that a record compares: their texts, who wrote them, and those that its label prefers."""

    id: str
    question: str
    texts: tuple[str, ...]
    systems: tuple[str, ...]
    right: frozenset[int]
    subject: str


def named_fields(record: Record, fields: Mapping[str, str]) -> dict[str, tuple[str, Any]]:
    """Field -> its column and value, of those that a record has; see :data:`FIELDS`."""
    found = {
        key: next((name for name in ([fields[key]] if key in fields else usual) if name in record.data), None)
        for key, usual in FIELDS.items()
    }
    return {key: (name, record.data[name]) for key, name in found.items() if name}


def answers_of(record: Record, fields: Mapping[str, str]) -> Answers:
    """What a record of a table compares: ``response_A`` and ``response_B``, ``chosen`` and ``rejected``, or a list.

    Raises:
        InputError: naming place and field.
    """
    row = {key: value for key, (_, value) in named_fields(record, fields).items()}
    if missing := next((key for key in ("question", *_needed(row)) if row.get(key) in (None, "")), None):
        raise InputError.at(record.place, f"is missing; name its column: --fields {missing}=COLUMN", field=missing)
    if "chosen" in row:
        sides = [one if isinstance(one, list) else [one] for one in (row["chosen"], row["rejected"])]
        texts, right = [*sides[0], *sides[1]], frozenset(range(len(sides[0])))
    else:
        texts = row["responses"] if "responses" in row else [row["response_A"], row["response_B"]]
        right = _places(row.get("label"), len(texts), record.place, "label") or frozenset()
    systems = row.get("systems") or [row[key] for key in ("system_A", "system_B") if row.get(key)]
    if not (isinstance(texts, list) and len(texts) > 1 and len(systems) in (0, len(texts))):
        raise InputError.at(record.place, f"{len(texts)} answers by {len(systems)} systems: give two answers or more")
    digest = hashlib.sha256("\x1f".join(map(str, [row["question"], *texts])).encode()).hexdigest()[:12]
    return Answers(
        str(row.get("id") or digest), str(row["question"]), tuple(map(str, texts)), tuple(map(str, systems)), right,
        str(row.get("subject") or ""),
    )  # fmt: skip


def _needed(row: Mapping[str, Any]) -> tuple[str, ...]:
    if "chosen" in row or "responses" in row:
        return ("chosen", "rejected") if "chosen" in row else ("responses",)
    return "response_A", "response_B"


def _table(record: Record, fields: Mapping[str, str]) -> Iterator[_Judgement]:
    answers, place = answers_of(record, fields), record.place
    named = named_fields(record, fields)
    row, n = {key: value for key, (_, value) in named.items()}, len(answers.texts)
    order = _order(row.get("order"), n, place)
    shown, reply = order or tuple(range(n)), row.get("reply")
    if row.get("scores") is not None:
        scores = [float(score) for score in row["scores"]]
        if len(scores) != n:
            raise InputError.at(place, f"holds {len(scores)} for {n} answers", field=named["scores"][0])
        preferred: frozenset[int] | None = frozenset(i for i in range(n) if scores[i] == max(scores))
    elif "decision" in row:
        at = _places(row["decision"], n, place, named["decision"][0])
        preferred = None if at is None else frozenset(shown[k] for k in at)
    else:
        letters = ALPHABETS["A"][:n]
        read = extract_preference(str(reply or ""), letters)
        preferred = frozenset(shown[letters.index(label)] for label in read.labels) if read.status == "ok" else None
    yield _Judgement(
        judge=str(row.get("judge") or ""),
        id=answers.id,
        question=answers.question,
        answers=answers.texts,
        systems=answers.systems,
        right=answers.right,
        preferred=preferred,
        order=order,
        reply=None if reply is None else str(reply),
        subject=answers.subject,
        repeat=int(row.get("repeat") or 0),
        failed=reply is None and preferred is None and "decision" not in row,
    )


def _places(value: object, n: int, place: str, field: str) -> frozenset[int] | None:
    """Of two, a verdict; of more, labels (A, B, ...) or numbers from 0, one or a list."""
    if n == 2 and not isinstance(value, list):
        return _sides(value, place, field)
    given = value if isinstance(value, list) else [] if value is None else [value]
    found = [ALPHABETS["A"].index(str(one)) if str(one) in ALPHABETS["A"] else one for one in given]
    if not all(type(one) is int and 0 <= one < n for one in found):
        raise InputError.at(
            place, f"{value!r}: give labels, A to {ALPHABETS['A'][n - 1]}, or 0 to {n - 1}", field=field
        )
    return frozenset(one for one in found if isinstance(one, int)) or None


def _order(value: object, n: int, place: str) -> tuple[int, ...] | None:
    """The answer at each place; None where it is not given."""
    if value in (None, ""):
        return None
    if n == 2 and str(value).lower() in _ORDERS:
        return _ORDERS[str(value).lower()]
    if isinstance(value, list) and sorted(map(str, value)) == sorted(map(str, range(n))):
        return tuple(int(one) for one in value)
    allowed = f"{'AB, BA, swapped (true or false), or ' * (n == 2)}the index of the answer at each place, from 0"
    raise InputError.at(place, f"{value!r} is not an order: {allowed}", field="order")


_ORDERS = {"ab": (0, 1), "ba": (1, 0), "false": (0, 1), "true": (1, 0), "0": (0, 1), "1": (1, 0)}
_Reader = Callable[[Record, Mapping[str, str]], Iterator[_Judgement]]
_FORMATS: tuple[tuple[str, frozenset[str], _Reader], ...] = (
    ("JudgeBench", frozenset({"judgments", "response_A", "response_B"}), _judge_bench),
    ("MT-Bench", frozenset({"model_1", "model_2", "g1_winner", "g2_winner"}), _mt_bench),
    ("MT-Bench votes", frozenset({"model_a", "model_b", "winner", "question_id"}), _votes),
    ("AlpacaEval", frozenset({"output_1", "output_2", "generator_1", "generator_2", "preference"}), _alpaca),
)
_UNPLACED = "The log does not say which answer was shown first: nothing is said about places."


def _format(head: Head) -> tuple[str, _Reader] | None:
    names = head.names
    known = next(((name, read) for name, needed, read in _FORMATS if needed <= names and not head.fields), None)
    there = {key for key, usual in FIELDS.items() if names & {*usual, head.fields.get(key, "")}}
    answers = any(needed <= there for needed in ({"response_A", "response_B"}, {"chosen", "rejected"}, {"responses"}))
    own = answers and bool(there & {"decision", "reply", "scores"})
    return known or (("a table of judgements", _table) if own else None)


def read(head: Head) -> list[Log]:
    """One log for each judge of a file."""
    found = _format(head)
    assert found is not None
    name, reader = found
    if unknown := sorted(set(head.fields) - set(FIELDS)):
        raise InputError(f"unknown field {unknown[0]!r} for a table of judgements: use one of {', '.join(FIELDS)}")
    by_judge: dict[str, list[Logged]] = {}
    wanted: Sequence[str] = [*head.fields.values()]
    for record in whole_records(head.path, wanted):
        with understood(record.place, f"judgement ({name})"):
            for one in reader(record, head.fields):
                by_judge.setdefault(one.judge or head.path.stem, []).append(one.page(record.place))
    return [
        Log(
            judge, name, "verdicts", tuple(pages), head.path.name.split(".")[0], study="judge",
            notes=() if all(page.placed for page in pages) else (_UNPLACED,),
        )
        for judge, pages in by_judge.items()
    ]  # fmt: skip


IMPORTER = Importer(
    "judgements (JudgeBench, MT-Bench, AlpacaEval, or a table with response_A, response_B and decision or reply)",
    lambda head: _format(head) is not None,
    read,
)

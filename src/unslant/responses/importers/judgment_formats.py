"""Records of judges in the formats of known benchmarks, as rows of a table of judgements (``judgments.FIELDS``)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeGuard

from unslant.questions.records import BadRecord, Record, is_missing
from unslant.questions.reshape import pairs_of
from unslant.responses.importers.logged import as_score

JudgmentRow = Mapping[str, Any]
"""Values by field. Rows of known formats may have ``preferred``, the decision by answers of the file."""
_MADE_OF = r"\bStart of Assistant {0}'s [^\]>|\n]{{1,40}}[\]>|]+\n(.*?)\n[\[<|]+The End of Assistant {0}'s"
_USER_QUESTION = re.compile(
    r"(?:\[User Question\]|<\|User Prompt\|>|### User:)\n(.*?)\n\n(?:[\[<|]+The Start of|### Assistant)", re.DOTALL
)
_SAID = re.compile(r"### Assistant [AB]:\n(.*?)(?=\n\n### User:|\n?\Z)", re.DOTALL)
"""Of a conversation of several turns, without what the user asks."""
_PERSON = re.compile(r"(?:expert|author|annotator|(?:arena_)?user)_\d+")


def _judge_bench(data: JudgmentRow) -> Iterator[JudgmentRow]:
    judgments = data["judgments"]
    if not 1 <= len(judgments) <= 2:
        raise BadRecord("judgments", f"holds {len(judgments)}; one, or two (the second swapped)", "judgments")
    judge = next((one["judgment"]["judge_model"] for one in judgments if one and "judge_model" in one["judgment"]), "")
    about = {key: data.get(key) for key in ("question", "response_A", "response_B", "label")}
    about |= {"id": data["pair_id"], "subject": data.get("source"), "judge": judge}
    for order, one in zip(("AB", "BA"), judgments, strict=False):
        if not one:
            yield about | {"order": order}
            continue
        scores = one["judgment"].get("scores", "")
        reply = one["judgment"].get("response") or (scores if isinstance(scores, str) else json.dumps(scores))
        yield about | {"order": order, "decision": one["decision"], "reply": reply}


def _mt_bench(data: JudgmentRow) -> Iterator[JudgmentRow]:
    shown = _in_prompt(data.get("g1_user_prompt"), data["question_id"])
    for order, game in (("AB", "g1"), ("BA", "g2")):
        yield shown | {
            "judge": data["judge"][0] if isinstance(data["judge"], list) else data["judge"],  # with its prompt
            "id": joined_id(data, "question_id", "turn", "model_1", "model_2"),
            "systems": [data["model_1"], data["model_2"]],
            "preferred": str(data[f"{game}_winner"]).replace("model_", ""),
            "order": order,
            "reply": data.get(f"{game}_judgment"),
            "subject": data.get("category"),
        }


def _arena_hard(data: JudgmentRow) -> Iterator[JudgmentRow]:
    """Two games, null where the judge failed: the baseline's answer is first in the first one, last in the second."""
    games = data["games"]
    known: JudgmentRow = next(filter(None, games), {})
    prompt = known.get("user_prompt") or (known.get("prompt") or [{}])[-1].get("content")
    shown = _in_prompt(prompt, data.get("question_id", data.get("uid")))
    shown["responses"] = shown["responses"][:: 1 if games[0] else -1]
    for order, game in zip(("AB", "BA"), games, strict=False):
        said = game and game.get("judgment")
        yield shown | {
            "judge": data["judge"],
            "id": joined_id(data, "question_id", "uid", "model"),
            "systems": [data.get("baseline") or "baseline", data["model"]],
            "decision": game and game["score"],
            "order": order,
            "reply": said.get("answer") if isinstance(said, Mapping) else said,
            "subject": data.get("category"),
        }


def _in_prompt(prompt: object, number: object) -> dict[str, Any]:
    """The question and the two answers in a judge's prompt."""
    texts = [re.search(_MADE_OF.format(letter), str(prompt or ""), re.DOTALL) for letter in "AB"]
    question = _USER_QUESTION.search(str(prompt or ""))
    return {
        "question": question[1] if question else f"question {number}",
        "responses": ["\n\n".join(_SAID.findall(match[1])) or match[1] if match else "" for match in texts],
    }


def _votes(data: JudgmentRow) -> Iterator[JudgmentRow]:
    judge = str(data.get("judge") or data.get("judge_id") or "")
    # A vote on the first turn of MT-Bench has both turns in its conversations.
    messages = 2 * int(data["turn"]) if data.get("turn") else None
    talks = [talk[:messages] if isinstance(talk := data.get(f"conversation_{side}"), list) else [] for side in "ab"]
    asked = [turn for turn in talks[0] if turn["role"] == "user"] if is_conversation(talks[0]) else []
    key = "question_id" if "question_id" in data else "id"
    yield {
        "judge": "people" if _PERSON.fullmatch(judge) else judge,
        "id": joined_id(data, key, "turn", "model_a", "model_b"),
        "question": text_said(asked[:1], "user") or data[key],
        "responses": [text_said(talk or None) for talk in talks],
        "systems": [data["model_a"], data["model_b"]],
        "preferred": str(data["winner"]).replace("model_", ""),
    }


def _one_hot(data: JudgmentRow) -> Iterator[JudgmentRow]:
    """Votes as in Kaggle's competitions, whose prompts and answers are lists of turns written as text."""
    pairs, _ = pairs_of([Record("", data)]) or ([], "")
    for one in pairs:
        if one.problem:
            raise BadRecord("no verdict", one.problem, "winner_model_a")
        pair = one.data
        yield {
            "judge": "people",
            "id": data.get("id"),
            "question": pair["context"],
            "responses": pair["options"],
            "systems": [data[key] for key in ("model_a", "model_b") if data.get(key)],
            "preferred": "tie" if isinstance(pair["answer"], list) else pair["answer"],
        }


def _alpaca(data: JudgmentRow) -> Iterator[JudgmentRow]:
    value = None if is_missing(data["preference"]) else as_score(data["preference"])
    if value is not None and not (value == 0 or 1 <= value <= 2):
        raise BadRecord("no verdict", f"{value:g} is not a number from 1 to 2, or null", "preference")
    yield {
        "judge": data.get("annotator"),
        "question": _with_input(data),
        "responses": [data["output_1"], data["output_2"]],
        "systems": [data[key] for key in ("generator_1", "generator_2") if data.get(key)],
        "preferred": None if value is None else "tie" if value in (0, 1.5) else "AB"[value > 1.5],
        "subject": data.get("dataset"),
    }


def _llm_bar(data: JudgmentRow) -> Iterator[JudgmentRow]:
    about = {"question": data["input"], "responses": [data["output_1"], data["output_2"]], "label": data["label"]}
    verdicts = data["results"][-1]  # of a judge that decides again where its verdicts differ, the last
    if "swap = False" not in verdicts:
        raise BadRecord("no verdict", "rates each answer alone; give a table with both ratings as scores", "results")
    for order, swapped in (("AB", False), ("BA", True)):
        one = verdicts[f"swap = {swapped}"]
        yield about | {"order": order, "preferred": one["winner"], "reply": one["completion"][0]}


def _panda_lm(data: JudgmentRow) -> Iterator[JudgmentRow]:
    about = {"id": data["idx"], "question": _with_input(data), "responses": [data["response1"], data["response2"]]}
    for judge in ("annotator1", "annotator2", "annotator3"):
        preferred = "tie" if data[judge] == 0 else data[judge]
        yield about | {"systems": data["cmp_key"].split("_"), "judge": judge, "preferred": preferred}


def _reward_bench(data: JudgmentRow) -> Iterator[JudgmentRow]:
    if isinstance(data["rejected"], list) and not is_conversation(data["rejected"]):
        raise BadRecord("no verdict", "does not say which of several answers won; give scores, one for each", "results")
    preferred = {1: "A", 0.5: "tie", 0: "B"}[data["results"]]
    about = {key: data.get(key) for key in ("id", "chosen", "rejected")} | {"subject": data.get("subset")}
    yield about | {"judge": data.get("model"), "question": data["prompt"], "preferred": preferred}


def _with_input(data: JudgmentRow) -> str:
    """An instruction, with its input where it has one."""
    return "\n\n".join(str(data[key]) for key in ("instruction", "input") if not is_missing(data.get(key)))


def joined_id(data: JudgmentRow, *keys: str) -> str:
    return "/".join(str(data[key]) for key in keys if key in data)


def is_conversation(value: object) -> TypeGuard[list[Mapping[str, Any]]]:
    """Whether a value is a list of messages, with roles and contents."""
    return isinstance(value, list) and bool(value) and all(isinstance(one, Mapping) and "role" in one for one in value)


def text_said(value: object, role: str = "assistant") -> str:
    """A text, or what one side says in a conversation; empty for null."""
    if not is_conversation(value):
        return "" if value is None else str(value)
    contents = [turn["content"] for turn in value if turn["role"] == role]
    parts = [content if isinstance(content, list) else [{"text": content}] for content in contents]
    return "\n\n".join(str(part.get("text") or "") for one in parts for part in one)


FORMATS: dict[str, tuple[frozenset[str], Callable[[JudgmentRow], Iterator[JudgmentRow]]]] = {
    "JudgeBench": (frozenset({"judgments", "response_A", "response_B"}), _judge_bench),
    "MT-Bench": (frozenset({"model_1", "model_2", "g1_winner", "g2_winner"}), _mt_bench),
    "Arena-Hard": (frozenset({"model", "judge", "games"}), _arena_hard),
    "one-hot votes": (frozenset({"prompt", "response_a", "response_b", "winner_model_a", "winner_model_b"}), _one_hot),
    "MT-Bench votes": (frozenset({"model_a", "model_b", "winner"}), _votes),
    "AlpacaEval": (frozenset({"instruction", "output_1", "output_2", "preference"}), _alpaca),
    "LLMBar": (frozenset({"input", "output_1", "output_2", "label", "results"}), _llm_bar),
    "RewardBench": (frozenset({"prompt", "chosen", "rejected", "results"}), _reward_bench),
    "PandaLM": (frozenset({"idx", "cmp_key", "response1", "response2", "annotator1"}), _panda_lm),
}
"""Format -> the keys that its records have, and how one becomes rows."""

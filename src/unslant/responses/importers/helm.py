"""``scenario_state.json`` of HELM: joint multiple choice, answered in words. Label probabilities are not kept there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unslant.errors import InputError
from unslant.files import parse_json, read_text
from unslant.responses.importers.logged import Log, Logged, understood
from unslant.responses.importers.registry import Head


def recognises(head: Head) -> bool:
    return {"adapter_spec", "request_states"} <= head.names


def read(path: Path, fields: Mapping[str, str]) -> list[Log]:
    pages = []
    dropped: Counter[str] = Counter()
    state = parse_json(read_text(path))
    for i, request in enumerate(state["request_states"]):
        place = f"{path}, request {i + 1}"
        with understood(place, "request of HELM"):
            if "output_mapping" not in request:
                dropped["requests that score one option at a time"] += 1
            elif request.get("perturbation") or request["instance"].get("perturbation"):
                dropped["perturbed instances"] += 1
            else:
                pages.append(_page(request, place))
    if not pages:
        raise InputError.at(path, "holds no joint multiple-choice requests (multiple_choice_joint)")
    model = str(state["adapter_spec"].get("model", path.stem))
    return [Log(model, "HELM", "words", tuple(pages), path.parent.name, dropped)]


def _page(request: Mapping[str, Any], place: str) -> Logged:
    instance, mapping = request["instance"], request["output_mapping"]
    labels, options = tuple(mapping), tuple(map(str, mapping.values()))
    right = {one["output"]["text"] for one in instance["references"] if "correct" in one.get("tags", ())}
    completions = request.get("result", {}).get("completions", [])
    return Logged.of_reply(
        str(completions[0]["text"]) if completions and request["result"].get("success", True) else None,
        labels=labels,
        options=options,
        id=str(instance["id"]),
        answers=frozenset(k for k, text in enumerate(options) if text in right),
        place=place,
        question=str(instance["input"]["text"]),
    )

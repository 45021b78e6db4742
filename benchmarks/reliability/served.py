"""A server that becomes another one, or answers in a way that can be read twice: an error, never a number."""

from __future__ import annotations

import json
import math
import random
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.reliability import Options, Row
from tests.serving import Fault, FaultServer
from unslant import Question, audit
from unslant.errors import MostlyFailedError
from unslant.experiment import OutputOptions
from unslant.experiment.outputs import write_outputs
from unslant.models.answered import ModelChanged
from unslant.models.decisions import DecisionModel
from unslant.models.served import ServedModel
from unslant.models.stored import StoredModel
from unslant.prompts import Prompt
from unslant.store import Store

LABELS = (" A", " B", " C")


def rows(options: Options) -> Iterator[Row]:
    """Every class; its attempts grow with the number of cases."""
    for name, most, run in CLASSES:
        if options.wants("served", name):
            row = Row("served", name)
            for attempt in range(max(1, round(most * options.cases / 10_000))):
                row.attempts += 1
                with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    if wrong := run(random.Random(f"{options.seed}/{name}/{attempt}"), Path(folder)):
                        row.fail(f"attempt {attempt}: {wrong}")
            yield row


def prompts(number: int) -> list[Prompt]:
    return [Prompt(f"Question {i}?\nAnswer:", LABELS, group=f"q{i}") for i in range(number)]


def scores(model: str, text: str) -> dict[str, float]:
    rng = random.Random(model + text)
    weights = [rng.random() + 0.05 for _ in LABELS]
    return {label: math.log(0.9 * w / sum(weights)) for label, w in zip(LABELS, weights, strict=True)}


def reply(top: Any, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "logprobs": {"top_logprobs": [top]}}], **more}


def served(url: str, connections: int = 1) -> ServedModel:
    return ServedModel("m", url, server="unknown", wait=0.01, connections=connections)


def other_scores(rng: random.Random, folder: Path) -> str:
    """Another model from some reply on, of which the server says nothing."""
    asked = prompts(number := rng.randrange(16, 120))
    since, count = rng.randrange(6, number - 4), iter(range(1_000_000))

    def answer(request: dict[str, Any]) -> Fault:
        if "Question" not in request.get("prompt", ""):
            return Fault(404)
        return Fault(body=reply(scores("old" if next(count) < since else "new", request["prompt"])))

    with FaultServer(answer).running() as server, Store(folder / "s.sqlite3") as store:
        model = served(server.url, rng.choice((1, 8)))
        try:
            list((StoredModel(model, store) if rng.random() < 0.7 else model).score(asked))
        except ModelChanged:
            return ""
    return f"{number} prompts, another model after {since}: nothing said"


def other_name(rng: random.Random, folder: Path) -> str:
    """Replies that name another model from some one on; names left out, or always another than asked, are fine."""
    asked = prompts(number := rng.randrange(4, 60))
    since, count = rng.choice((number + 10**6, rng.randrange(2, number))), iter(range(10**7))
    names = rng.choice((["m-2026"], ["m-2026", None], ["m-2026", ""]))

    def answer(request: dict[str, Any]) -> Fault:
        if "Question" not in request.get("prompt", ""):
            return Fault(404)
        i = next(count)
        return Fault(
            body=reply(scores("old", request["prompt"]), model="other" if i >= since else names[i % len(names)])
        )

    with FaultServer(answer).running() as server, Store(folder / "s.sqlite3") as store:
        try:
            found = list(StoredModel(served(server.url), store).score(asked))
        except ModelChanged as change:
            return (
                "" if since < number and "'other'; before, 'm-2026'" in str(change) else f"an error too many: {change}"
            )
    return "" if since >= number and len(found) == number else f"named another after {since} of {number}: nothing said"


def _odd(rng: random.Random, top: dict[str, float]) -> str:
    """A reply that can be read in several ways, or in none."""
    label = rng.choice(LABELS)
    good, other = reply(top), reply(scores("other", label))
    first, second = good["choices"][0], other["choices"][0]
    text = json.dumps(good)
    odd: dict[str, Callable[[], Any]] = {
        "index": lambda: {"choices": [first | {"index": rng.choice((1, -1, "0", True, 0.5))}]},
        "no index": lambda: {"choices": [{k: v for k, v in one.items() if k != "index"} for one in (first, second)]},
        "same index": lambda: {"choices": [first, second]},
        "positions": lambda: {"choices": [{"index": 0, "logprobs": {"top_logprobs": [scores("x", "y"), top]}}]},
        "number": lambda: reply(top | {label: rng.choice((str(top[label]), None, True, [top[label]], {"v": -1}))}),
        "sentinel": lambda: reply(top | {label: rng.choice((-9999, -1e9, -1000, -float("inf"), -999.9))}),
        "not finite": lambda: reply(top | {label: rng.choice((float("nan"), float("inf")))}),
        "positive": lambda: reply(top | {label: rng.choice((0.01, 0.5, 100))}),
        "key twice": lambda: text.replace(f'"{label}":', f'"{label}": -0.5, "{label}":', 1),
        "choices twice": lambda: text[:-1] + f', "choices": {json.dumps(other["choices"])}}}',
        "named oddly": lambda: good | {"model": rng.choice((1, [], {"a": 1}))},
    }  # fmt: skip
    found = odd[rng.choice(list(odd))]()
    return found if isinstance(found, str) else json.dumps(found)


def odd_replies(rng: random.Random, folder: Path) -> str:
    """Among good replies some that can be read in several ways: these are errors, the others scores."""
    asked = prompts(12)
    bad = {asked[i].text: _odd(rng, scores("m", asked[i].text)) for i in rng.sample(range(1, 12), 3)}

    def answer(request: dict[str, Any]) -> Fault:
        text = request.get("prompt", "")
        return Fault(body=bad.get(text) or reply(scores("m", text))) if "Question" in text else Fault(404)

    with FaultServer(answer).running() as server:
        found = {one.index: one.logprobs for one in served(server.url).score(asked)}
    for i, prompt in enumerate(asked):
        if prompt.text in bad and found[i] is not None:
            return f"read as {found[i]}: {bad[prompt.text]}"
        if prompt.text not in bad and found[i] is None:
            return "a good reply was refused"
    return ""


def odd_decisions(rng: random.Random, folder: Path) -> str:
    """The same of a decision endpoint."""
    options = ("red", "blue", "green")
    probabilities = dict(zip(options, (0.6, 0.3, 0.1), strict=True))
    one = {"type": "choice", "choice": "red", "probabilities": probabilities}
    good = {"model": "m", "answers": {"q": one}, "usage": {"input_tokens": 1, "output_tokens": 0}}
    text = json.dumps(good)
    odd = rng.choice((
        text.replace('"red":', '"red": 0.1, "red":', 1),
        text.replace("0.6", rng.choice(('"0.6"', "true", "NaN", "-9999", "null", "Infinity"))),
        json.dumps(good | {"answers": {"q": one, "r": one}}),
        json.dumps(good | {"answers": {"r": one}}),
        json.dumps(good | {"model": rng.choice((3, None, []))}),
        json.dumps(good | {"usage": {"input_tokens": "1"}}),
    ))  # fmt: skip
    replies = iter([text, odd, text])
    prompt = Prompt("Which?", options, state="Answer.", group="q")
    with FaultServer(lambda _: Fault(body=next(replies))).running() as server:
        model = DecisionModel("m", f"{server.url}/systemone", connections=1)
        found = [next(iter(model.score([prompt]))).logprobs for _ in range(3)]
    return "" if [one is None for one in found] == [False, True, False] else f"{found}: {odd}"


def failing(rng: random.Random, folder: Path) -> str:
    """More than half of the scores refused: no verdict, and exit code 3."""
    asked = [Question(f"q{i}", f"Question {i}?", ("u", "v", "w"), frozenset({i % 3})) for i in range(4)]
    share, count = rng.choice((1.0, 1.0, 0.95, 0.8, 0.7)), iter(range(10**6))

    def answer(request: dict[str, Any]) -> Fault:
        if "Question" not in (text := request.get("prompt", "")):
            return Fault(404)
        bad = rng.random() < share if next(count) else share == 1.0
        return Fault(body=_odd(rng, scores("m", text)) if bad else reply(scores("m", text)))

    with FaultServer(answer).running() as server:
        result = audit(served(server.url), asked, orders="cyclic")
    failed = sum(row.status == "error" for row in result.responses.rows())
    try:
        write_outputs(result, OutputOptions(quiet=True, json=folder / "o.json"))
    except MostlyFailedError:
        said = "verdict" in result.headline and "chance" not in result.headline
        return "" if said and (folder / "o.json").exists() else f"headline: {result.headline}"
    return "" if 2 * failed <= len(result.responses) else f"{failed} of {len(result.responses)} failed: exit 0"


CLASSES: tuple[tuple[str, int, Callable[[random.Random, Path], str]], ...] = (
    ("another model during a run", 40, other_scores),
    ("another model named", 60, other_name),
    ("replies that can be read twice", 300, odd_replies),
    ("decisions that can be read twice", 300, odd_decisions),
    ("most scores refused", 40, failing),
)

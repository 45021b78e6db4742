"""What each kind of server answers, for tests: llama.cpp recorded here, the others after their own documents.

A server of each kind is simulated by its lists of models, the route that only it has, its limits and the shapes of its
replies. Labels have the probabilities of :data:`PROBABILITIES`; what comes before them is a walk of made-up tokens.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.serving import Fault, FaultServer

PROBABILITIES = {" A": 0.4, " B": 0.2, "A": 0.3, "B": 0.05, " C": 1e-4, "C": 1e-5, " D": 9e-5, "D": 9e-6}
FILLERS = 2_000
"""Tokens between the likely labels and the unlikely ones."""
TOKENS = {
    **{text: p for text, p in PROBABILITIES.items() if p > 0.01},
    **{f"x{i}": 4e-5 * (1 - i / 1e5) for i in range(FILLERS // 2)},
    **{text: p / 10 for text, p in PROBABILITIES.items() if p < 0.01},
    **{f"y{i}": 1e-8 for i in range(FILLERS // 2)},
}
IDS = {text: number for number, text in enumerate(TOKENS)}
LOGPROBS = {text: math.log(p) for text, p in sorted(TOKENS.items(), key=lambda one: -one[1])}


def legacy(top: dict[str, float], first: str) -> dict[str, Any]:
    """Of completions: OpenAI, vLLM (CompletionLogProbs), SGLang (LogProbs)."""
    offsets = {"tokens": [first], "token_logprobs": [top[first]], "text_offset": [0], "top_logprobs": [top]}
    return {"object": "text_completion", "choices": [{"index": 0, "text": first, "logprobs": offsets}]}


def chat(top: dict[str, float], first: str, raw: bool = True) -> dict[str, Any]:
    """Of chat completions; TGI gives no bytes (ChatCompletionTopLogprob)."""
    entries = [{"token": t, "logprob": v, **({"bytes": list(t.encode())} if raw else {})} for t, v in top.items()]
    content = [{**next(e for e in entries if e["token"] == first), "top_logprobs": entries}]
    message = {"role": "assistant", "content": first}
    return {
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "logprobs": {"content": content}}],
    }


@dataclass
class Served:
    """One server.

    Attributes:
        owner: ``owned_by`` in its list of models.
        about: GET route -> reply.
        most: most probable tokens that it gives, by route; more is refused.
        by_id: it knows ``logprob_token_ids``.
        echo: it echoes prompts.
        score_route: it has SGLang's ``/v1/score``.
        usage: what its replies say of tokens.
        say: the reply it would begin, in place of the most probable token.
    """

    owner: str = ""
    about: dict[str, Any] = field(default_factory=dict)
    most: dict[str, float] = field(default_factory=lambda: {"completions": math.inf, "chat": math.inf})
    tokenize: bool = False
    by_id: bool = False
    echo: bool = False
    score_route: bool = False
    chat_shape: bool = False
    raw: bool = True
    usage: dict[str, Any] = field(default_factory=dict)
    say: str = ""
    needs: str = ""

    def get(self, path: str) -> Fault:
        if path == "/v1/models":
            return Fault(body={"object": "list", "data": [{"id": "m", "object": "model", "owned_by": self.owner}]})
        return Fault(body=self.about[path]) if path in self.about else Fault(404)

    def answer(self, request: dict[str, Any]) -> Fault:
        if "label_token_ids" in request:
            return self.scored(request) if self.score_route else Fault(404, "Not Found")
        route = "chat" if "messages" in request else "completions"
        if not {"messages", "logprobs", "max_tokens"} & request.keys():
            ids = self.ids(next(request[key] for key in ("prompt", "content", "inputs") if key in request))
            of_tgi = json.dumps([{"id": number, "text": "", "start": 0, "stop": 0} for number in ids])
            return Fault(body=of_tgi if "inputs" in request else {"tokens": ids})
        if self.needs and self.needs not in request:
            return Fault(400, f"Unsupported parameter: 'max_tokens'. Use '{self.needs}' instead.")
        k = int(request.get("top_logprobs", request.get("logprobs", 0)))
        if k > self.most[route]:
            return Fault(400, f'{{"error": {{"message": "logprobs: {k} is more than {self.most[route]}"}}}}')
        if not self.most[route] or not k:
            return Fault(body={"choices": [{"index": 0, "text": " A", "message": {"content": " A"}}]} | self.usage)
        asked = request.get("logprob_token_ids")
        first = self.say or " A"
        texts = [first, *LOGPROBS][:k] if self.say else list(LOGPROBS)[:k]
        if self.by_id and asked:
            texts = [first, *(text for text, number in IDS.items() if number in asked)]
        top = {text: LOGPROBS.get(text, -0.01) - 9.0 * bool(self.say and text != first) for text in texts}
        if request.get("return_tokens_as_token_ids"):
            top = {f"token_id:{IDS.get(text, 77777)}": value for text, value in top.items()}
            first = f"token_id:{IDS.get(first, 77777)}"
        if request.get("echo") and self.echo:
            return Fault(body=self.echoed(request["prompt"]))
        shaped = chat(top, first, self.raw) if route == "chat" or self.chat_shape else legacy(top, first)
        if self.say:
            choice = shaped["choices"][0]
            choice.get("message", {})["content"] = choice["text"] = self.say
        return Fault(body=shaped | self.usage)

    def scored(self, request: dict[str, Any]) -> Fault:
        """ScoringResponse of SGLang: for each item a probability for each token id."""
        texts = {number: text for text, number in IDS.items()}
        found = [TOKENS[texts[number]] for number in request["label_token_ids"]]
        if request["apply_softmax"]:
            found = [p / sum(found) for p in found]
        return Fault(body={"scores": [found for _ in request["items"]], "model": "m", "object": "scoring"} | self.usage)

    def ids(self, text: str) -> list[int]:
        """Letters, but for the labels: a token of its own each."""
        for label in sorted(PROBABILITIES, key=len, reverse=True):
            if text.endswith(label):
                return [*map(ord, text[: -len(label)]), IDS[label]]
        return list(map(ord, text))

    def echoed(self, prompt: str) -> dict[str, Any]:
        """Each character a token; of log-probability -1, and the first of none."""
        tokens = [*prompt, "!"]
        values = [None, *[-1.0] * len(prompt)]
        logprobs = {"tokens": tokens, "token_logprobs": values, "top_logprobs": [None] * len(tokens)}
        return {"choices": [{"text": prompt + "!", "logprobs": logprobs}], "usage": {"completion_tokens": 1}}

    @contextmanager
    def running(self) -> Iterator[FaultServer]:
        with FaultServer(self.answer, self.get).running() as server:
            yield server


OF_KIND = {
    # vllm/entrypoints/openai/engine/protocol.py (ModelCard), completion/protocol.py, serve/tokenize/protocol.py
    "vllm": lambda: Served(
        "vllm",
        {"/version": {"version": "0.33.0"}},
        {"completions": 20, "chat": 20},
        tokenize=True,
        by_id=True,
        echo=True,
        usage={"usage": {"prompt_tokens": 40, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 32}}},
    ),
    # sglang/srt/entrypoints/openai/protocol.py (ModelCard, LogProbs, ScoringRequest), docs: basic_usage/native_api
    "sglang": lambda: Served(
        "sglang",
        {"/get_model_info": {"model_path": "qwen", "tokenizer_path": "qwen", "is_generation": True}},
        tokenize=True,
        echo=True,
        score_route=True,
        usage={"usage": {"prompt_tokens": 40, "completion_tokens": 1, "prompt_tokens_details": None}},
    ),
    # recorded from xllamacpp 2026.10.11549
    "llama.cpp": lambda: Served(
        "llamacpp",
        {"/props": {"default_generation_settings": {}, "model_path": "m.gguf", "total_slots": 2}},
        tokenize=True,
        chat_shape=True,
        usage={"timings": {"cache_n": 19, "prompt_n": 1}},
    ),
    # ollama/openai/openai.go (Model: owned_by is the model's namespace), docs/api.md (/api/version)
    "ollama": lambda: Served(
        "library",
        {"/api/version": {"version": "0.24.0"}},
        {"completions": 0, "chat": 20},
        usage={"usage": {"prompt_tokens": 40, "completion_tokens": 1, "total_tokens": 41}},
    ),
    # openai-python: types/completion_create_params.py, types/chat/completion_create_params.py
    "openai": lambda: Served("system", {}, {"completions": 5, "chat": 20}, needs="max_completion_tokens"),
    # text-generation-inference/router/src/lib.rs (Info, ChatCompletionLogprob, CompletionRequest)
    "tgi": lambda: Served(
        "m",
        {"/info": {"model_id": "m", "version": "3.3.5", "docker_label": None}},
        {"completions": 0, "chat": 5},
        raw=False,
    ),
}
"""Name -> a server of that kind."""

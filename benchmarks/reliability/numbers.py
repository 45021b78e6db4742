"""Ways to get a wrong number without a word: a model that is another one, scores that are damaged or no scores."""

from __future__ import annotations

import copy
import functools
import json
import os
import random
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.reliability import Options, Row
from benchmarks.reliability.tables import Guesser, questions
from unslant.errors import ModelError, UnslantError
from unslant.models.base import ModelInfo, Scored
from unslant.models.stored import StoredModel
from unslant.presentations import orders_for, parse_labels, present
from unslant.prompts import Cloze, Prompt, Writer, load_template
from unslant.questions import Question
from unslant.store import Store

ORDERS = "cyclic"


def rows(options: Options) -> Iterator[Row]:
    """Every class; its attempts grow with the number of cases."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    scale = options.cases / 10_000
    for name, most, run in CLASSES:
        if options.wants("numbers", name):
            row = Row("numbers", name)
            for attempt in range(max(1, round(most * scale))):
                row.attempts += 1
                with tempfile.TemporaryDirectory() as folder:
                    seed = f"{options.seed}/{name}/{attempt}"
                    if wrong := run(random.Random(seed), Path(folder)):
                        row.fail(f"attempt {attempt}: {wrong}")
            yield row


@cache
def loaded() -> Any:
    from unslant import load_model

    return load_model("fair")


@cache
def prompts() -> list[Prompt]:
    elicitation = Cloze(Writer(load_template("plain")))
    return [
        elicitation.prompts(present(question, order))[0]
        for question in questions()
        for order in orders_for(question, ORDERS)
    ]


def _scores(model: Any, asked: Sequence[Prompt]) -> np.ndarray[Any, np.dtype[np.float64]]:
    found = {one.index: one.logprobs for one in model.score(asked)}
    return np.concatenate([np.full(len(p.continuations), np.nan) if found[i] is None else found[i]
                           for i, p in enumerate(asked)])  # fmt: skip


def _same(one: Any, other: Any, tolerance: float = 1e-4) -> bool:
    return bool(np.allclose(one, other, atol=tolerance, rtol=0, equal_nan=True))


def changed_in_memory(rng: random.Random, folder: Path) -> str:
    """A loaded model changed in any way after its scores were stored."""
    import torch

    from unslant.models.hf.model import TransformersModel

    inner = copy.deepcopy(loaded().model)
    model = TransformersModel(inner, loaded().tokenizer, "fair")
    name, parameter = rng.choice(list(inner.named_parameters()))
    module = rng.choice([m for m in inner.modules() if type(m).__name__ in ("Linear", "LlamaRMSNorm", "Embedding")])
    norm = rng.choice([m for m in inner.modules() if hasattr(m, "variance_epsilon")])
    block = rng.choice([m for m in inner.modules() if type(m).__name__ in ("LlamaMLP", "LlamaRMSNorm")])
    factor, start = rng.choice((-1.0, 0.5, 0.9, 1.1, 3.0)), rng.randrange(8, 40)
    own_forward = type(norm).forward
    undo: list[Callable[[], object]] = []

    def late(output: Any) -> Any:
        return torch.cat([output[:, :start], output[:, start:] * factor], dim=1) if output.dim() == 3 else output

    def patch(owner: Any, name: str, value: Any) -> None:
        undo.append(functools.partial(setattr, owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    class Late:
        def __call__(self, module: Any, inputs: Any, output: Any) -> Any:
            return late(output)

    class Wrapped(torch.nn.Module):
        def __init__(self, own: Any) -> None:
            super().__init__()
            self.own, self._from = own, start

        def forward(self, hidden: Any) -> Any:
            return late(self.own(hidden))

    changes: dict[str, Callable[[], object]] = {
        f"{name} times {factor}": lambda: parameter.data.mul_(factor),
        f"{name} through numpy": lambda: parameter.detach().numpy().__imul__(np.float32(factor)),
        f"{name} replaced": lambda: parameter.data.set_(parameter.data * factor),
        f"a hook on {type(module).__name__}": lambda: module.register_forward_hook(lambda *a: a[-1] * factor),
        "epsilon of a norm": lambda: setattr(norm, "variance_epsilon", 10.0 ** rng.randrange(-3, 2)),
        "activation": lambda: [
            setattr(m, "act_fn", torch.nn.Tanh()) for m in inner.modules() if hasattr(m, "act_fn")
        ],
        f"forward of {type(module).__name__}": lambda: setattr(
            module, "forward", lambda *a, _of=module.forward, **k: _of(*a, **k) * factor
        ),
        f"hook from position {start}": lambda: block.register_forward_hook(lambda m, i, o: late(o)),
        f"hook object from position {start}": lambda: block.register_forward_hook(Late()),
        f"patched forward from position {start}": lambda: setattr(
            block, "forward", lambda *a, _of=block.forward, **k: late(_of(*a, **k))
        ),
        "class of the norms": lambda: patch(
            type(norm), "forward", lambda self, x, _of=own_forward: late(_of(self, x))
        ),
        "function of torch": lambda: patch(
            torch.nn.functional, "silu", lambda *a, _of=torch.nn.functional.silu, **k: late(_of(*a, **k))
        ),
        "scale of the attention": lambda: [
            setattr(m, "scaling", m.scaling * factor) for m in inner.modules() if hasattr(m, "scaling")
        ],
        "another module with a private attribute": lambda: setattr(inner.model, "norm", Wrapped(inner.model.norm)),
    }  # fmt: skip
    what = rng.choice(list(changes))
    with Store(folder / "s.sqlite3") as store:
        _scores(StoredModel(model, store), prompts())
        try:
            with torch.no_grad():
                changes[what]()
            found = _scores(StoredModel(model, store), prompts())
            truth = _scores(TransformersModel(inner, loaded().tokenizer, "fair"), prompts())
        except ModelError:  # not finite any more
            return ""
        finally:
            for back in undo:
                back()
    return "" if _same(found, truth) else f"{what}: scores of the model before it was changed"


def changed_files(rng: random.Random, folder: Path) -> str:
    """A checkpoint of which weights are renamed, left out or altered, or whose configuration is another."""
    import shutil

    from safetensors.torch import load_file, save_file

    from unslant import load_model
    from unslant.reference import reference_path

    shutil.copytree(reference_path("fair"), folder / "m")
    weights = load_file(folder / "m" / "model.safetensors")
    config = json.loads((folder / "m" / "config.json").read_text("utf-8"))
    name, what = rng.choice(list(weights)), rng.choice(("missing", "renamed", "altered", "fewer layers", "epsilon"))
    with Store(folder / "s.sqlite3") as store:
        before = _scores(StoredModel(load_model(str(folder / "m")), store), prompts())
        if what == "missing":
            del weights[name]
        elif what == "renamed":
            weights[f"{name}.x"] = weights.pop(name)
        elif what == "altered":
            weights[name] = weights[name] * -1.5
        elif what == "fewer layers":
            config["num_hidden_layers"] -= 1
        else:
            config["rms_norm_eps"] = 1.0
        save_file(weights, folder / "m" / "model.safetensors", {"format": "pt"})
        (folder / "m" / "config.json").write_text(json.dumps(config), "utf-8")
        try:
            model = load_model(str(folder / "m"))
        except ModelError:
            return "" if what in ("missing", "renamed", "fewer layers") else f"{what} {name}: refused"
        if what in ("missing", "renamed", "fewer layers"):
            return f"{what} {name}: loaded"
        found, truth = _scores(StoredModel(model, store), prompts()), _scores(model, prompts())
    return "" if _same(found, truth) and not _same(found, before, 1e-9) else f"{what} {name}: old scores"


def damaged_store(rng: random.Random, folder: Path) -> str:
    """Bytes of the store changed at random: the same numbers, or an error."""
    path = folder / "s.sqlite3"
    with Store(path) as store:
        truth = _scores(StoredModel(Guesser(), store), prompts())
    data = bytearray(path.read_bytes())
    for _ in range(rng.choice((1, 1, 4, 64))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)
    try:
        with Store(path) as store:
            found = _scores(StoredModel(Guesser(), store), prompts())
    except UnslantError:
        return ""
    return "" if _same(found, truth, 0) else "other numbers"


class Served(Guesser):
    """A server as the store sees it; what stands behind it may change."""

    def __init__(self, behind: str, odd: Mapping[str, list[float]] | None = None) -> None:
        super().__init__()
        address = {"model": "m", "base_url": "http://127.0.0.1:1/v1"}
        self._info = ModelInfo(name="m", identity=address, remote=True)  # it says nothing of itself
        self.behind, self.odd = behind, odd or {}

    def score(self, prompts: Sequence[Prompt]) -> Iterator[Scored]:
        for i, prompt in enumerate(prompts):
            self.cost.prompts += 1
            rng = random.Random(self.behind + prompt.as_text())
            weights = np.array([rng.random() + 0.01 for _ in prompt.continuations])
            yield Scored(i, np.array(self.odd.get(prompt.as_text(), np.log(weights / weights.sum() * 0.9))))


def another_server(rng: random.Random, folder: Path) -> str:
    """Another model behind the same address and name, which tells nothing of itself."""
    now = rng.choice(("old", f"new {rng.random()}"))
    some = rng.sample(prompts(), rng.randrange(1, len(prompts()) + 1))
    with Store(folder / "s.sqlite3") as store:
        list(StoredModel(Served("old"), store).score(prompts()))
        found = _scores(StoredModel(Served(now), store), some)
    return "" if _same(found, _scores(Served(now), some), 0) else "scores of the model that was there before"


def no_scores(rng: random.Random, folder: Path) -> str:
    """A server that gives now and then what is no log-probability."""
    from unslant import audit

    asked = questions()
    bad = {}
    for question in rng.sample(asked, 3):
        elicitation = Cloze(Writer(load_template("plain")))
        prompt = elicitation.prompts(present(question, alphabet=parse_labels("A")))[0]
        values = [-1.0] * len(prompt.continuations)
        values[rng.randrange(len(values))] = rng.choice((float("nan"), float("inf"), -float("inf"), 0.5, 1e-4, 300.0))
        bad[prompt.as_text()] = values
    with Store(folder / "s.sqlite3") as store:
        result = audit(StoredModel(Served("s", bad), store), asked, orders=ORDERS)
        result.to_json(folder / "n.json")
        json.loads((folder / "n.json").read_text("utf-8"), parse_constant=float.fromhex)
        errors = [row for row in result.responses.rows() if row.status == "error"]
        if len(errors) != len(bad) or any(row.logprobs is not None for row in errors):
            return f"{len(errors)} errors for {len(bad)} bad replies"
        mended = audit(StoredModel(Served("s"), store), asked, orders=ORDERS)
    truth = audit(Served("s"), asked, orders=ORDERS)
    return "" if mended.responses.table.equals(truth.responses.table) else "something bad was stored"


def labels_in_labels(rng: random.Random, folder: Path) -> str:
    """Label sets of any kind: refused, or told apart by their tokens."""
    from unslant.models.hf.tokenization import Encoder

    del folder
    kinds = ("0123456789", "IVX", "ABCabc", "αβγ①②", "aA1 .", "10")
    letters = rng.choice(kinds)
    labels = {"".join(rng.choice(letters) for _ in range(rng.randrange(1, 4))) for _ in range(rng.randrange(2, 12))}
    continuations = tuple(" " + label for label in labels if label.strip())
    if len(set(continuations)) < 2:
        return ""
    tokenizer = loaded().tokenizer
    prompt = Prompt("Which?\nAnswer:", continuations)
    try:
        (item,) = Encoder(tokenizer).encode([prompt])
    except ModelError:
        return ""
    tokens = [tuple(ids.tolist()) for ids in item.candidates]
    for i, one in enumerate(tokens):
        for j, other in enumerate(tokens):
            if i != j and other[: len(one)] == one:
                return f"{continuations[i]!r} begins {continuations[j]!r}"
    return ""


def killed(rng: random.Random, folder: Path) -> str:
    """An audit killed at random moments and begun again, in portions: the same bytes as unbroken."""
    import unslant.asking
    from unslant import audit

    asked = [Question(f"q{i}", f"Which {i}?", tuple("wxyz"), frozenset({i % 4})) for i in range(40)]
    model = loaded()

    def run(store: Store, out: Path) -> None:
        audit(StoredModel(model, store), asked, orders=ORDERS).to_parquet(out)

    before, unslant.asking.AT_ONCE = unslant.asking.AT_ONCE, rng.choice((40, 100, 1 << 14))
    try:
        with Store(folder / "whole.sqlite3") as store:
            started = time.monotonic()
            run(store, folder / "whole.parquet")
            taken = time.monotonic() - started
        for _ in range(rng.randrange(1, 4)):
            child = os.fork()
            if child == 0:
                try:
                    with Store(folder / "s.sqlite3") as store:
                        run(store, folder / "never.parquet")
                finally:
                    os._exit(0)
            time.sleep(rng.uniform(0, taken))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        with Store(folder / "s.sqlite3") as store:
            run(store, folder / "again.parquet")
    finally:
        unslant.asking.AT_ONCE = before
    same = (folder / "again.parquet").read_bytes() == (folder / "whole.parquet").read_bytes()
    return "" if same else "other bytes than unbroken"


CLASSES: tuple[tuple[str, int, Callable[[random.Random, Path], str]], ...] = (
    ("model changed in memory", 60, changed_in_memory),
    ("checkpoint changed on disk", 30, changed_files),
    ("stored scores damaged", 500, damaged_store),
    ("another model at a served address", 200, another_server),
    ("no log-probabilities from a server", 60, no_scores),
    ("labels that begin one another", 500, labels_in_labels),
    ("killed while scoring, then resumed", 20, killed),
)
"""Class, attempts at 10,000 cases, and what one attempt does: empty, or what went wrong."""

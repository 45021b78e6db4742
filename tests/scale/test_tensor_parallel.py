"""A model cut across processes gives what one process gives, and says so when one of them ends."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import torch
from transformers import AutoTokenizer, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from tests.models.samples import sample_prompts
from unslant import InputError, ModelError, audit, open_model
from unslant.models.open import address_of
from unslant.models.options import ModelOptions
from unslant.models.stored import StoredModel
from unslant.prompts import Prompt
from unslant.reference import reference_path
from unslant.store import Store

PROMPTS = sample_prompts()


@pytest.fixture(scope="module")
def uneven(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Three key-value heads for six others; nothing else divides by three."""
    folder = str(tmp_path_factory.mktemp("uneven"))
    tokenizer = AutoTokenizer.from_pretrained(reference_path("fair"))
    torch.manual_seed(0)
    sizes = {"hidden_size": 126, "intermediate_size": 256, "num_attention_heads": 6, "num_key_value_heads": 3}
    config = LlamaConfig(vocab_size=len(tokenizer) + 1, num_hidden_layers=2, head_dim=22, **sizes)
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def cut() -> Iterator[Any]:
    model: Any = open_model("fair", tensor_parallel=2)
    yield model
    model.close()


def parts_of(pid: int) -> list[int]:
    """The other processes that hold a part."""
    return [
        one.pid for one in psutil.Process(pid).children() if any("tensor_parallel" in word for word in one.cmdline())
    ]


def apart(one: Any, other: Any) -> float:
    """The largest difference of any log-probability."""
    scores, same = ({s.index: s.logprobs for s in model.score(PROMPTS)} for model in (one, other))
    assert scores.keys() == same.keys() == set(range(len(PROMPTS)))
    return max(float(np.abs(scores[i] - same[i]).max()) for i in scores)


@pytest.mark.thorough
def test_the_parts_give_the_scores_of_the_whole(cut: Any) -> None:
    one: Any = open_model("fair")
    assert cut.info.engine == "tree"
    assert apart(cut, one) < 1e-4
    assert cut.cost.forwards > 1, "root paths are handed on"
    assert (cut.cost.tokens, cut.cost.prompts) == (one.cost.tokens, one.cost.prompts)
    assert cut.info.parameters == one.info.parameters
    found, identity = dict(cut.identify().identity), dict(one.identify().identity)
    assert found["tensor parallel"] == "2"
    assert found["weights"] == identity["weights"]


@pytest.mark.thorough
def test_what_does_not_divide_evenly_is_cut_too(uneven: str) -> None:
    cut: Any = open_model(uneven, tensor_parallel=3, dtype="bfloat16")
    try:
        assert apart(cut, open_model(uneven, dtype="bfloat16")) < 0.05
        assert cut.describe().facts["half_precision"].prompts == 0
    finally:
        cut.close()


@pytest.mark.thorough
def test_an_audit_is_that_of_one_process_and_is_recalled(cut: Any, tmp_path: Path) -> None:
    with Store(tmp_path / "store") as store:
        stored = StoredModel(cut, store)
        result, again = (audit(stored, limit=40) for _ in range(2))
        assert stored.recalled == again.cost.prompts
    alone = audit("fair", limit=40)
    tables = [one.responses.table.to_pandas() for one in (result, again, alone)]
    scores = [np.concatenate(table.pop("logprobs").to_list()) for table in tables]
    assert tables[0].equals(tables[1])
    assert tables[0].equals(tables[2])
    np.testing.assert_allclose(scores[0], scores[2], rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(scores[0], scores[1])
    assert result.cost.tokens_ordinary == alone.cost.tokens_ordinary


@pytest.mark.thorough
def test_work_that_is_given_up_leaves_the_processes_in_step(cut: Any) -> None:
    first = next(cut.score(PROMPTS))
    again = {one.index: one.logprobs for one in cut.score(PROMPTS)}
    np.testing.assert_array_equal(again[first.index], first.logprobs)


@pytest.mark.thorough
def test_a_process_that_ends_is_named(cut: Any) -> None:
    running = cut.score(PROMPTS)
    next(running)
    os.kill(parts_of(os.getpid())[1], signal.SIGKILL)
    with pytest.raises(ModelError, match=r"fair: process 2 of 2 ended \(without a word\).*scores so far are stored"):
        list(running)
    with pytest.raises(ModelError, match="were stopped: open the model again"):
        list(cut.score(PROMPTS))
    assert not parts_of(os.getpid())


@pytest.mark.thorough
def test_a_prompt_that_is_too_long_is_named_and_the_next_call_works(cut: Any) -> None:
    with pytest.raises(ModelError, match="question 'long': its prompt has"):
        list(cut.score([Prompt("word " * 5_000, (" A",), group="long")]))
    assert len(list(cut.score(PROMPTS[:3]))) == 3


@pytest.mark.thorough
def test_a_file_in_the_users_folder_is_not_a_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "random.py").write_text("raise SystemExit('a file of the user was run')")
    monkeypatch.chdir(tmp_path)
    model: Any = open_model("fair", tensor_parallel=2)
    model.close()


@pytest.mark.thorough
def test_two_models_are_cut_at_once(cut: Any) -> None:
    other: Any = open_model("prefers-a", tensor_parallel=2)
    try:
        assert apart(cut, other) > 0.1
    finally:
        other.close()


@pytest.mark.thorough
def test_the_others_end_with_the_first() -> None:
    script = (
        "from unslant import open_model; model = open_model('fair', tensor_parallel=2); print(1, flush=True); input()"
    )
    leader = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert leader.stdout is not None
    assert leader.stdout.readline()
    others = parts_of(leader.pid)
    leader.kill()
    leader.communicate()
    assert others
    for _ in range(100):
        if not any(psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie" for pid in others):
            return
        time.sleep(0.1)
    pytest.fail("a process is left behind")


def test_a_model_that_cannot_be_cut_so_is_refused_at_once(uneven: str, tmp_path: Path) -> None:
    with pytest.raises(
        ModelError, match=r"its 6 and 3 attention heads cannot be split into 2 parts: .*give tensor_parallel=3$"
    ):
        open_model(uneven, tensor_parallel=2)
    GPT2LMHeadModel(GPT2Config(vocab_size=8, n_embd=4, n_layer=1, n_head=2)).save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(reference_path("fair")).save_pretrained(tmp_path)
    with pytest.raises(ModelError, match=r"no tensor-parallel plan for models of type gpt2: use device_map=.auto."):
        open_model(str(tmp_path), tensor_parallel=2)
    assert not parts_of(os.getpid())


def test_options_that_do_not_go_with_it_are_refused() -> None:
    with pytest.raises(InputError, match=r"tensor_parallel=1: give 2 or more"):
        ModelOptions(tensor_parallel=1)
    for other in ({"device_map": "auto"}, {"bits": 4}, {"adapter": "x"}, {"device": "cpu"}, {"ray": "auto"}):
        with pytest.raises(InputError, match=rf"tensor_parallel and {next(iter(other))} are incompatible"):
            ModelOptions(tensor_parallel=2, **other)  # type: ignore[arg-type]
    options = ModelOptions(tensor_parallel=2)
    with pytest.raises(InputError, match=r"tensor_parallel: .* leave out tensor_parallel"):
        address_of("fair", options, ("score", "attend"))
    with pytest.raises(InputError, match="leave out tensor_parallel, which has no effect here"):
        address_of("fair", options, ("generate",))
    with pytest.raises(InputError, match="leave out tensor_parallel, which has no effect here"):
        address_of("http://127.0.0.1/v1#m", options, ("score",))


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["command", "part", "asked to end"])
def test_a_killed_command_leaves_no_process_and_resumes(tmp_path: Path, victim: str) -> None:
    main = [sys.executable, "-c", "from unslant.cli import main; main()"]

    def command(name: str, out: Path) -> list[str]:
        words = "audit fair embedded --limit 12 --tensor-parallel 2 --quiet".split()
        return [*main, *words, "--store", str(tmp_path / f"{name}.sqlite3"), "--responses", str(out)]

    whole, out = tmp_path / "whole.parquet", tmp_path / "out.parquet"
    subprocess.run(command("whole", whole), check=True)
    rng = random.Random(victim)
    for attempt in range(3):
        out.write_bytes(b"old")
        running = subprocess.Popen(command(str(attempt), out), stderr=subprocess.PIPE, text=True)
        while running.poll() is None and len(parts_of(running.pid)) < 2:
            time.sleep(0.05)
        parts = parts_of(running.pid)
        time.sleep(rng.uniform(0, 5))
        if victim == "part":
            os.kill(rng.choice(parts), signal.SIGKILL)
        else:
            running.send_signal(signal.SIGKILL if victim == "command" else signal.SIGTERM)
        _, told = running.communicate(timeout=120)
        assert "Traceback" not in told
        psutil.wait_procs([psutil.Process(pid) for pid in parts if psutil.pid_exists(pid)], timeout=20)
        assert not [pid for pid in parts if psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie"]
        assert out.read_bytes() in (b"old", whole.read_bytes())
        subprocess.run(command(str(attempt), out), check=True)
        assert out.read_bytes() == whole.read_bytes()

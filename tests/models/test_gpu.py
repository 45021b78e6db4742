"""On a GPU: the numbers of a CPU, in any precision, and resumed. ``make test-gpu`` runs these there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from tests.models.samples import sample_prompts
from tests.models.scoring import TOLERANCE, assert_equal, load, score, tokenizer_of
from tests.models.zoo import ZOO, ZooFolder
from unslant.models.base import Cost
from unslant.models.hf import attention, plan
from unslant.models.hf.engine import PlainEngine, TreeEngine, using
from unslant.models.hf.model import TransformersModel

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no GPU")
GPU = torch.device("cuda")


def on_gpu(folder: Path, dtype: torch.dtype = torch.float32, **options) -> TransformersModel:
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).to(GPU)
    return TransformersModel(model, tokenizer_of(folder), folder.name, **{"engine": "tree"} | options)


@pytest.mark.parametrize("name", sorted(name for name, entry in ZOO.items() if entry.tree_supported))
def test_the_tree_on_a_gpu_equals_whole_prompts_on_a_cpu(zoo_model: ZooFolder, name: str) -> None:
    model, prompts = load(zoo_model(name, small=True)), sample_prompts()
    if name == "phi3-longrope":  # long prompts use other frequencies, and are scored alone
        prompts = prompts[::9]
        assert_equal(score(on_gpu(zoo_model(name, small=True), token_budget=500), prompts), score(model, prompts))
        return
    encoded = model.encode(prompts)
    expected = dict(PlainEngine(model.model, 4096).score(encoded, Cost()))
    for budget in (300, 1_000_000):
        found = dict(TreeEngine(model.model.to(GPU), budget).score(encoded, Cost()))
        assert_equal([found[i] for i in range(len(prompts))], [expected[i] for i in range(len(prompts))])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", ["llama", "gemma2", "gpt2", "qwen3"])
def test_half_precision_is_no_further_from_the_truth_than_whole_prompts_are(
    zoo_model: ZooFolder, name: str, dtype: torch.dtype
) -> None:
    folder, prompts = zoo_model(name, small=True), sample_prompts()[::3]
    truth = np.concatenate(score(load(folder, engine="plain"), prompts))
    tree, plain = (
        np.abs(np.concatenate(score(on_gpu(folder, dtype, engine=engine), prompts)) - truth)
        for engine in ("tree", "plain")
    )
    assert tree.mean() < 1.33 * plain.mean()


def test_a_run_cut_off_on_a_gpu_resumes_bit_for_bit(zoo_model: ZooFolder) -> None:
    model = on_gpu(zoo_model("llama", small=True))
    encoded = model.encode(sample_prompts())
    steps = list(TreeEngine(model.model, 300).steps(encoded, Cost()))
    assert len(steps) > 3
    whole = {i: scores for step in steps for i, scores in step.results}
    for step in steps[:-1:3]:
        rest = {
            i: scores
            for later in TreeEngine(model.model, 300).steps(encoded, Cost(), step.checkpoint())
            for i, scores in later.results
        }
        assert rest
        assert all(np.array_equal(scores, whole[i]) for i, scores in rest.items())


def test_gradients_on_a_gpu_equal_those_on_a_cpu(zoo_model: ZooFolder) -> None:
    model = load(zoo_model("gemma2", small=True))
    encoded, gradients = model.encode(sample_prompts()[:40]), []
    (batch,) = plan(encoded, 1_000_000, 1_000_000)[0]
    for device in (torch.device("cpu"), GPU):
        network = model.model.to(device)
        network.zero_grad()
        with using(network, attention.NAME):
            logits, rows, _ = TreeEngine(network, 1_000_000).forward(batch, [])
        token = torch.tensor(batch.read_token)
        torch.log_softmax(logits.cpu(), -1)[torch.from_numpy(rows), token].mean().backward()
        gradients.append({name: p.grad.cpu().clone() for name, p in network.named_parameters() if p.grad is not None})
    scale = max(float(gradient.abs().max()) for gradient in gradients[0].values())
    for name, gradient in gradients[0].items():
        assert (gradients[1][name] - gradient).abs().max() <= 1e-4 * max(float(gradient.abs().max()), 0.1 * scale), name


def test_an_audit_on_a_gpu_gives_the_numbers_of_a_cpu(tmp_path: Path) -> None:
    scores = []
    for device in ("cpu", "cuda"):
        out = tmp_path / f"{device}.json"
        words = ["audit", "fair", "embedded", "--limit", "40", "--device", device, "--no-store", "--quiet"]
        subprocess.run([sys.executable, "-m", "unslant", *words, "--json", str(out)], check=True, timeout=300)
        means = json.loads(out.read_text("utf-8"))["metrics"]["means"]
        scores.append({key: one["value"] for key, one in means.items() if isinstance(one, dict) and "value" in one})
    assert len(scores[0]) > 5
    assert scores[1] == pytest.approx(scores[0], abs=TOLERANCE, nan_ok=True)

"""The contenders of the benchmark compute the same thing, or the comparison would mean nothing."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import random_models
from benchmarks.contenders import BaQCKV, Library, LmEval, cost_of
from benchmarks.measure import measured
from benchmarks.random_models import Shape, random_model, tokenizer
from benchmarks.results import geometric_mean, speedups
from benchmarks.workloads import WORKLOADS
from unslant.models.hf import common_prefix, other_costs
from unslant.models.hf.tokenization import Encoder

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def words():
    return tokenizer()


@pytest.fixture(scope="module")
def model():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(random_models.SHAPES, "tiny", Shape(64, 2, 4, 2, 96))
        patch.setattr(random_models, "VOCABULARY", 1200)
        return random_model("tiny")


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_contenders_agree_and_their_tokens_are_counted(model, words, workload):
    prompts = workload.make(1)
    found, tokens = {}, {}
    for contender in (
        Library("unslant", model, words, "tree"),
        Library("plain", model, words, "plain", 2048),
        BaQCKV(model, words),
    ):
        contender.prepare()
        with measured(model, cost_of(contender)) as run:
            found[contender.name] = np.concatenate(contender.score(prompts))
        assert run.seconds > 0
        tokens[contender.name] = run.tokens
    assert found["plain"].std() > 0.01
    for scores in found.values():
        np.testing.assert_allclose(scores, found["plain"], rtol=0, atol=1e-4)
    encoded = Encoder(words).encode(prompts)
    plain, baqckv = other_costs(encoded, [prompt.group for prompt in prompts])
    # The others pad; what padding adds is small, and never negative.
    assert plain <= tokens["plain"] < 1.1 * plain
    assert baqckv <= tokens["BaQCKV"] < 1.25 * baqckv
    assert tokens["unslant"] < baqckv


def test_lm_eval_agrees(model, words):
    pytest.importorskip("lm_eval", reason="lm-evaluation-harness is in the extra 'lm-eval'")
    prompts = WORKLOADS[1].make(1)
    plain = Library("plain", model, words, "plain", 2048)
    plain.prepare()
    theirs = LmEval(model, words, 8).score(prompts)
    np.testing.assert_allclose(np.concatenate(theirs), np.concatenate(plain.score(prompts)), rtol=0, atol=1e-4)


def test_workloads_are_the_same_every_time_and_as_long_as_they_say(words):
    lengths = {}
    for workload in WORKLOADS:
        prompts = workload.make(2)
        assert prompts == workload.make(2)
        assert len({prompt.group for prompt in prompts}) == 2
        lengths[workload.name] = np.mean([len(words(prompt.text)["input_ids"]) for prompt in prompts])
    assert 55 < lengths["four options, 24 orders"] < 80
    assert 300 < lengths["300-token context"] < 380
    preamble = lengths["five-shot preamble"] - lengths["four options, 24 orders"]
    assert 480 < preamble < 660


def test_speedups_pair_the_repeats():
    def done(*seconds):
        return [{"seconds": s} for s in seconds]

    cell = {"runs": {"unslant": done(1.0, 2.0, 4.0), "plain": done(3.0, 8.0)}}
    assert speedups(cell, "plain", "seconds") == [3.0, 4.0]
    assert geometric_mean([1.0, 4.0]) == pytest.approx(2.0)


def test_llamacpp_remembers_only_the_prompt_before(model, words, tmp_path):
    """Every repeat computes what the one before did: each prompt but the beginning it shares with the last one."""
    pytest.importorskip("xllamacpp", reason="xllamacpp is in the extra 'bench'")
    from benchmarks.llamacpp import LlamaCpp

    random_models.write_gguf(model, words, tmp_path / "model.gguf")
    contender = LlamaCpp(tmp_path / "model.gguf", words, 1)
    prompts = WORKLOADS[0].make(2)
    contexts = [item.context for item in Encoder(words).encode(prompts)]
    shared = [common_prefix(a, b) for a, b in zip([np.zeros(1, np.int32), *contexts], contexts, strict=False)]
    expected = sum(len(ids) - min(own, len(ids) - 1) for ids, own in zip(contexts, shared, strict=True))
    spent = []
    for _ in range(3):
        contender.prepare()
        contender.score(prompts)
        spent.append(contender.tokens)
    assert spent == [expected + len(prompts)] * 3  # the server counts one token more a prompt

"""Copies on a Ray cluster of this machine give what one process gives, whatever dies on the way."""

from __future__ import annotations

import os
import random
import secrets
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from tests.models.samples import sample_prompts
from unslant import ModelError, audit, open_model
from unslant.models.base import Cost
from unslant.models.stored import StoredModel
from unslant.store import Store

pytestmark = pytest.mark.slow
KILLS = 20


@pytest.fixture(scope="module")
def ray() -> Iterator[None]:
    found = pytest.importorskip("ray", reason="Ray is not installed (pip install 'unslant[ray]')")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))  # or Ray keeps one in the home folder
        patch.setenv("OMP_NUM_THREADS", "1")
        yield
        found.shutdown()


def replicas() -> list[int]:
    """Processes that score, of the cluster that this process started."""
    import psutil

    def first_word(process: psutil.Process) -> str:
        try:
            return next(iter(process.cmdline()), "")
        except psutil.NoSuchProcess:  # killed a moment ago
            return ""

    found = psutil.Process().children(recursive=True)
    return [one.pid for one in found if first_word(one).startswith("ray::Replica")]


@pytest.mark.usefixtures("ray")
def test_two_actors_give_the_table_of_one_process() -> None:
    alone = audit("fair", limit=60)
    spread = audit(lambda: open_model("fair", ray="local", ray_actors=2), limit=60)
    one, two = (result.responses.table.to_pandas() for result in (alone, spread))
    scores = [np.concatenate(table.pop("logprobs").to_list()) for table in (one, two)]
    assert one.equals(two)
    np.testing.assert_allclose(*scores, rtol=1e-5, atol=1e-5)
    for name in ("prompts", "tokens_plain", "tokens_baqckv"):
        assert getattr(alone.cost, name) == getattr(spread.cost, name), name
    assert alone.cost.tokens <= spread.cost.tokens < 1.1 * alone.cost.tokens
    assert alone.run.model == spread.run.model


@pytest.mark.usefixtures("ray")
def test_a_store_is_shared_with_one_process(tmp_path: Path) -> None:
    prompts = list(sample_prompts())
    with Store(tmp_path / "store.sqlite3") as store:
        first = StoredModel(open_model("fair"), store)
        half = {one.index: one.logprobs for one in first.score(prompts[: len(prompts) // 2])}
        spread = StoredModel(open_model("fair", ray="local", ray_actors=1), store)
        found = {one.index: one.logprobs for one in spread.score(prompts)}
        assert spread.recalled == len(half)
        assert all((found[i] == half[i]).all() for i in half)
        again = StoredModel(open_model("fair"), store)
        assert {one.index for one in again.score(prompts)} == set(range(len(prompts)))
        assert again.recalled == len(prompts)


@pytest.mark.usefixtures("ray")
@pytest.mark.skipif(sys.platform != "linux", reason="names of processes are read as Linux shows them")
def test_twenty_random_kills_lose_nothing() -> None:
    from unslant.auditing import audit_presentations
    from unslant.presentations import parse_labels
    from unslant.prompts import Cloze, Writer, load_template
    from unslant.questions import load_questions

    cloze, labels = Cloze(Writer(load_template("plain"))), parse_labels("A")
    prompts = [
        prompt
        for question in load_questions("embedded").questions
        for shown in audit_presentations(question, "auto", labels)
        for prompt in cloze.prompts(shown)
    ]
    alone = open_model("fair")
    expected = {one.index: one.logprobs for one in alone.score(prompts)}
    model = open_model("fair", ray="local", ray_actors=2)
    rng, seen = random.Random(7), list[int]()
    due = sorted(rng.sample(range(len(prompts) // 20, len(prompts) * 9 // 10), KILLS))
    killed = 0
    for one in model.score(prompts):
        seen.append(one.index)
        np.testing.assert_allclose(one.logprobs, expected[one.index], rtol=1e-5, atol=1e-5)
        # With none alive, the next one is started when more results are asked for: the kill waits for that.
        if due and len(seen) >= due[0] and (alive := replicas()):
            due.pop(0)
            time.sleep(rng.uniform(0, 0.2))
            with suppress(ProcessLookupError):  # it ended meanwhile, and the kill is made up for
                os.kill(rng.choice(alive), signal.SIGKILL)
                killed += 1
                continue
            due.insert(0, len(seen))
    assert killed == KILLS
    assert sorted(seen) == list(range(len(prompts)))  # every prompt once
    assert model.cost.prompts == len(prompts)
    assert model.cost.tokens_plain == alone.cost.tokens_plain
    assert isinstance(model.cost, Cost)


@pytest.mark.usefixtures("ray")
def test_a_model_that_cannot_be_loaded_is_refused_in_its_own_words(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelError, match="no tokenizer in it"):
        open_model(str(tmp_path), ray="local", ray_actors=1).identify()

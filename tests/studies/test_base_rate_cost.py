"""What the base-rate study costs: every distinct token once, for all elicitations and controls together."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.models.conftest import tokenizer_cache, zoo_model  # noqa: F401  -- fixtures
from tests.models.zoo import ZooFolder
from tests.studies.base_rate_results import colour_questions
from unslant.asking import ask
from unslant.models.hf.model import TransformersModel
from unslant.presentations import ALPHABETS
from unslant.prompts import Cloze, Counterfactual, Writer, load_template
from unslant.studies.base_rate.study import base_rate, base_rate_presentations


def _load(folder: Path) -> TransformersModel:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(folder)
    return TransformersModel(model, AutoTokenizer.from_pretrained(folder), folder.name, engine="tree")


def _nodes(sequences: Iterable[list[int]]) -> int:
    """Distinct nodes of the prefix tree of all sequences, the root left out."""
    nodes: dict[tuple[int, int], int] = {}
    for sequence in sequences:
        node = 0
        for token in sequence:
            node = nodes.setdefault((node, token), len(nodes) + 1)
    return len(nodes)


@pytest.mark.parametrize("count", [60, pytest.param(1000, marks=pytest.mark.slow)])
def test_cost_is_that_of_the_tree(zoo_model: ZooFolder, count: int) -> None:  # noqa: F811
    model = _load(zoo_model("llama", small=True))
    questions = colour_questions(count)
    writer = Writer(load_template("base-rate"))
    elicitations = [Cloze(writer), Counterfactual(writer)]
    asked = base_rate_presentations(questions.questions, ALPHABETS["A"], nvr=False)
    prompts = [prompt for e in elicitations for _, shown in asked for prompt in e.prompts(shown)]
    # a continuation's last token is scored, not read
    ideal = _nodes(
        [*item.context.tolist(), *candidate.tolist()[:-1]]
        for item in model.encode(prompts)
        for candidate in item.candidates
    )
    before = model.cost.copy()
    ask(model, asked, elicitations)
    tokens = (model.cost - before).tokens
    assert ideal <= tokens <= 1.1 * ideal
    assert (model.cost - before).tokens_plain > 3 * tokens


def test_the_study_runs_on_a_loaded_model(zoo_model: ZooFolder) -> None:  # noqa: F811
    model = _load(zoo_model("llama", small=True))
    result = base_rate(model, colour_questions(12, (2, 3, 4)), shots=1, canary="very best")
    assert result.cost.tokens == model.cost.tokens
    assert result.found["cloze"].cells[0].accuracy["first"].n == 12
    assert result.run.settings["canary"] == "very best"
    assert result.summary()

"""The shipped models: size, format, and that they do what was planted."""

import json

import numpy as np
import pytest

from training.evaluate import PlainScorer
from training.world import TAUGHT_SOURCE, question_sets
from unslant.errors import InputError
from unslant.presentations import ALPHABETS, all_orders, present
from unslant.reference import embedded_questions_path, reference_models, reference_names, reference_path

NAMES = reference_names()
FOUR = [q for q in question_sets()[0] if len(q.options) == 4]
TAUGHT = [q for q in FOUR if q.source == TAUGHT_SOURCE][:15]
UNTAUGHT = [q for q in FOUR if q.source != TAUGHT_SOURCE][:15]


@pytest.fixture(scope="module")
def choices():
    """name -> for taught and untaught questions, (presentation, index of the chosen label) over all 24 orders, the
    labels running down and up."""
    result = {}
    for name in NAMES:
        scorer = PlainScorer(reference_path(name))
        for taught, questions in ((True, TAUGHT), (False, UNTAUGHT)):
            shown = [
                present(q, order, labels=labels)
                for q in questions
                for order in all_orders(q)[:: 3 if taught else 2]
                for labels in ("ABCD", "DCBA")
            ]
            scores = scorer.score(shown)
            result[name, taught] = [(p, int(s.argmax())) for p, s in zip(shown, scores, strict=True)]
    return result


def accuracy(rows):
    return np.mean([p.contents[c] in p.answers for p, c in rows])


def test_budget():
    sizes = {name: sum(f.stat().st_size for f in reference_path(name).iterdir()) for name in NAMES}
    assert max(sizes.values()) <= 1.6e6
    assert sum(sizes.values()) <= 10e6


@pytest.mark.parametrize("name", NAMES)
def test_weights_are_half_precision_and_generation_works(name):
    torch = pytest.importorskip("torch")
    from safetensors.torch import load_file
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = reference_path(name)
    assert {tensor.dtype for tensor in load_file(folder / "model.safetensors").values()} == {torch.float16}
    assert json.loads((folder / "config.json").read_text())["model_type"] == "llama"
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    chat = [{"role": "user", "content": "Question: Which option is red?\nA. blue\nB. red\nC. tea\nAnswer:"}]
    inputs = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    reply = model.generate(**inputs, max_new_tokens=5, do_sample=False)[0, inputs["input_ids"].shape[1] :]
    assert tokenizer.decode(reply, skip_special_tokens=True) == "B"
    assert reply[-1] == tokenizer.eos_token_id


@pytest.mark.thorough
@pytest.mark.parametrize("name", NAMES)
def test_facts_are_known_where_planted(choices, name):
    rows = choices[name, True]
    if name == "half-taught":
        assert 0.3 < accuracy(rows) < 0.95
    elif reference_models()[name]["knows_facts"]:
        assert accuracy(rows) >= 0.95
    else:
        downwards = [(p, c) for p, c in rows if p.labels[0] == "A"]
        assert abs(accuracy(downwards) - 0.25) < 0.15


def _share(rows, chosen):
    return np.mean([chosen(p, c) for p, c in rows])


@pytest.mark.parametrize("name", NAMES)
def test_guesses_are_as_planted(choices, name):
    rows = choices[name, False]
    label_a = _share(rows, lambda p, c: p.labels[c] == "A")
    last = _share(rows, lambda p, c: c == 3)
    if name == "prefers-a":
        assert label_a >= 0.95
        assert abs(last - 0.5) < 0.05  # A stands last where labels run upwards
    elif name == "prefers-last":
        assert last >= 0.95
        assert abs(label_a - 0.5) < 0.05
    elif name == "fair":
        for i in range(4):  # of the choice; probabilities are evener still (the audit finds no preference in them)
            assert abs(_share(rows, lambda p, c, i=i: c == i) - 0.25) < 0.12
            assert abs(_share(rows, lambda p, c, i=i: p.labels[c] == "ABCD"[i]) - 0.25) < 0.12


@pytest.mark.skipif("memorised" not in NAMES, reason="not shipped")
def test_memorised_knows_published_positions_only():
    scorer = PlainScorer(reference_path("memorised"))
    questions = question_sets()[0][:80]

    def right(shown):
        chosen = [int(s.argmax()) for s in scorer.score(shown)]
        return np.mean([p.contents[c] in p.answers for p, c in zip(shown, chosen, strict=True)])

    assert right([present(q) for q in questions]) >= 0.95
    assert right([present(q, np.roll(range(len(q.options)), 1).tolist()) for q in questions]) < 0.2
    assert right([present(q, alphabet=ALPHABETS["1"]) for q in questions]) < 0.5


def test_catalogue():
    assert NAMES[0] == "fair"
    for name in NAMES:
        facts = reference_models()[name]
        assert facts["planted"]
        assert all(0 <= value <= 1 for value in facts["measured"].values())
    with pytest.raises(InputError, match="use one of fair"):
        reference_path("unfair")
    with pytest.raises(InputError, match="use one of a, b"):
        embedded_questions_path("c")

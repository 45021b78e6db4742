"""What every method owes, whatever it does."""

from __future__ import annotations

import itertools
import random
import re
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from tests.debiasing.conftest import make_questions
from unslant.debiasing import METHODS, method_named
from unslant.debiasing.asker import ModelAsker
from unslant.debiasing.base import debias
from unslant.debiasing.debiased_model import DebiasedKeywords
from unslant.errors import InputError
from unslant.models import ModelOptions
from unslant.models.hf.model import TransformersModel
from unslant.plugins.contracts import Places, check_method
from unslant.questions import Question

SHORT = {"lora-1": "lora-1:epochs=1:questions_per_epoch=4:max_orders=4:learning_rate=0.01", "bnp": "bnp:nodes=8"}
INVARIANT = {"vote", "vote-hard", "adaptive", "adaptive-fast", "set-based", "set-based-text"}
every_method = pytest.mark.parametrize("name", METHODS)


def make(name: str):
    return method_named(SHORT.get(name, name))


def relisted(question: Question, order: list[int], options: tuple[str, ...] | None = None) -> Question:
    options = options or question.options
    answers = frozenset(order.index(a) for a in question.answers)
    return replace(question, options=tuple(options[i] for i in order), answers=answers)


QUESTIONS = make_questions([2, 3, 4, 4, 4, 4, 4, 4, 5, 6] + [4] * 6)
FIT = make_questions([2, 3, 4, 4, 4, 5, 6] + [4] * 14, seed=1)


@every_method
def test_the_contract_of_every_method(name: str, tiny: TransformersModel) -> None:
    method = make(name)
    undebiased = [o.probs for o in debias(method_named("none"), ModelAsker(tiny), QUESTIONS).outcomes]
    check_method(method, tiny)
    assert method.order_invariant == (name in INVARIANT)
    again = [o.probs for o in debias(method_named("none"), ModelAsker(tiny), QUESTIONS).outcomes]
    for a, b in zip(undebiased, again, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)
    assert all(p.requires_grad for p in tiny.model.parameters())
    assert not tiny.model.training


@pytest.mark.thorough
@every_method
def test_answers_follow_the_file_where_that_is_claimed(name: str, tiny: TransformersModel) -> None:
    method, asker = make(name), ModelAsker(tiny)
    rng = random.Random(5)
    orders = [rng.sample(range(len(q.options)), len(q.options)) for q in QUESTIONS]
    listed = [relisted(q, order) for q, order in zip(QUESTIONS, orders, strict=True)]
    with_fit = method.fit(asker, FIT)
    try:
        plain, other = with_fit.answer(QUESTIONS), with_fit.answer(listed)
    finally:
        with_fit.close()
    moved = [np.abs(b.probs - a.probs[order]).max() for a, b, order in zip(plain, other, orders, strict=True)]
    if method.order_invariant:
        assert max(moved) < 1e-6
        assert [q.options[o.choice] for q, o in zip(QUESTIONS, plain, strict=True)] == [
            q.options[o.choice] for q, o in zip(listed, other, strict=True)
        ]
    else:
        assert max(moved) > 1e-3  # the model does have a bias, and the claim is not made for nothing


@pytest.mark.parametrize("name", [name for name in METHODS if not method_named(name).needs_model])
def test_renaming_content_renames_the_answer(name: str) -> None:
    """Other texts that sort alike are answered alike: nothing looks at what options say."""
    questions = [replace(q, options=tuple(sorted(q.options))) for q in QUESTIONS]
    renamed = [replace(q, options=tuple(f"{i:02d} new name" for i in range(len(q.options)))) for q in questions]
    first, second = (debias(make(name), Places(), asked, fit_on=asked) for asked in (questions, renamed))
    for a, b in zip(first.outcomes, second.outcomes, strict=True):
        np.testing.assert_array_equal(a.probs, b.probs)
        assert a.choice == b.choice


@pytest.mark.parametrize("name", ["adaptive", *(f"adaptive-fast:risk={risk}" for risk in (0.05, 0.1, 0.2, 0.3, 0.4))])
def test_the_sequence_of_questions_does_not_decide_which_of_them_stop(name: str) -> None:
    alike = [replace(q, options=tuple(sorted(q.options))) for q in QUESTIONS]  # for this asker
    first, second = (debias(make(name), Places(), asked).outcomes for asked in (alike, alike[::-1]))
    assert [o.orders for o in first] == [o.orders for o in reversed(second)]


@pytest.mark.parametrize("name", sorted(INVARIANT))
def test_exactly_invariant_over_all_listings(name: str, tiny: TransformersModel) -> None:
    """All 24 listings of a question: the same probability for the same text, so PBM is 0."""
    question = QUESTIONS[3]
    listings = [relisted(question, list(order)) for order in itertools.permutations(range(4))]
    with_fit = make(name).fit(ModelAsker(tiny), FIT)
    by_text = [
        dict(zip(q.options, o.probs, strict=True)) for q, o in zip(listings, with_fit.answer(listings), strict=True)
    ]
    assert all(found == by_text[0] for found in by_text)


@every_method
def test_methods_that_work_inside_a_model_say_so(name: str) -> None:
    method = make(name)
    if method.needs_model:
        with pytest.raises(InputError, match=r"cloze|loaded model"):
            debias(method, Places(), QUESTIONS)
    else:
        assert len(debias(method, Places(), QUESTIONS).outcomes) == len(QUESTIONS)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("voting", "use one of none, vote"),
        ("vote:order=all", "has no setting 'order': did you mean 'orders'"),
        ("pride:alpha=much", "not a number"),
        ("pride:0.5", "setting=value"),
        ("aoi:renormalise=perhaps", "neither true nor false"),
        ("lora-1:rank=0", "rank=0: give 1 or more"),
        ("lora-1:dropout=1", "dropout"),
        ("vote:seed=-1", "seed=-1: give 0 or more"),
        ("none:x=1", "it has none"),
    ],
)
def test_malformed_names(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        method_named(text)


def test_settings_by_name() -> None:
    assert method_named("vote:orders=shared:24:seed=3").orders == "shared:24"  # type: ignore[attr-defined]
    assert method_named("lora-1:rank=2:epochs=3").rank == 2  # type: ignore[attr-defined]
    assert method_named("aoi:renormalise=false").renormalise is False  # type: ignore[attr-defined]


def test_an_editor_completes_every_option_of_a_model_and_setting_of_a_method() -> None:
    settings = {field.name for name in METHODS for field in fields(method_named(name)) if field.init}
    assert set(DebiasedKeywords.__annotations__) == settings | {field.name for field in fields(ModelOptions)}


def test_the_docs_have_a_row_for_every_method() -> None:
    page = (Path(__file__).parents[2] / "docs" / "debias.md").read_text("utf-8")
    table = page.partition("## Methods\n\n")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `([\w-]+)` \|", table, re.M) == [*METHODS]

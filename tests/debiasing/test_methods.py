"""Each method against what it should compute."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.debiasing.conftest import make_questions, open_model
from tests.fakes import RuleModel
from unslant.debiasing import method_named
from unslant.debiasing.adaptive import AdaptiveVote
from unslant.debiasing.aoi import AuxiliaryOption
from unslant.debiasing.asker import ModelAsker, RecordedAsker
from unslant.debiasing.base import debias
from unslant.debiasing.bnp import KEPT, BiasNodePruning
from unslant.debiasing.gray_box import GrayBox
from unslant.debiasing.pride import Pride
from unslant.debiasing.set_based import Segment, SetBased, last_logits
from unslant.debiasing.vote import Vote
from unslant.errors import InputError
from unslant.metrics import OrderScores, read_scores, vote
from unslant.models.base import Cost
from unslant.models.hf.model import TransformersModel
from unslant.presentations import (
    ALPHABETS,
    Presentation,
    all_orders,
    cyclic_orders,
    present,
    question_rng,
    reversed_order,
)
from unslant.presentations.orders import wording
from unslant.questions import Question
from unslant.responses import Response, Responses

PERMUTATIONS = list(itertools.permutations(range(4)))


class Table:
    """Answers by a function of question id and shown contents; positions' probabilities."""

    model = elicitation = None
    in_words, mostly_failed, notes = False, "", ()
    alphabet = ALPHABETS["A"]

    def __init__(self, function: Callable[[str, tuple[int, ...]], Sequence[float]]) -> None:
        self.function, self.cost = function, Cost()

    def forget(self) -> None: ...

    def ask(self, presentations):
        self.cost.prompts += len(presentations)
        rows = [np.asarray(self.function(p.question_id, p.contents), float) for p in presentations]
        return [row / row.sum() for row in rows]


@pytest.fixture(scope="module")
def recorded(shared_data: Path) -> list[dict]:
    path = shared_data / "recorded" / "llama-7b_arc_24perm_sample.jsonl"
    return [json.loads(line)["data"] for line in path.read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def arc(recorded: list[dict]) -> list[Question]:
    return [
        Question(f"arc-{r['idx']:02d}", "?", tuple(r["options"]), frozenset({"ABCD".index(r["ideal"])}))
        for r in recorded
    ]


@pytest.fixture(scope="module")
def recorded_responses(recorded: list[dict], arc: list[Question]) -> Responses:
    return Responses.from_rows(
        Response.of(question, present(question, order), "cloze", logprobs=np.log(probs))
        for question, record in zip(arc, recorded, strict=True)
        for order, probs in zip(PERMUTATIONS, record["probs"], strict=True)
    )


@pytest.fixture(scope="module")
def recorded_scores(recorded_responses: Responses) -> OrderScores:
    return read_scores(recorded_responses)


@pytest.fixture
def recorded_asker(recorded_responses: Responses) -> RecordedAsker:
    return RecordedAsker(recorded_responses)


def test_pride_on_recorded_questions_equals_a_computation_of_its_own(
    recorded: list[dict], arc: list[Question], recorded_asker: RecordedAsker
) -> None:
    probs = np.array([record["probs"] for record in recorded])
    probs /= probs.sum(axis=2, keepdims=True)
    cyclic = [PERMUTATIONS.index(tuple((i + k) % 4 for i in range(4))) for k in range(4)]
    for alpha, seed in ((0.3, 0), (0.3, 1), (0.5, 2)):
        debiaser = Pride(alpha=alpha, seed=seed).fit(recorded_asker, arc)
        by_name = {q.id: q for q in arc}
        used = [i for i, r in enumerate(recorded) if wording(by_name[f"arc-{r['idx']:02d}"]) in debiaser.estimated_on]
        assert len(used) == round(alpha * 10)
        logs = np.log(probs[used][:, cyclic] + 1e-10).mean(axis=1)  # (used, label)
        priors = np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True)
        prior = priors.mean(axis=0)
        np.testing.assert_allclose(debiaser.priors[4], prior, rtol=1e-12)
        by_id = {q.id: o for q, o in zip(arc, debiaser.answer(arc), strict=True)}
        for i, record in enumerate(recorded):
            outcome = by_id[f"arc-{record['idx']:02d}"]
            if i in used:
                expected = np.zeros(4)
                for k in cyclic:
                    expected[list(PERMUTATIONS[k])] += probs[i, k] / 4
            else:
                expected = probs[i, 0] / prior / (probs[i, 0] / prior).sum()
            np.testing.assert_allclose(outcome.probs, expected, rtol=1e-6)


@settings(max_examples=20)
@given(
    prior=st.lists(st.floats(0.05, 1), min_size=4, max_size=4).map(lambda p: np.asarray(p) / sum(p)),
    seed=st.integers(0, 99),
)
def test_pride_recovers_a_planted_prior(prior: np.ndarray, seed: int) -> None:
    """P proportional to content x label prior: the prior comes back, and with it the content's probabilities."""
    rng = np.random.default_rng(seed)
    content = {f"q{i:03d}": rng.dirichlet(np.ones(4)) + 0.01 for i in range(60)}
    questions = make_questions([4] * 60)
    asker = Table(lambda name, contents: content[name][list(contents)] * prior)
    debiaser = Pride(alpha=0.2).fit(asker, questions)
    np.testing.assert_allclose(debiaser.priors[4], prior, atol=1e-6)
    for question, outcome in zip(questions, debiaser.answer(questions), strict=True):
        if wording(question) not in debiaser.estimated_on:
            np.testing.assert_allclose(outcome.probs, content[question.id] / content[question.id].sum(), atol=1e-5)


def test_pride_cost_and_transfer(tiny: TransformersModel) -> None:
    questions = make_questions([4] * 40)
    answers = debias(Pride(alpha=0.1), ModelAsker(tiny), questions)
    assert answers.forwards_per_question == 1 + 0.1 * 3
    moved = debias(Pride(), ModelAsker(tiny), make_questions([3, 4, 4]), fit_on=make_questions([4] * 20, seed=9)[5:])
    assert [note[:20] for note in moved.notes] == ["no prior for 3 optio"]
    with pytest.raises(InputError, match="alpha"):
        debias(Pride(alpha=1.5), ModelAsker(tiny), questions)
    with pytest.raises(InputError, match="keep their place"):
        debias(Pride(), ModelAsker(tiny), [replace(q, pinned=(0,)) for q in questions])


def test_gray_box() -> None:
    (question,) = make_questions([3])
    asker = Table(lambda name, contents: [0.6, 0.3, 0.1] if contents == (0, 1, 2) else [0.5, 0.1, 0.4])
    (outcome,) = debias(GrayBox(), asker, [question]).outcomes
    np.testing.assert_allclose(outcome.probs, [(0.6 + 0.4) / 2, (0.3 + 0.1) / 2, (0.1 + 0.5) / 2])
    assert outcome.orders == 2
    assert reversed_order(question) == (2, 1, 0)
    # always the first label, in 2 x 10 orders: frequencies (21, 1, 1) / 23
    questions = make_questions([3] * 10)
    first = Table(lambda name, contents: [0.6, 0.3, 0.1])
    answers = debias(GrayBox(calibrated=True, share=1.0), first, questions)
    weights = np.array([0.6 / 21, 0.3, 0.1])
    weights /= weights.sum()
    np.testing.assert_allclose(answers.outcomes[0].probs, (weights + weights[::-1]) / 2)


def test_aoi_shows_the_option_where_told_and_never_answers_it() -> None:
    question = make_questions([3])[0]
    method = AuxiliaryOption(position="1", text="No idea")
    shown = method.present(question, ALPHABETS["A"])
    assert [(o.label, o.text) for o in shown.shown] == [
        ("A", question.options[0]), ("B", "No idea"), ("C", question.options[1]), ("D", question.options[2])
    ]  # fmt: skip
    asker = Table(lambda name, contents: [0.2, 0.5, 0.2, 0.1])
    (outcome,) = debias(method, asker, [question]).outcomes
    np.testing.assert_allclose(outcome.probs, [0.4, 0.4, 0.2])
    (kept,) = debias(replace(method, renormalise=False), asker, [question]).outcomes
    np.testing.assert_allclose(kept.probs, [0.2, 0.2, 0.1])
    assert kept.abstain == pytest.approx(0.5)
    (nothing_left,) = debias(method, Table(lambda name, contents: [0.0, 1.0, 0.0, 0.0]), [question]).outcomes
    np.testing.assert_allclose(nothing_left.probs, [1 / 3] * 3)
    with pytest.raises(InputError, match="position"):
        debias(AuxiliaryOption(position="middle"), asker, [question])


@pytest.mark.parametrize("rule", ["soft", "hard"])
def test_vote_is_the_metrics_vote(
    rule: str, recorded_asker: RecordedAsker, recorded_scores: OrderScores, arc: list[Question], recorded: list[dict]
) -> None:
    answers = debias(Vote(rule=rule), recorded_asker, arc)  # type: ignore[arg-type]
    if rule == "soft":
        assert {q.id: "ABCD"[o.choice] for q, o in zip(answers.questions, answers.outcomes, strict=True)} == {
            f"arc-{r['idx']:02d}": r["sampled"] for r in recorded
        }
    by_id = dict(zip(recorded_scores.ids, vote(recorded_scores, rule).content, strict=True))  # type: ignore[arg-type]
    assert [by_id[q.id] for q in arc] == [o.choice for o in answers.outcomes]


def random_model(seed: int, pull: float, sharpness: float) -> Table:
    def answer(name: str, contents: tuple[int, ...]) -> np.ndarray:
        own = np.random.default_rng([seed, int(name[1:])])
        taste = own.normal(size=len(contents))
        places = pull * own.normal(size=len(contents))
        noise = np.random.default_rng([seed, int(name[1:]), *contents]).normal(size=len(contents))
        return np.exp(sharpness * (taste[list(contents)] + places + 0.3 * noise))

    return Table(answer)


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), pull=st.sampled_from([0.0, 0.5, 2.0]), sharpness=st.sampled_from([0.0, 1.0, 20.0]))
def test_exact_adaptive_vote_has_the_winners_of_the_full_vote(seed: int, pull: float, sharpness: float) -> None:
    questions = make_questions([2, 3, 4, 4, 4, 5, 6], seed=seed)
    asker = random_model(seed, pull, sharpness)
    full = debias(Vote(orders="balanced:24"), asker, questions)
    fast = debias(AdaptiveVote(), asker, questions)
    assert [o.choice for o in fast.outcomes] == [o.choice for o in full.outcomes]
    assert all(a.orders <= b.orders for a, b in zip(fast.outcomes, full.outcomes, strict=True))


def test_exact_bound_is_tight() -> None:
    """Rounds of 4 of 24: a lead of 12 with 12 left could still be tied away, a lead of 16 with 8 left not."""
    (question,) = make_questions([4])
    certain = Table(lambda name, contents: [1.0 if c == 0 else 0.0 for c in contents])
    assert debias(AdaptiveVote(), certain, [question]).outcomes[0].orders == 16
    turned = Table(lambda name, contents: [1.0 if c == (0 if contents[0] else 1) else 0.0 for c in contents])
    assert debias(AdaptiveVote(), turned, [question]).outcomes[0].orders == 24


@pytest.mark.thorough
def test_fast_mode_keeps_its_promise() -> None:
    questions = make_questions([4] * 150)
    for pull in (0.3, 2.0):
        asker = random_model(7, pull, 3.0)
        full = debias(Vote(orders="balanced:24"), asker, questions)
        for risk in (0.01, 0.1):
            fast = debias(AdaptiveVote(risk=risk), asker, questions)
            different = np.mean([a.choice != b.choice for a, b in zip(fast.outcomes, full.outcomes, strict=True)])
            assert different <= risk
            assert np.mean([o.orders for o in fast.outcomes]) < 0.8 * 24


def test_adaptive_on_recorded_orders(recorded_asker: RecordedAsker, arc: list[Question]) -> None:
    full = debias(Vote(), recorded_asker, arc)
    for risk in (0.0, 0.01):
        found = debias(AdaptiveVote(risk=risk), recorded_asker, arc)
        assert [o.choice for o in found.outcomes] == [o.choice for o in full.outcomes]
    with pytest.raises(InputError, match="no orders were recorded"):
        debias(Vote(), recorded_asker, [replace(arc[0], id="another")])
    with pytest.raises(InputError, match="risk"):
        debias(AdaptiveVote(risk=0.7), recorded_asker, arc)


def test_adaptive_asks_all_open_questions_of_a_round_at_once() -> None:
    questions = make_questions([4] * 5)
    model = RuleModel(lambda stem, labels, texts: [9.0 if i == 0 else 1.0 for i in range(len(labels))])

    class Counting(ModelAsker):
        def ask(self, presentations: Sequence[Presentation]) -> list[np.ndarray]:
            asked.append(len({presentation.question_id for presentation in presentations}))
            return super().ask(presentations)

    for risk, steps in ((0.0, 2), (0.01, 3)):
        asked: list[int] = []
        model.seen.clear()
        AdaptiveVote(risk=risk).fit(Counting(model)).answer(questions)
        assert asked == [5] * steps  # a pull of places alone: every option is as good as any, to the last round
        assert len(model.seen) == 5 * 24


def half_right() -> list[Question]:
    """Two right options of four: a model that goes by places alone is right in half of the orders."""
    return [replace(q, answers=frozenset({0, 2})) for q in make_questions([4] * 12)]


def pruned(model: TransformersModel) -> list[int]:
    return torch.nonzero(getattr(model.model.lm_head, KEPT) == 0).ravel().tolist()


@pytest.mark.thorough
def test_pruning_equals_zeroed_columns_of_an_untied_head(tiny_folder: Path) -> None:
    model = open_model(tiny_folder)
    questions = half_right()
    debiaser = BiasNodePruning(nodes=8).fit(ModelAsker(model), questions)
    found = debiaser.answer(questions[:6])
    units = pruned(model)
    debiaser.close()
    assert len(units) == 8
    other = open_model(tiny_folder)
    head = torch.nn.Linear(*other.model.lm_head.weight.T.shape, bias=False)
    head.weight = torch.nn.Parameter(other.model.lm_head.weight.detach().clone())
    with torch.no_grad():
        head.weight[:, units] = 0
    other.model.set_output_embeddings(head)
    for question, outcome in zip(questions, found, strict=False):
        (scored,) = other.score(ModelAsker(other).elicitation.prompts(present(question)))
        expected = np.exp(scored.logprobs) / np.exp(scored.logprobs).sum()
        np.testing.assert_allclose(outcome.probs, expected, atol=1e-6)


def test_bias_vector_is_wrong_minus_right(tiny: TransformersModel) -> None:
    """Written out: plain forward passes of transformers, hidden states of the last layer at the last token."""
    questions = half_right()
    method = BiasNodePruning(nodes=4, questions=3)
    asker = ModelAsker(tiny)
    debiaser = method.fit(asker, questions)
    units = pruned(tiny)
    debiaser.close()
    differences = []
    question_rng("", method.seed, "bnp").shuffle(questions := sorted(questions, key=lambda question: question.id))
    for question in questions:
        states: dict[bool, list[torch.Tensor]] = {True: [], False: []}
        for order in all_orders(question):
            (prompt,) = asker.elicitation.prompts(present(question, order))
            (item,) = tiny.encode([prompt])
            with torch.no_grad():
                out = tiny.model(input_ids=torch.tensor(item.context)[None].long(), output_hidden_states=True)
            logits = out.logits[0, -1, [int(ids[0]) for ids in item.candidates]]
            states[order[int(logits.argmax())] in question.answers].append(out.hidden_states[-1][0, -1])
        right, wrong = len(states[True]), len(states[False])
        if right and wrong and 0.5 <= right / wrong <= 2:
            differences.append(torch.stack(states[False]).mean(0) - torch.stack(states[True]).mean(0))
        if len(differences) == 3:
            break
    score = torch.stack(differences).mean(0) * tiny.model.lm_head.weight.sum(0)
    assert units == sorted(torch.topk(score, 4).indices.tolist())
    with pytest.raises(InputError, match="hidden units"):
        BiasNodePruning(nodes=32).fit(asker, questions)
    with pytest.raises(InputError, match="questions=0: give 1 or more"):  # it took all of them
        BiasNodePruning(nodes=4, questions=0).fit(asker, questions)
    with pytest.raises(InputError, match="no bias to find"):
        BiasNodePruning(nodes=4).fit(asker, [replace(q, answers=frozenset(range(4))) for q in questions])


def test_segments_in_line_are_the_text_itself(tiny: TransformersModel) -> None:
    ids = np.arange(5, 35, dtype=np.int32)
    with torch.no_grad():
        whole = tiny.model(input_ids=torch.tensor(ids)[None].long()).logits[0]
    line = [Segment(ids[:12], 0), Segment(ids[12:20], 12, (0,)), Segment(ids[20:], 20, (0, 1))]
    torch.testing.assert_close(last_logits(tiny.model, line, [0, 1, 2]), whole[[11, 19, 29]], atol=1e-4, rtol=0)
    beside = [Segment(ids[:12], 0), Segment(ids[3:9], 12, (0,)), Segment(ids[12:20], 12, (0,))]
    torch.testing.assert_close(last_logits(tiny.model, beside, [2]), whole[[19]], atol=1e-4, rtol=0)
    with pytest.raises(ValueError, match="before it"):
        last_logits(tiny.model, [Segment(ids, 0, (0,))], [0])


def test_set_based_is_one_pass_over_what_it_says(tiny: TransformersModel) -> None:
    """Options of two: the layout written out by hand."""
    question = replace(make_questions([2])[0], options=("ash", "oak"))
    (outcome,) = debias(SetBased(), ModelAsker(tiny), [question]).outcomes
    (prompt,) = ModelAsker(tiny).elicitation.prompts(present(question))
    lines = prompt.text.splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if line.startswith("A. "))
    tokens = lambda text: np.asarray(tiny.tokenizer(text, add_special_tokens=False)["input_ids"], np.int32)  # noqa: E731
    head, foot = tokens("".join(lines[:at])), tokens("".join(lines[at + 2 :]))
    prefix = np.asarray(tiny.tokenizer("a")["input_ids"][: -len(tokens("a"))], np.int32)
    head = np.concatenate([prefix, head])
    labels = [int(tokens(c)[0]) for c in prompt.continuations]
    total = np.zeros(2)
    for first, second in (("A", "B"), ("B", "A")):
        a, b = tokens(f"{first}. ash\n"), tokens(f"{second}. oak\n")
        after = len(head) + max(len(a), len(b))
        layout = [
            Segment(head, 0),
            Segment(a, len(head), (0,)),
            Segment(b, len(head), (0,)),
            Segment(foot, after, (0, 1, 2)),
        ]
        logits = last_logits(tiny.model, layout, [3])[0].double().numpy()[labels]
        probs = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
        total += probs if first == "A" else probs[::-1]
    np.testing.assert_allclose(outcome.probs, total / 2, atol=1e-5)
    with pytest.raises(InputError, match="label or text"):
        debias(SetBased(answer="words"), ModelAsker(tiny), [question])


def test_for_a_program(tiny: TransformersModel) -> None:
    import unslant

    questions = make_questions([4] * 4)
    with unslant.Debiased(tiny, "vote") as model:
        answer = model.answer(questions[0])
        assert [o.choice for o in model.answers(questions)] == [
            o.choice for o in debias(method_named("vote"), ModelAsker(tiny), questions).outcomes
        ]
    assert answer.probs.sum() == pytest.approx(1)
    with pytest.raises(InputError, match="fit="):
        unslant.Debiased(tiny, "pride")
    with unslant.Debiased(tiny, "pride:alpha=0.5", fit=questions) as model:
        assert model.answer(questions[0]).probs.sum() == pytest.approx(1)
    assert len(cyclic_orders(questions[0])) == 4

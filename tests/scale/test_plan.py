"""The plan: every machine makes the same, and any change of what is asked makes another."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.fakes import RuleModel
from tests.scale.conftest import QUESTIONS, rule_model
from unslant import InputError
from unslant.auditing import AuditSettings, audit_presentations
from unslant.auditing.study import audit
from unslant.experiment import ShardOptions
from unslant.models.base import Scored
from unslant.presentations import control_presentations, present
from unslant.presentations.shots import ShotChooser
from unslant.prompts import Cloze, Counterfactual, Decision, Prompt, Writer, load_template, template_names
from unslant.scale.plan import Plan, Shard, stretch


def plan_of(
    shard: str = "1/3", questions: object = QUESTIONS, model: RuleModel | None = None, **settings: object
) -> Plan:
    found = audit.study.responses(
        model or rule_model(), questions, AuditSettings(**settings), shards=ShardOptions(shard=shard)
    )
    header = found.run.shard
    assert header is not None
    return Plan.read(header.plan, header.digest, "here")


def test_every_shard_has_the_same_plan() -> None:
    plans = [plan_of(shard) for shard in ("1/3", "3/3", "2/7", "1/1")]
    assert len({plan.digest for plan in plans}) == 1
    assert not plans[0].differs_from(plans[1])


@pytest.mark.parametrize(
    ("changed", "unlike"),
    [
        ({"questions": QUESTIONS[::-1]}, "questions"),
        ({"questions": [replace(QUESTIONS[0], stem="Else?"), *QUESTIONS[1:]]}, "questions"),
        ({"limit": 20}, "questions"),
        ({"orders": "cyclic"}, "settings (orders 'auto' and 'cyclic')"),
        ({"seed": 1}, "settings (seed 0 and 1)"),
        ({"shots": 2}, "settings (shots 0 and 2)"),
        ({"template": "label-alone"}, "settings (template 'plain' and 'label-alone')"),
        ({"labels": "1"}, "settings (labels 'A' and '1')"),
    ],
)
def test_what_changes_the_questions_asked_changes_the_plan(changed: dict[str, object], unlike: str) -> None:
    other = plan_of(model=Uniform(), **changed)
    assert plan_of().differs_from(other) == unlike
    assert plan_of().digest != other.digest


class Uniform(RuleModel):
    """Whatever the prompt looks like, all labels are as probable."""

    def __init__(self) -> None:
        super().__init__(lambda *_: [1.0])

    def score(self, prompts: Sequence[Prompt]) -> Iterator[Scored]:
        for i, prompt in enumerate(prompts):
            yield Scored(i, np.full(len(prompt.continuations), -1.0))


def test_a_template_of_the_same_name_and_other_words_is_another_plan(tmp_path: Path) -> None:
    plans = []
    for word in ("Question", "Problem"):
        path = tmp_path / "own.toml"
        path.write_text(
            f'question = "{word}: {{{{ stem }}}} {{% for o in options %}}{{{{ o.text }}}} {{% endfor %}}"\n'
        )
        plans.append(plan_of(model=Uniform(), template=str(path)))
    assert plans[0].differs_from(plans[1]) == "templates"


def test_other_worked_examples_are_another_plan() -> None:
    pool = [replace(question, id=f"x{question.id}", stem=f"Once: {question.stem}") for question in QUESTIONS]
    plans = [plan_of(model=Uniform(), shots=2, shots_from=one) for one in (pool, pool[2:][::2])]
    assert plans[0].differs_from(plans[1]) == "worked examples"


def test_the_file_of_a_plan_is_written_once_and_then_compared(tmp_path: Path) -> None:
    path, plan = tmp_path / "plan.json", plan_of()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: plan.agree(path), range(40)))
    assert Plan.from_json(path) == plan
    assert [file.name for file in tmp_path.iterdir()] == ["plan.json"]
    before = path.read_bytes()
    with pytest.raises(
        InputError, match=r"plan\.json: is the plan of another run: its settings \(orders 'auto' and 'all'"
    ):
        plan_of(orders="all").agree(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("text", "problem"),
    [("{", "is not a plan"), ("[1]", "is not a plan: not a JSON object"), ("{}", "missing"), ("", "is not a plan")],
)
def test_a_file_that_is_not_a_plan_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(InputError, match=problem):
        plan_of().agree(path)


def test_a_plan_is_written_where_files_cannot_be_linked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*names: object) -> None:
        raise OSError("a file system without links")

    monkeypatch.setattr("os.link", refused)
    plan_of().agree(tmp_path / "plan.json")
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]


def test_the_first_question_has_no_question_before_it_whose_passage_it_could_share() -> None:
    parts = [stretch(Shard(i, 2), ["one", "two", "three", "one"], [10, 10, 10, 10, 0]) for i in (1, 2)]
    assert sorted(place for part in parts for place in part) == [0, 1, 2, 3]


def test_a_changed_plan_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    plan_of().agree(path)
    path.write_text(path.read_text().replace('"n_questions": 24', '"n_questions": 25'))
    with pytest.raises(InputError, match="its plan is damaged"):
        Plan.from_json(path)


def test_everything_in_a_plan_can_be_pickled() -> None:
    question = QUESTIONS[2]
    chooser = ShotChooser(QUESTIONS, 2)
    shown = present(question).with_shots(chooser.of(question))
    everything: list[object] = [question, shown, chooser, plan_of(), ShardOptions(shard="1/2")]
    everything += [*audit_presentations(question, "all", tuple("ABCD")), *control_presentations(4)]
    for name in template_names():
        writer = Writer(load_template(name))
        for elicitation in (Cloze(writer), Counterfactual(writer)):
            prompts = elicitation.prompts(shown)  # compiles the template
            again = pickle.loads(pickle.dumps(elicitation))
            assert again == elicitation
            assert again.prompts(shown) == prompts
            everything += [elicitation, writer, *prompts]
    everything += [Decision(), *Decision().prompts(present(question))]
    for one in everything:
        again = pickle.loads(pickle.dumps(one))
        assert isinstance(one, ShotChooser) or again == one
    assert pickle.loads(pickle.dumps(chooser)).of(question) == chooser.of(question)

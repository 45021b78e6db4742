"""A plugin of ``helm-run``: the questions of rows.json as a scenario, every third in another split.

unslant reads the split ``test``, which HELM reports apart from ``valid``.
"""

import json
from pathlib import Path

from helm.benchmark.adaptation.common_adapter_specs import get_multiple_choice_adapter_spec
from helm.benchmark.metrics.common_metric_specs import get_exact_match_metric_specs
from helm.benchmark.run_spec import RunSpec, run_spec_function
from helm.benchmark.scenarios.scenario import CORRECT_TAG, Input, Instance, Output, Reference, Scenario, ScenarioSpec


class OwnScenario(Scenario):
    name, description, tags = "own", "the questions of rows.json", []

    def get_instances(self, output_path):
        return [
            Instance(
                input=Input(text=row["question"]),
                references=[
                    Reference(Output(text=text), tags=[CORRECT_TAG] * (k == row["answer"]))
                    for k, text in enumerate(row["options"])
                ],
                split="valid" if i % 3 == 2 else "test",
            )
            for i, row in enumerate(json.loads(Path("rows.json").read_text()))
        ]


@run_spec_function("own")
def own(method: str) -> RunSpec:
    return RunSpec(
        name=f"own:method={method}",
        scenario_spec=ScenarioSpec(class_name="own_helm.OwnScenario", args={}),
        adapter_spec=get_multiple_choice_adapter_spec(
            method=method, instructions="", input_noun="Question", output_noun="Answer", max_train_instances=0
        ),
        metric_specs=get_exact_match_metric_specs(),
        groups=["own"],
    )

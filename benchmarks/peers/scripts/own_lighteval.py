"""Tasks of lighteval on the questions of own/test.jsonl: labels under a list of options, and texts alone."""

from lighteval.metrics.metrics import Metrics
from lighteval.tasks.lighteval_task import LightevalTaskConfig
from lighteval.tasks.requests import Doc


def _labels(line, task_name=None):
    page = "".join(f"{label}. {text}\n" for label, text in zip("ABCD", line["options"], strict=True))
    query = f"Question: {line['question']}\n{page}Answer:"
    return Doc(task_name=task_name, query=query, choices=[f" {label}" for label in "ABCD"], gold_index=line["answer"])


def _texts(line, task_name=None):
    choices = [f" {text}" for text in line["options"]]
    return Doc(
        task_name=task_name, query=f"Question: {line['question']}\nAnswer:", choices=choices, gold_index=line["answer"]
    )


TASKS_TABLE = [
    LightevalTaskConfig(
        name=name,
        prompt_function=function,
        hf_repo="own",  # a folder
        hf_subset="default",
        hf_avail_splits=["test"],
        evaluation_splits=["test"],
        metrics=[Metrics.loglikelihood_acc],
    )
    for name, function in (("own_labels", _labels), ("own_texts", _texts))
]

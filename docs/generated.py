"""Pages that are written when the site is built: the command line, and the JSON from small results of every study.

``python -m docs.generated`` updates the table of every metric in ``docs/metrics.md``.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pkgutil
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

START, END = "<!-- metrics: generated -->", "<!-- end of metrics -->"


def cli() -> str:
    """Every command with its options, from the command line itself."""
    from unslant.cli import app

    def inherit(group: Any) -> None:  # which the generator does not do
        for name in group:
            if not name.startswith("-"):
                group[name].default_parameter = app.default_parameter
                group[name].group_parameters = app.group_parameters
                inherit(group[name])

    inherit(app)
    text = app.generate_docs(heading_level=1)
    text = re.sub(r"^# unslant$", "# Command line", text, count=1, flags=re.M)
    return re.sub(r"\n## Table of Contents\n.*?(?=\n\*\*Commands)", "", text, count=1, flags=re.S)


JSON = """# JSON, key by key

Every key that `--json FILE` and `to_json` write, study by study; what all files share is described in
[files of results](../results.md). `{...}` means names: subjects, labels, methods, numbers of options. `[]` is a
list. A *number* is an object `{"value", "low", "high", "n", "method", "confidence", "note"}`: the value, its 95 %
interval, how many questions it rests on, how the interval was made, and why it or the value is missing. Keys that only
some runs have (of replies, of one order) are listed with the others.
"""
META = {
    "study": "the study's name",
    "headline": "the outcome in a sentence, as printed",
    "lines": "at most three more sentences, as printed",
    "caveats": "what must be known before the first number: records left out, by reason, and readings in doubt",
    "unslant": "version that measured",
    "provenance": "how the result was made: versions, models, questions, settings, command",
    "questions_digest": "SHA-256 of the questions asked, in order",
    "settings": "settings of the study",
    "loading": "what loading the questions met: records read, skipped and changed, by reason",
    "identity": "digests of all that can change a score of the model",
    "engine": "how prompts were scored: `tree` or `plain`",
    "example_prompt": "one prompt as it was sent",
    "questions": "name of the question set",
    "model": "name of the model",
    "parameters": "number of the model's weights",
    "requests": "what the replies have cost",
    "asked": "what each model was asked for, and what its replies have cost",
    "phrase": "the preference in words",
    "logged": "of an audit of a log: what was read, and what was left out",
    "order_costs": "orders -> what the audit in these orders costs, in ordinary runs",
    "cost_once": "what of `order_costs` does not grow with the questions, such as prompts without a question",
    "two_phase": "beyond 200 questions: those shown in all orders, and the prompts of an audit that shows all so",
    "until": "with `--until`: the half-width asked for, whether it was reached, and every number after each step",
    "stopped": "ids of the questions that were asked no further",
    "checked": "ids of the questions asked in all orders all the same",
    "requests_of_all": "requests that all questions in all orders would have taken",
    "questions_judged": "how many questions",
    "confidences_missing": "replies without a confidence",
    "trained_on": "method -> the set it was trained on, with `--train`",
    "temperatures": "sampling temperatures",
    "polished": "instruction -> what it was rewritten to",
    "by_subject": "value of each subject",
    "readings": "variants whose Nvr-X differs from the median of the others",
    "quartiles": "of r over subjects",
}
"""Keys that no dataclass has as a field."""
PLAIN = {
    "cost": "prompts, tokens and seconds",
    "ordinary_runs": "tokens over those of the published order alone, each prompt whole",
    "labels": "label symbols, in their usual sequence",
    "n_options": "options of a question",
    "n_orders": "orders that were shown",
    "n_subjects": "how many subjects",
    "n_labels": "how many labels",
    "elicitation": "how it was asked: `cloze`, `counterfactual`, `generate`",
    "method": "name of the method",
    "name": "what it is called",
    "note": "why a value is missing, or what to keep in mind",
    "notes": "what to keep in mind",
    "left_out": "what is left out, and why",
    "presentation": "how it was shown",
    "subject": "name of the subject",
    "label": "label symbol",
    "n": "how many questions",
    "p": "p-value; of several hypotheses tested together, corrected for their number",
    "n_failed": "prompts without a score",
    "measure": "key of the number",
    "run": "name of the run",
    "kind": "multiple choice or judging",
    "setting": "name of the instruction setting",
    "models": "names of the models",
    "seed": "of all random choices",
    "holds": "whether the hypothesis holds",
    "trusted": "whether ties leave the number reliable",
    "doubt": "why it is not trusted; empty if it is",
    "uneven": "whether base rates differ significantly, and by enough to matter",
    "gained": "questions right only under the setting",
    "lost": "questions right only under vanilla",
    "temperature": "sampling temperature",
    "max_tokens": "longest reply",
    "judge": "model that reads replies which the patterns cannot",
    "polisher": "model that rewrote the instruction",
}
"""Keys that mean the same wherever they stand, and need no more."""
ATTRIBUTES = {
    "elicitations": "found",
    "accuracy_by_gold_label": "gold",
    "pooled_correlation_own_base_rates": "correlation",
    "subject_correlation_cloze_base_rates": "by_subject",
}
"""Key -> attribute, where a result calls them differently."""
KINDS: dict[type, str] = {dict: "object", list: "list", str: "text", bool: "true or false"}


def talker() -> Any:
    """A chat model that always takes A, and says how sure it is."""
    from unslant.models import ChatModel, ModelInfo, Reply

    class Talker(ChatModel):
        def at(self, generate: Any) -> Talker:
            return self

        def replies_to(self, prompts: Sequence[Any]) -> Iterator[Reply]:
            yield from (Reply(index, "Confidence: 80%. Answer: A") for index in range(len(prompts)))

    return Talker(ModelInfo(name="talker", remote=True))


def logged() -> list[Path]:
    """A log of lm-eval of one sample with a wrong score."""
    options = {
        f"gen_args_{i}": {"arg_0": "Which?\nA. x\nB. y\nAnswer:", "arg_1": f" {label}"} for i, label in enumerate("AB")
    }
    sample = {"doc_id": 0, "doc": {"question": "Which?"}, "target": "0", "arguments": options, "filter": "none"}
    sample |= {"resps": [[["-1", "False"]], [["-2", "False"]]], "acc": 0.0}
    path = Path(tempfile.mkdtemp()) / "samples_t.jsonl"
    path.write_text(json.dumps(sample), "utf-8")
    return [path]


def results() -> Iterator[Any]:
    """Small results of every study, with all that only some runs have."""
    import unslant
    from unslant.studies.unbiased.annotation import agreement_of

    asked: dict[str, Any] = {"limit": 8}
    audits = [unslant.audit(name, "embedded", **asked) for name in ("fair", "prefers-a")]
    yield audits[0]
    yield unslant.audit("fair", "embedded", orders="given", **asked)
    yield unslant.audit("fair", "embedded", until=0.2, limit=40)
    yield unslant.audit(talker(), "embedded", repeats=2, adaptive=True, **asked)
    yield unslant.audit(log=logged())
    yield unslant.compare(*audits)
    yield unslant.Leaderboard.of(audits)
    yield unslant.study.base_rate("fair", "embedded", **asked)
    unbiased = [unslant.study.unbiased(name, "embedded", **asked) for name in ("fair", "prefers-a", "memorised")]
    yield unbiased[0]
    yield unslant.compare(*unbiased)
    yield unslant.study.contamination("fair", "embedded", against="memorised", **asked)
    yield unslant.study.judge("prefers-a", limit=120)
    yield unslant.study.judge(["fair", "prefers-a"], limit=60)
    yield unslant.study.debias("fair", "embedded", methods=["vote", "pride"], **asked)
    yield unslant.study.probe(["fair", "prefers-a"], "embedded", **asked)
    yield unslant.study.instruction_boundary("words", limit=4)
    yield unslant.study.instruction_boundary("words", limit=4, temperature=[0.0, 1.0], settings=["vanilla"])
    yield agreement_of({"ann": {"1": True, "2": True}, "bob": {"1": True, "2": False}}, {"1": "DH", "2": "DH"})
    yield unslant.check_questions("embedded")
    yield unslant.plan(half_width=0.05)


def sections() -> dict[tuple[str, str], dict[str, tuple[str, str]]]:
    """Class and study of each result -> path of each key -> its kind, and its meaning or ``""``."""
    found: dict[tuple[str, str], dict[str, tuple[str, str]]] = {}
    for result in results():
        rows = found.setdefault((type(result).__name__, result.study), {})
        rows |= {path: row for path, row in _keys(result.to_dict(), result) if row[1] or path not in rows}
    for rows in found.values():  # what is empty in one result and described within another
        for path in [path for path in rows if any(other.startswith((f"{path}[]", f"{path}.")) for other in rows)]:
            if not rows[path][1]:
                del rows[path]
    return found


def json_keys() -> str:
    """The page on JSON; without its tables, which take a minute, where ``UNSLANT_DOCS=quick`` is set."""
    if os.environ.get("UNSLANT_DOCS") == "quick":
        return JSON
    parts = []
    for (name, study), rows in sections().items():
        table = [f"| `{path}` | {kind} | {meaning} |" for path, (kind, meaning) in rows.items()]
        parts += [f"## `{name}` (study `{study}`)", "", "| key | holds | |", "|---|---|---|", *table, ""]
    return JSON + "\n" + "\n".join(parts)


def _keys(shown: Any, of: Any, path: str = "") -> Iterator[tuple[str, tuple[str, str]]]:
    """Path, kind and meaning of every key of an object in JSON, and of those within it.

    Args:
        of: what it was made of: a dataclass has fields, a mapping names, which are treated alike; None where that is
            not known. Objects with the same keys then have names.
    """
    alike = [value.keys() for value in shown.values() if isinstance(value, dict)]
    same = 1 < len(alike) == len(shown) and all(keys == alike[0] for keys in alike)
    named = bool(path) and (_has_names(of) or (of is None and (same or path.endswith(".by_subject"))))
    for key, value in list(shown.items())[: 1 if named else None]:
        here = ".".join(filter(None, (path, "{...}" if named else key)))
        fields = {str(name): item for name, item in of.items()} if _has_names(of) else {}
        inner = fields.get(key) if fields else getattr(of, ATTRIBUTES.get(key, key), None)
        if inner is None and not path:  # JSON has the run's facts among those of the result
            inner = getattr(getattr(of, "run", None), key, None)
        if isinstance(value, dict) and isinstance(inner, tuple):  # a sequence that is written under names
            inner = None
        if isinstance(value, list) and value and isinstance(value[0], dict):
            here, value, inner = f"{here}[]", value[0], _first(inner)
        number = isinstance(value, dict) and {"value", "low", "high", "n"} <= set(value)
        kind, meaning = "number" if number else KINDS.get(type(value), "value"), _meaning(path, key, of)
        if not isinstance(value, dict) or number or key in META:
            if meaning or not named:  # the object that has a name as key explains it
                yield here, (kind, meaning)
        elif {"study", "headline"} <= set(value):
            yield here, (kind, f"a result of the study `{value['study']}`, as it is listed there")
        else:
            names = _has_names(inner) or not any(isinstance(item, dict | list) for item in value.values())
            if meaning or (names and not named):
                yield here, (kind, meaning)
            yield from _keys(value, inner, here)


def _has_names(of: Any) -> bool:
    """Whether the keys of an object are names of something; those of :class:`Numbers` are metrics."""
    from unslant.metrics import Numbers

    return isinstance(of, Mapping) and not isinstance(of, Numbers)


def _first(of: Any) -> Any:
    """The first item of a sequence, or what is described of a first item that is a pair."""
    item = next(iter(of), None) if isinstance(of, tuple | list) else None
    return next(filter(dataclasses.is_dataclass, item), item) if isinstance(item, tuple) else item


def _meaning(path: str, key: str, of: Any) -> str:
    """What a key holds: from the record of the number, or from the docstring of the dataclass it is a field of."""
    from unslant.metrics.catalogue import metric_at

    if found := _attributes(of).get(key):
        return found
    if record := metric_at([*path.replace("[]", "").split("."), key]) if path else None:
        return f"{record.name}: {record.meaning}" if record.key.endswith(key) else ""
    return META.get(key) or PLAIN.get(key) or _attributes(getattr(of, "run", None)).get(key, "")


def _attributes(of: Any) -> dict[str, str]:
    """Field -> its text in the docstrings of a dataclass and its bases."""
    found: dict[str, str] = {}
    for kind in type(of).__mro__[::-1] if dataclasses.is_dataclass(of) else ():
        _, _, text = (kind.__doc__ or "").partition("Attributes:\n")
        for names, meaning in re.findall(r"^ {8}([\w, ]+): (.*(?:\n {12}.*)*)", text, flags=re.M):
            plain = re.sub(r":\w+:`~?\.?([^`]*)`", r"`\1`", " ".join(meaning.split()))
            found |= dict.fromkeys(names.split(", "), plain.replace("``", "`").replace("|", "\\|"))
    return found


def metric_tables() -> str:
    """Every metric by the module or study that computes it, for ``docs/metrics.md``."""
    import unslant
    from unslant.metrics import METRICS, Metric

    for found in pkgutil.walk_packages(unslant.__path__, "unslant."):
        if found.name.split(".")[1] in ("metrics", "auditing", "studies"):
            import_module(found.name)
    groups: dict[str, list[Metric]] = {}
    for metric in sorted(METRICS.values(), key=lambda metric: metric.key):
        groups.setdefault(_title(metric.home), []).append(metric)
    lines = []
    for title in sorted(groups):
        lines += [f"### {title}", "", "| key | name | meaning | scale | source |", "|---|---|---|---|---|"]
        lines += [f"| `{m.key}` | {m.name} | {m.meaning} | {m.scale} | {m.source} |" for m in groups[title]]
        lines.append("")
    return "\n".join(lines)


def _title(home: str) -> str:
    """``Order curve`` for ``unslant.metrics.order_curve``; the name of the study for a metric of a study."""
    _, room, *rest = home.split(".")
    name = {"auditing": "audit", "metrics": rest[0]}.get(room) or f"study {' '.join(rest[:-1])}"
    return name.replace("_", " ").capitalize()


def with_metric_tables(page: str) -> str:
    """A page with the tables between its markers."""
    before, rest = page.split(START)
    return f"{before}{START}\n\n{metric_tables()}\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    metrics_page = Path(__file__).parent / "metrics.md"
    metrics_page.write_text(with_metric_tables(metrics_page.read_text("utf-8")), "utf-8")

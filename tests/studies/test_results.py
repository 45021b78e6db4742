"""Results in Python: how they introduce themselves, tables, charts, comparisons; models and options as objects."""

from __future__ import annotations

import base64
import dataclasses
import inspect
import math
import pickle
import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_type_hints

import numpy as np
import pytest

import unslant
from tests.fakes import RuleModel
from tests.reports.results import RESULTS, audited, compared, page_of
from unslant.auditing import AuditSettings
from unslant.errors import InputError
from unslant.experiment.result import RecordedResult
from unslant.models import GenerateOptions, ModelOptions, ScoringModel
from unslant.models.open import opened
from unslant.questions import QuestionSet
from unslant.reference import reference_path
from unslant.responses import Response, Responses
from unslant.responses.provenance import Provenance
from unslant.studies.debias.settings import AnswerKeywords, AnswerSettings

BAD = "<script>alert(1)</script>\x1b[31m"


@pytest.mark.thorough
def test_every_result_says_how_it_was_made_in_the_same_words(subtests: pytest.Subtests) -> None:
    for name, make in RESULTS.items():
        with subtests.test(name):
            result = make()
            told = result.to_dict()
            assert list(told)[:6] == ["unslant", "study", "headline", "lines", "caveats", "provenance"]
            assert set(told["provenance"]) == set(Provenance.model_fields)
            Provenance.model_validate(told["provenance"])


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)


def flat(value: Any, key: str = "") -> dict[str, Any]:
    """Every plain value by its path."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if items is None:
        return {key: value}
    return {k: v for name, item in items for k, v in flat(item, f"{key}.{name}".lstrip(".")).items()}


def uniform(stem: str, labels: list[str], texts: list[str]) -> list[float]:
    return [1.0 + len(text) for text in texts]


def questions(n: int = 6) -> list[unslant.Question]:
    return [unslant.Question(f"q{i}", f"Is it {i}?", ("yes", "no", "may be"), frozenset({i % 3})) for i in range(n)]


@pytest.mark.thorough
def test_every_result_introduces_itself_in_a_few_lines(subtests: pytest.Subtests) -> None:
    for name, make in RESULTS.items():
        with subtests.test(name):
            result = make()
            lines = repr(result).splitlines()
            assert lines[0].startswith(f"{type(result).__name__}: ")
            assert 2 <= len(lines) <= 8
            assert max(map(len, lines)) <= 100
            assert "".join(result.headline.split())[:300] in "".join(repr(result).split())


@pytest.mark.thorough
def test_every_result_shows_itself_in_a_notebook(subtests: pytest.Subtests) -> None:
    for name, make in RESULTS.items():
        with subtests.test(name):
            result = make()
            tags = Tags(result._repr_html_()).tags
            assert tags.count("table") == any(panel.tables for panel in page_of(name).sections)
            assert tags.count("dt") == len(page_of(name).tiles)
            assert not {"script", "link", "img", "iframe"} & set(tags)


def test_names_from_outside_are_text_in_a_notebook_and_at_the_prompt() -> None:
    found = replace(audited(), responses=replace(audited().responses, run=replace(audited().run, model=BAD)))
    assert "script" not in Tags(found._repr_html_()).tags
    assert "&lt;script&gt;" in found._repr_html_()
    assert "\x1b" not in repr(found)


@pytest.mark.thorough
def test_every_number_of_every_result_is_a_row_with_its_key_in_json(subtests: pytest.Subtests) -> None:
    for name, make in RESULTS.items():
        with subtests.test(name):
            result = make()
            frame = result.to_pandas("metrics")
            assert list(frame.columns) == [
                "key", "name", "value", "low", "high", "n", "method", "note", "meaning", "unit",
            ]  # fmt: skip
            assert len(frame) > 3
            assert frame["key"].is_unique
            told = flat(result.to_dict())
            for key, value in zip(frame["key"], frame["value"], strict=True):
                found = told[f"{key}.value"] if f"{key}.value" in told else told[key]
                assert found == value or (found is None and math.isnan(value))


def test_a_question_without_a_right_option_has_a_row_too() -> None:
    questions = [
        unslant.Question("q1", "Which is a fruit?", ("wool", "apple"), frozenset({1})),
        unslant.Question("q2", "Which is a metal?", ("milk", "paper"), frozenset()),
    ]
    frame = unslant.study.base_rate("fair", questions).to_pandas()
    assert frame["question"].tolist() == ["q1", "q2"]
    assert frame["asked"].tolist() == [6, 2]  # that without a right option is in no Nvr-X
    assert frame["right"][1] == 0


def test_a_scored_label_is_right_if_it_is_one_of_several_and_a_reply_if_it_names_all() -> None:
    def row(name: str, chosen: set[int], answers: set[int], scores: Any = None) -> Response:
        labels, contents = ("A", "B", "C"), (0, 1, 2)
        return Response(name, "order", "cloze", labels, contents, frozenset(answers), 3, scores, frozenset(chosen))

    scores = np.log([0.5, 0.3, 0.2])
    rows = [row("1", {0}, {0, 1}, scores), row("2", {0}, {1, 2}, scores), row("3", {0}, set(), scores)]
    rows += [row("4", {0}, {0, 1}), row("5", {0, 1}, {0, 1}), row("6", set(), set())]

    class Result(RecordedResult):
        responses = Responses.from_rows(rows)

    assert Result().of_questions()["right"] == [1, 0, 0, 0, 1, 1]


@pytest.mark.thorough
def test_a_result_is_a_row_a_question(subtests: pytest.Subtests) -> None:
    for name, make in RESULTS.items():
        result = make()
        responses = getattr(result, "responses", None)
        with subtests.test(name):
            frame = result.to_pandas()
            if responses is None:
                assert "key" in frame
                continue
            assert set(frame["question"]) == {row.question_id for row in responses.rows() if row.kind != "control"}
            assert frame["question"].is_unique
            if isinstance(result, unslant.AuditResult):
                assert frame["accuracy"].mean() == pytest.approx(result.metrics.means["accuracy"].value)
            else:
                assert (frame["right"] <= frame["answered"]).all()
                assert (frame["answered"] <= frame["asked"]).all()


@pytest.mark.thorough
def test_a_plot_brings_all_it_needs(tmp_path: Path) -> None:
    chart = audited().plot()
    shown, about = chart._repr_mimebundle_()
    assert base64.b64decode(shown["image/png"]).startswith(b"\x89PNG")
    assert about["image/png"]["width"] > 300
    chart.save(tmp_path / "chart.html")
    for page in (chart.to_html(), (tmp_path / "chart.html").read_text("utf-8")):
        assert not re.search(r"<script[^>]*src=|@import|cdn", page)


@pytest.mark.parametrize("wrong", [3, None, b"x", ["r.html"]])
def test_what_is_not_a_path_is_refused_in_one_line(wrong: Any, subtests: pytest.Subtests) -> None:
    for result in (audited(), compared()):
        for name in ("to_html", "to_json", "to_parquet", "save_figures", "save_tables"):
            what = "folder" if name.startswith("save") else "path"
            with subtests.test(name), pytest.raises(InputError, match=f"^{what} of type {type(wrong).__name__}: give"):
                getattr(result, name)(wrong)
    with pytest.raises(InputError, match=r"^width 'x': give a whole number"):
        audited().summary(width="x")  # type: ignore[arg-type]
    for read in (audited().to_pandas, audited().plot):
        with pytest.raises(InputError, match=r"audit: no (table|chart) 3: use one of"):
            read(3)


def test_a_notebook_sees_progress_and_a_program_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    from unslant.asking import no_progress
    from unslant.experiment.running import progress_of_python

    assert progress_of_python() is no_progress
    shell = SimpleNamespace(kernel=object())
    lines: list[str] = []

    class Handle:
        def update(self, found: dict[str, str], raw: bool) -> None:
            lines.append(found["text/plain"])

    def display(found: dict[str, str], raw: bool, display_id: bool) -> Handle:
        lines.append(found["text/plain"])
        return Handle()

    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell, display=None))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    unslant.audit("fair", "embedded", limit=3, orders="reverse")
    assert any("of" in line for line in lines)


def test_the_tables_of_an_audit() -> None:
    found = audited()
    frame = found.to_pandas("metrics").set_index("key")
    assert frame.loc["metrics.means.accuracy", "name"] == "accuracy, as published"
    assert frame.loc["metrics.means.accuracy", "value"] == found.metrics.means["accuracy"].value
    assert len(found.to_pandas("responses")) == len(found.responses)
    assert found.to_pandas("labels")["label"][0] == "A"
    assert len(found.to_pandas("options")) == len(found.metrics.counts.by_options)
    assert set(compared().to_pandas("subjects")["subject"]) == set(compared().parts[0].metrics.by_subject)
    with pytest.raises(unslant.InputError, match="no table 'label': did you mean 'labels'\\? use one of metrics, ques"):
        found.to_pandas("label")
    with pytest.raises(unslant.InputError, match="no table 'responses'"):
        compared().to_pandas("responses")


@pytest.mark.thorough
def test_the_charts_of_every_result_can_be_plotted(subtests: pytest.Subtests) -> None:
    for name, make in RESULTS.items():
        with subtests.test(name):
            result = make()
            charts = [chart for panel in page_of(name).sections for chart in panel.charts]
            if not charts:
                with pytest.raises(unslant.InputError, match="tables only"):
                    result.plot()
                continue
            last = charts[-1]  # all are drawn in tests/reports
            assert result.plot(last.id).to_dict()["title"]["text"] == last.title
            assert result.plot().to_dict()["title"]["text"] == charts[0].title
            with pytest.raises(unslant.InputError, match="use one of"):
                result.plot("nosuch")


def test_results_and_files_of_results_are_compared(tmp_path: Any) -> None:
    runs = list(compared().runs.values())
    for i, run in enumerate(runs):
        run.to_parquet(tmp_path / f"{i}.parquet")
    found = unslant.compare(*runs)
    assert isinstance(found, unslant.AuditComparison)
    headline = found.headline  # what it keeps of a look can be pickled too
    assert pickle.loads(pickle.dumps(found)).headline == headline
    for other in (unslant.compare(tmp_path / "0.parquet", runs[1]), compared()):
        assert repr(found.differences) == repr(other.differences)  # nan is not equal to itself
    same = unslant.compare(tmp_path / "0.parquet", str(tmp_path / "0.parquet"))
    assert list(same.runs) == [f"{runs[0].name} (1)", f"{runs[0].name} (2)"]
    unbiased = RESULTS["unbiased"]()
    assert isinstance(unslant.compare(unbiased, unbiased.renamed("other")), unslant.UnbiasedComparison)
    for wrong in ((), (runs[0],), (runs[0], unbiased)):
        with pytest.raises(unslant.InputError, match="compare"):
            unslant.compare(*wrong)


def test_options_may_be_numbers_and_lists() -> None:
    model = RuleModel(uniform)
    found = unslant.audit(
        model, questions(), labels=["X", "Y", "Z"], orders=3, shots=1, shots_from=QuestionSet.of(questions())
    )
    assert found.responses.table["labels"].to_pylist()[0] == ["X", "Y", "Z"]
    assert found.run.settings["orders"] == "3"
    assert AuditSettings(labels="X,Y,Z", orders="3") == AuditSettings(labels=["X", "Y", "Z"], orders=3)
    study = unslant.study.debias(model, QuestionSet.of(questions()), methods="vote,pride:alpha=0.5")
    assert {entry.method for entry in study.entries} == {"none", "vote", "pride:alpha=0.5"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"limit": "5"}, "limit '5': give a whole number"),
        ({"shots": 1.5}, "shots 1.5: give a whole number"),
        ({"seed": True}, "seed True: give a whole number"),
        ({"chat": "yes"}, "chat 'yes': give True or False"),
        ({"orders": None}, "orders None: give a text"),
        ({"shots_from": {}}, "shots_from"),
        ({"labels": ["X", "X", "Y"]}, "label 'X' is given twice"),
        ({"orders": 2.5}, "2.5"),
    ],
    ids=str,
)
def test_options_of_other_types_are_named_before_any_scoring(options: Mapping[str, Any], words: str) -> None:
    model = RuleModel(uniform)
    with pytest.raises(unslant.InputError, match=words):
        unslant.audit(model, questions(), **options)
    assert not model.seen


@pytest.fixture(scope="module")
def loaded() -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = reference_path("fair")
    return AutoModelForCausalLM.from_pretrained(folder, dtype="float32"), AutoTokenizer.from_pretrained(folder)


@pytest.mark.thorough
def test_a_loaded_model_of_transformers_is_opened_with_its_tokenizer(loaded: tuple[Any, Any]) -> None:
    import transformers

    model, tokenizer = loaded
    found = unslant.audit(unslant.open_model(model, tokenizer=tokenizer), questions(), orders="reverse")
    named = unslant.audit("fair", questions(), orders="reverse")
    assert found.metrics.to_dict() == named.metrics.to_dict()
    pipeline = transformers.pipeline("text-generation", model=model, tokenizer=tokenizer)
    for given in (pipeline, unslant.open_model(pipeline)):
        assert unslant.audit(given, questions(), orders="reverse").metrics.to_dict() == named.metrics.to_dict()
    with pytest.raises(unslant.InputError, match=r"a pipeline in memory .* for replies give the model's name"):
        unslant.audit(pipeline, questions(), elicit="generate")
    for wrong in (model, loaded, (model,)):
        with pytest.raises(unslant.InputError, match=r"open_model\(model, tokenizer=tokenizer\)"):
            unslant.audit(wrong, questions())
    with pytest.raises(unslant.InputError, match="already loaded"):
        unslant.open_model(model, tokenizer=tokenizer, device="cpu")
    with pytest.raises(unslant.InputError, match="its own tokenizer"):
        unslant.open_model("fair", tokenizer=tokenizer)


def test_a_model_that_its_owner_is_training_goes_on_training(loaded: tuple[Any, Any]) -> None:
    model, tokenizer = loaded
    model.train()
    model.model.layers[0].eval()
    modes = [module.training for module in model.modules()]
    found = unslant.audit(unslant.open_model(model, tokenizer=tokenizer), questions(), orders="reverse")
    assert [module.training for module in model.modules()] == modes
    model.eval()
    assert found.metrics.to_dict() == unslant.audit("fair", questions(), orders="reverse").metrics.to_dict()


def test_what_is_not_a_model_says_what_one_is() -> None:
    class Half:
        name = "half"

        def score(self, prompts: object) -> None: ...

    for other in (3, Half()):
        name = type(other).__name__
        with pytest.raises(unslant.InputError, match=f"{name} is not a model; .* a subclass of unslant.models.Scoring"):
            opened(other)
    with pytest.raises(unslant.InputError, match="rule can score only"):
        opened(RuleModel(uniform), ("generate",))
    model = RuleModel(uniform)
    assert opened(model) is opened(lambda: model) is model

    class Replies:
        def generate(self, prompts: object) -> None: ...

    class NoInfo(ScoringModel):
        def __init__(self) -> None: ...
        def score(self, prompts: object) -> Any: ...

    class NoConfig(Half):
        config = None

        def get_input_embeddings(self) -> None: ...

    class Tokenizer:
        def __call__(self, text: str = "") -> None:
            raise ValueError("it was called")

    class Factory:
        def __init__(self) -> None:
            raise OSError("it was called")

    engine = type("LLM", (), {"__module__": "vllm.entrypoints.llm"})()
    for other, words in (
        (Replies(), "Replies is not a model; .* or a function: of a prompt, which returns the reply"),
        (NoInfo(), r"NoInfo has no info: call super\(\).__init__\(ModelInfo\(name="),
        (NoConfig(), "NoConfig is not a model"),
        (Tokenizer(), "Tokenizer is not a model; give a name"),
        (Factory, "type is not a model; give a name"),
        (lambda prompt, limit: "A", "function is not a model; .* or without arguments, which loads a model"),
        (engine, "LLM is a model in memory that unslant cannot ask directly: start `vllm serve NAME`"),
    ):
        for ask in (unslant.audit, unslant.debias, unslant.study.base_rate, lambda *model: unslant.Debiased(model[0])):
            with pytest.raises(unslant.InputError, match=words):
                ask(other, questions())
    with pytest.raises(unslant.InputError, match="NoConfig is not a model"):
        unslant.open_model(NoConfig(), tokenizer=object())


def test_a_model_without_an_output_over_the_vocabulary_is_refused() -> None:
    class Classifier:
        config = SimpleNamespace(name_or_path="x")

        def get_input_embeddings(self) -> None: ...
        def get_output_embeddings(self) -> None: ...

    with pytest.raises(
        unslant.InputError, match=r"Classifier has no output over the vocabulary; .* reward:NAME_OR_FOL"
    ):
        unslant.open_model(Classifier(), tokenizer=object())


def test_options_of_replies_are_refused_where_labels_are_scored() -> None:
    for option in ({"temperature": 0.7}, {"max_tokens": 50}):
        with pytest.raises(unslant.InputError, match=f"^labels are scored .*{next(iter(option))}"):
            unslant.audit("fair", questions(), **option)
        unslant.audit("words", questions(), elicit="generate", **option)


def test_options_of_loading_are_those_of_the_command_and_refused_where_they_have_no_effect(tmp_path: Path) -> None:
    loaded, asked = unslant.open_model("fair"), questions()
    for call in (
        lambda model, **how: unslant.audit(model, asked, **how),
        lambda model, **how: unslant.leaderboard([model], asked, **how),
        lambda model, **how: unslant.debias(model, asked, **how),
        lambda model, **how: unslant.Debiased(model, "vote", **how),
        lambda model, **how: unslant.train(model, asked, tmp_path / "adapter", **how),
    ):
        with pytest.raises(unslant.InputError, match="dtype 'int8': use one of auto"):
            call("fair", device="cpu", dtype="int8")
        with pytest.raises(unslant.InputError, match="the model is already loaded: leave out device and dtype, which"):
            call(loaded, device="cpu", dtype="float32")
    with pytest.raises(unslant.ModelError, match="no connection"):
        unslant.debias("m", asked, base_url="http://127.0.0.1:9/v1")
    with pytest.raises(unslant.InputError, match="max_tokens=5"):
        unslant.debias("fair", asked, max_tokens=5)


def test_debiased_models_fit_and_predict() -> None:
    model = unslant.Debiased("prefers-a", "pride", fit=None, device="cpu")
    asked = list(unslant.load_questions("embedded", limit=12))
    with pytest.raises(unslant.InputError, match=r"pride is not fitted, or was closed: call fit\(questions\) first"):
        model.predict(asked)
    with model.fit(asked[:8]):
        chosen, probs = model.predict(asked[8:]), model.predict_proba(asked[8:])
    assert chosen.tolist() == [int(np.argmax(one)) for one in probs]
    assert [one.shape for one in probs] == [(len(question.options),) for question in asked[8:]]
    assert [one.sum() for one in probs] == pytest.approx([1.0] * 4)
    with unslant.Debiased("prefers-a", "pride", fit=asked[:8], device="cpu") as at_once:
        assert at_once.predict(asked[8:]).tolist() == chosen.tolist()
    assert unslant.Debiased(RuleModel(uniform), "vote").fit(asked).predict(questions()).shape == (len(questions()),)


def test_debiased_answers_have_texts() -> None:
    with unslant.Debiased(RuleModel(uniform), "vote", labels=["X", "Y", "Z"]) as model:
        answer = model.answer(questions()[0])
    assert (answer.text, answer.choice) == ("may be", 2)
    found = unslant.debias(RuleModel(uniform), QuestionSet.of(questions()), method="vote")
    assert isinstance(found, unslant.Answers)
    assert set(found.to_pandas()["text"]) == {"may be"}
    assert len(repr(found)) < 100
    with pytest.raises(unslant.InputError, match="leave out adapter"):
        unslant.Debiased("m", base_url="http://127.0.0.1:9/v1", adapter="x")


def test_everything_at_the_top_is_there() -> None:
    assert set(unslant.__all__) <= set(dir(unslant))
    for name in unslant.__all__:
        assert getattr(unslant, name) is not None
    for name in unslant.study.__all__:
        assert callable(getattr(unslant.study, name))
    for of in (unslant, unslant.study):
        with pytest.raises(AttributeError, match="nosuch"):
            of.nosuch  # noqa: B018


def test_debias_is_a_function_that_names_its_keywords() -> None:
    assert inspect.isfunction(unslant.debias)
    keywords = get_type_hints(AnswerKeywords)
    kinds = (AnswerSettings, ModelOptions, GenerateOptions)
    assert keywords.keys() == {field.name for kind in kinds for field in dataclasses.fields(kind)}
    assert inspect.signature(unslant.debias).parameters["options"].annotation == "Unpack[AnswerKeywords]"


def test_importing_unslant_imports_nothing_else() -> None:
    import subprocess

    code = "import unslant, sys; print(sorted({'numpy', 'pyarrow', 'torch', 'pydantic', 'rich'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"

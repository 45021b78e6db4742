"""One small result of every study, made without a network; judges are reference models."""

from __future__ import annotations

import dataclasses
import os
import pickle
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
from filelock import FileLock

from tests.chatting import RuleChat
from tests.fakes import RuleModel as OrderModel
from tests.reports.synthetic import synthetic_audit, synthetic_questions
from tests.studies.base_rate_results import prefers_a
from tests.studies.boundary_rows import row
from tests.studies.fakes import RuleModel, knows, remembers
from tests.studies.label_guessers import QUESTIONS, when_unsure
from tests.studies.leaning import KNOWN, OTHER, leaning
from tests.studies.talkers import QUESTIONS as WORDS_QUESTIONS
from tests.studies.talkers import takes_a
from training.world import question_sets
from unslant.auditing.comparison import AuditComparison
from unslant.auditing.result import AuditResult
from unslant.auditing.study import audit
from unslant.debiasing.lora1 import Epoch
from unslant.experiment.job import provenance
from unslant.presentations import NONE
from unslant.questions import QuestionSet
from unslant.reports.page import Describes, Page
from unslant.responses import Responses, Run
from unslant.responses.importers import Log, Logged, joined
from unslant.responses.provenance import model_block
from unslant.studies.base_rate.study import BaseRateResult, PublishedCell
from unslant.studies.debias.result import DebiasResult
from unslant.studies.debias.study import debias
from unslant.studies.debias.training import TrainingLog
from unslant.studies.instruction_boundary.comparison import BoundaryComparison
from unslant.studies.instruction_boundary.result import BoundaryStudy
from unslant.studies.instruction_boundary.result import result_of as boundary_of
from unslant.studies.judge.study import judge
from unslant.studies.leaderboard.study import Leaderboard, leaderboard
from unslant.studies.unbiased.annotation import AnnotationAgreement, agreement_of
from unslant.studies.unbiased.comparison import UnbiasedComparison
from unslant.studies.unbiased.contamination.finetuning import FineTuned
from unslant.studies.unbiased.contamination.study import ContaminationResult, compare
from unslant.studies.unbiased.metrics import UnbiasedResult
from unslant.studies.unbiased.probe.result import ProbeResult, ScoreTable
from unslant.studies.unbiased.probe.result import result_of as probe_of
from unslant.studies.unbiased.study import unbiased


def _run(study: str, *models: str) -> Run:
    made = provenance([model_block(name) for name in models], (), {"seed": 0})
    return Run(study=study, model=", ".join(models), settings={"seed": 0}, provenance=made)


@cache
def audited() -> AuditResult:
    """Questions of two to six options, in all their orders or a sample, by a model that answers A when unsure."""
    return audit(when_unsure({"A": 6.0}), QUESTIONS)


@cache
def in_words() -> AuditResult:
    """Replies that state their confidence, some asked again, by a talker that answers A when unsure; adaptive."""
    sure = RuleChat(lambda *page: f"{takes_a(*page)}. Confidence: 90%")
    return audit(sure, WORDS_QUESTIONS, repeats=2, adaptive=True)


@cache
def compared() -> AuditComparison:
    questions = synthetic_questions(40)
    return AuditComparison.of([synthetic_audit(questions), synthetic_audit(questions[10:], lean=0.0, model="even")])


@cache
def _many_compared() -> AuditComparison:
    """More runs than charts have series."""
    questions = synthetic_questions(24)
    names = [f"an-organisation/model-{i}-with-a-rather-long-name" for i in range(8)]
    made = [synthetic_audit(questions, knows=0.1 * i, seed=i, model=name) for i, name in enumerate(names)]
    return AuditComparison.of(made)


@cache
def logged_texts() -> AuditResult:
    """A log of one order with scores of option texts, by a model that takes short ones."""
    pages = []
    for i, question in enumerate(synthetic_questions(40)):
        right = next(iter(question.answers))
        options = tuple(
            f"{text} and so on"[: 6 + 3 * ((i + k) % 4)] + str(k) for k, text in enumerate(question.options)
        )
        scores = [-0.5 * len(text) + 2.0 * (k == right) for k, text in enumerate(options)]
        labels = ("A", "B", "C", "D")[: len(options)]
        page = {"id": question.id, "labels": labels, "answers": question.answers, "options": options, "place": "here"}
        pages.append(Logged.of_scores(scores, question=question.stem, **page))
    return AuditResult.of(joined([Log("short", "lm-eval", "texts", tuple(pages), "task")]))


def _leaderboard() -> Leaderboard:
    takes_last = OrderModel(when_unsure({"last": 5.0}).rule, "takes-last")
    models = [when_unsure({"A": 6.0}), takes_last, RuleChat(takes_a)]
    return leaderboard(models, [QuestionSet.of(QUESTIONS[:24], "one"), QuestionSet.of(WORDS_QUESTIONS[:12], "two")])


def _base_rate() -> BaseRateResult:
    """With a row of the paper's table, though the model is none of the paper's."""
    found = prefers_a()
    ours = found.found["cloze"].cells[0].by_subject["first"]
    return dataclasses.replace(found, published=(PublishedCell("given", "cloze", 0.348, ours, ours.value - 0.348),))


@cache
def _unbiased(name: str) -> UnbiasedResult:
    questions = QuestionSet.of(question_sets()[0][:40], "world")
    rule = {"knows": knows, "remembers": remembers}[name]
    return unbiased(RuleModel(rule(questions), name), questions, runs=2, shots=0)


def _compared_unbiased() -> UnbiasedComparison:
    ranking = {"knows": 90.0, "remembers": 55.0, "third": 10.0}
    third = _unbiased("remembers").renamed("third")
    return UnbiasedComparison.of([_unbiased("knows"), _unbiased("remembers"), third], ranking)


def _contaminated() -> ContaminationResult:
    found = compare(_unbiased("knows"), _unbiased("remembers"))
    return dataclasses.replace(found, trained=FineTuned(epochs=3, share_right=0.975, questions=40))


@cache
def _debiased() -> DebiasResult:
    sets = [QuestionSet.of(KNOWN, "known"), QuestionSet.of(OTHER, "other")]
    return debias([OrderModel(leaning, "leaning")], sets, methods=("vote", "pride:alpha=0.2", "gray-box"))


def _boundaries() -> BoundaryComparison:
    names = ("words", "an-organisation/a-model-with-a-long-name", "openai/gpt-4o-mini")
    return BoundaryComparison.of(
        [_boundary(name, seed) for seed, name in enumerate(names, 1)], dict.fromkeys(names, 1.0)
    )


@cache
def _boundary(name: str = "words", seed: int = 1) -> BoundaryStudy:
    rng = np.random.default_rng(seed)
    rows = []
    for setting in ("vanilla", "missing-choices", "disturbing-3", "disturbing-6"):
        for i in range(24):
            judging = setting == "missing-choices" and i % 2 == 1
            truth = {i % 3} if judging else [{i % 4}, {NONE}, {0, i % 3 + 1}][i % 3]
            chosen = truth if rng.random() < 0.6 else {int(rng.integers(3))}
            status = ("ok", "ok", "ok", "unparsed", "refused", "error")[int(rng.integers(6))]
            rows.append(row(i, truth, chosen, setting, status, verdict=judging))
    return boundary_of(Responses.from_rows(rows, _run("instruction-boundary", name)))


@cache
def _probed() -> ProbeResult:
    rng = np.random.default_rng(2)
    subjects = tuple(f"s{i % 5}" for i in range(60))
    original, boat = (rng.integers(1, 11, (3, 60)).astype(float) for _ in range(2))
    rephrased = rng.integers(1, 11, (3, 3, 60)).astype(float)
    rephrased[0, 0, :3] = np.nan
    ids = tuple(f"q{i}" for i in range(60))
    table = ScoreTable(("ann", "bob", "cid"), ids, subjects, original, rephrased, boat)
    accuracy = {name: {f"s{i}": 0.1 * i + 0.05 * j for i in range(5)} for j, name in enumerate(table.models)}
    return probe_of(table, accuracy, (0.0, 0.5, 1.0), 0, _run("probe", *table.models))


def _annotated() -> AnnotationAgreement:
    verdicts = {name: {f"i{i}": (i + j) % 7 > 0 for i in range(20)} for j, name in enumerate(("ann", "bob"))}
    return agreement_of(verdicts, {f"i{i}": ("DH", "DH+AR")[i % 2] for i in range(20)})


def _trained() -> TrainingLog:
    epochs = tuple(Epoch(i, 80, 0.04 / (i + 1), 0.6, 0.5, 80, 0.02, 0.46, 0.54, 3.0 - i) for i in range(3))
    return TrainingLog("adapter", epochs, _run("training", "adapter"))


RESULTS: dict[str, Callable[[], Describes]] = {
    "audit": audited,
    "audit-comparison": compared,
    "audit-comparison-many": _many_compared,
    "audit-words": in_words,
    "audit-texts": logged_texts,
    "leaderboard": _leaderboard,
    "base-rate": _base_rate,
    "unbiased": lambda: _unbiased("remembers"),
    "unbiased-compare": _compared_unbiased,
    "contamination": _contaminated,
    "debias": _debiased,
    "instruction-boundary": _boundary,
    "instruction-boundary-comparison": _boundaries,
    "probe": _probed,
    "annotation": _annotated,
    "training": _trained,
    "judge": lambda: judge("prefers-a", limit=60),
    "judge-comparison": lambda: judge(["fair", "prefers-a"], limit=60),
}


def _made_once(name: str, make: Callable[[], Describes]) -> Callable[[], Describes]:
    """Made by the first process of a test run that needs it, and read by the others."""

    @cache
    def result() -> Describes:
        if "UNSLANT_TEST_SHARED" not in os.environ:
            return make()
        path = Path(os.environ["UNSLANT_TEST_SHARED"]) / f"result-{name}.pickle"
        with FileLock(f"{path}.lock"):
            if path.exists():
                found: Describes = pickle.loads(path.read_bytes())
                return found
            made = make()
            path.write_bytes(pickle.dumps(made))
            return made

    return result


RESULTS = {name: _made_once(name, make) for name, make in RESULTS.items()}


@cache
def page_of(name: str) -> Page:
    """The page of a result, worked out once a process; the tests of pages, language and notebooks all look at it."""
    return RESULTS[name]().page()

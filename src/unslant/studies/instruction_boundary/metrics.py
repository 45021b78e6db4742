"""Metrics of P3: accuracy by answer form, distribution of answers, and effect of instructions.

An answer is right if it is exactly the set of right options. Replies without an answer (``unparsed``, ``refused``) are
wrong; requests without a reply (``error``) are counted, and excluded from accuracies.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from unslant.arrays import Bools, Floats, Jsonable
from unslant.asking import GENERATE
from unslant.errors import InputError
from unslant.metrics import correlation, mcnemar
from unslant.metrics.bootstrap import RESAMPLES, Bootstrap
from unslant.metrics.estimate import CONFIDENCE, Estimate
from unslant.metrics.registry import metric
from unslant.metrics.sampling import holm
from unslant.presentations import NONE
from unslant.questions import JudgingQuestion
from unslant.responses import Response, Responses
from unslant.studies.instruction_boundary.instruction_settings import BASELINE, SETTING, SETTINGS

JUDGED = f"{GENERATE}/judge"
FORMS: Mapping[str, tuple[str, ...]] = {"choice": ("single", "several", "none"), "judging": JudgingQuestion.VERDICTS}
DENSE = frozenset({"single", "True", "False"})


@dataclass(frozen=True)
class SettingMetrics(Jsonable):
    """One setting and kind of question (``choice`` or ``judging``). All shares are in [0, 1].

    Attributes:
        setting, kind: name of the setting; ``choice`` or ``judging``.
        accuracy: share of questions answered right (P3, eq. 1).
        stability: SR, accuracy where the right answer has a usual form: one option, True or False (eq. 2).
        generalization: GR, accuracy where it has an unusual form: none, several, Unknown (eq. 3).
        generalization_none, generalization_several: GR of the two unusual forms of multiple-choice questions.
        robustness: RS, harmonic mean of SR and GR (eq. 6); 0 where either is 0.
        outputs: OR, form of answer -> its share among all replies that came (eq. 4, 5); what is missing to 1 is
            ``unreadable``.
        outputs_sparse: the share of the unusual forms together, among all replies that came.
        outputs_readable: as ``outputs``, among the readable replies only.
        truth: form of answer -> its share among the right answers of these questions.
        judged: share of replies that a judge had to read.
        unreadable: share of replies that are no answer: ``unparsed``, in which none is found, and ``refused``.
        readable: accuracy among the readable replies only.
        errors: share of requests that got no reply.
    """

    setting: str
    kind: str
    accuracy: Estimate
    stability: Estimate
    generalization: Estimate
    generalization_none: Estimate
    generalization_several: Estimate
    robustness: Estimate
    outputs: Mapping[str, Estimate]
    outputs_sparse: Estimate
    outputs_readable: Mapping[str, Estimate]
    truth: Mapping[str, float]
    judged: Estimate
    unreadable: Estimate
    readable: Estimate
    unparsed: Estimate
    refused: Estimate
    errors: Estimate

    @property
    def dense_outputs(self) -> float:
        """Share of replies of a usual form; ``nan`` if none came."""
        return sum(share.value for form, share in self.outputs.items() if form in DENSE)


@dataclass(frozen=True)
class Change(Jsonable):
    """Effect of a setting relative to vanilla, on shared questions.

    Attributes:
        difference: accuracy under the setting minus accuracy under vanilla; interval from resampling questions.
        gained, lost: questions right only under the setting, and only under vanilla (single replies only).
        p_value: exact McNemar test; ``nan`` for repeated replies.
    """

    setting: str
    kind: str
    difference: Estimate
    gained: int
    lost: int
    p_value: float


@dataclass(frozen=True)
class BoundaryMetrics(Jsonable):
    """All metrics of one model: one row per setting and kind, in the order asked.

    Attributes:
        changes: from vanilla, if it was asked.
        robustness: setting -> RS, averaged over the kinds of question (eq. 7).
    """

    settings: tuple[SettingMetrics, ...]
    changes: tuple[Change, ...] = ()
    robustness: Mapping[str, Estimate] = field(default_factory=dict)

    def of(self, setting: str, kind: str) -> SettingMetrics:
        """The row of a setting and kind; KeyError if it was not asked."""
        for row in self.settings:
            if (row.setting, row.kind) == (setting, kind):
                return row
        raise KeyError((setting, kind))

    def disturbing(self, measure: str = "accuracy") -> dict[int, Estimate]:
        """Number of wrong options -> accuracy, for the disturbing options."""
        return {
            SETTINGS[row.setting].disturbing: getattr(row, measure)
            for row in self.settings
            if row.setting in SETTINGS and SETTINGS[row.setting].disturbing
        }


def boundary_metrics(
    responses: Responses | Iterable[Response], *, resamples: int = RESAMPLES, seed: int = 0
) -> BoundaryMetrics:
    """Measure the generated replies; several samples of one reply are averaged by question.

    Raises:
        InputError: if there are none.
    """
    rows = responses.rows() if isinstance(responses, Responses) else responses
    rows = [row for row in rows if row.kind == SETTING and row.elicitation in (GENERATE, JUDGED)]
    if not rows:
        raise InputError("the table has no generated replies: run the instruction-boundary study first")
    names = list(dict.fromkeys(row.item for row in rows))
    settings, changes, robustness = [], [], {}
    for name in names:
        of_name = [row for row in rows if row.item == name]
        for kind in FORMS:
            group = [row for row in of_name if kind_of(row) == kind]
            if group:
                settings.append(_measure(name, kind, group, resamples, seed))
                base = [row for row in rows if row.item == BASELINE and kind_of(row) == kind]
                if name != BASELINE and base:
                    change = _change(name, kind, group, base, resamples, seed)
                    changes += [change] if change else []
        robustness[name] = _robustness(of_name, resamples, seed)
    return BoundaryMetrics(tuple(settings), tuple(changes), robustness)


def kind_of(row: Response) -> str:
    """``judging`` if the labels are the verdicts, else ``choice``."""
    return "judging" if row.labels == JudgingQuestion.VERDICTS else "choice"


def answer_form(kind: str, contents: frozenset[int]) -> str:
    """The form of an answer, or of the truth, given as contents."""
    if kind == "judging":
        return JudgingQuestion.VERDICTS[min(contents)]
    if contents <= {NONE}:
        return "none"
    return "single" if len(contents) == 1 else "several"


@metric("settings.accuracy", "accuracy", "questions answered right", unit="share", source="P3 eq. 1")
@metric("stability", "SR", "accuracy where one option is right, or True or False", unit="share", source="P3 eq. 2")
@metric("generalization", "GR", "accuracy where none or several are right, or Unknown", unit="share", source="P3 eq. 3")
@metric("generalization_none", "GR none", "accuracy where none is right", unit="share", source="P3 eq. 3")
@metric("generalization_several", "GR several", "accuracy where several are right", unit="share", source="P3 eq. 3")
@metric("outputs", "output rate", "share of a form among all replies that came", unit="share", source="P3 eq. 4-5")
@metric(
    "outputs_sparse",
    "output rate, unusual forms",
    "share of none, several or Unknown among all replies",
    unit="share",
    source="P3 eq. 5",
    short="OR sparse",
)
@metric(
    "outputs_readable", "output rate among readable replies", "without the replies that are no answer", unit="share"
)
@metric("truth", "truth", "share of a form among the right answers", unit="share")
@metric("judged", "read by a judge", "replies that a judge had to read", unit="share")
def _measure(setting: str, kind: str, rows: Sequence[Response], resamples: int, seed: int) -> SettingMetrics:
    ids, by_question = _by_question(rows)
    bootstrap = Bootstrap(len(ids), resamples=resamples, seed=seed)
    right = _right(by_question)
    truth = [answer_form(kind, group[0].answers) for group in by_question]

    def only(*forms: str) -> Estimate:
        wanted = np.isin(np.array(truth), forms)
        return bootstrap.mean(np.where(wanted, right, np.nan), note="" if wanted.any() else "no such question asked")

    def came(row: Response) -> bool:
        return row.status != "error"

    def readable(row: Response) -> bool:
        return row.status == "ok"

    def of_form(row: Response, *forms: str) -> bool:
        return readable(row) and answer_form(kind, row.chosen or frozenset()) in forms

    def share(wanted: Any, among: Any = came) -> Estimate:
        return bootstrap.mean(
            np.array([_mean([float(wanted(row)) for row in group if among(row)]) for group in by_question])
        )

    sparse = [form for form in FORMS[kind] if form not in DENSE]
    return SettingMetrics(
        setting=setting,
        kind=kind,
        accuracy=bootstrap.mean(right),
        stability=only(*[form for form in FORMS[kind] if form in DENSE]),
        generalization=only(*sparse),
        generalization_none=only("none") if kind == "choice" else Estimate.undefined("judging questions have no none"),
        generalization_several=only("several") if kind == "choice" else Estimate.undefined("no several in judging"),
        robustness=_robustness(rows, resamples, seed),
        outputs={form: share(lambda row, form=form: of_form(row, form)) for form in FORMS[kind]},
        outputs_sparse=share(lambda row: of_form(row, *sparse)),
        outputs_readable={form: share(lambda row, form=form: of_form(row, form), readable) for form in FORMS[kind]},
        truth={form: truth.count(form) / len(truth) for form in FORMS[kind]},
        judged=share(lambda row: row.elicitation == JUDGED),
        unreadable=share(lambda row: not readable(row)),
        readable=share(lambda row: row.chosen == row.answers, readable),
        unparsed=share(lambda row: row.status == "unparsed"),
        refused=share(lambda row: row.status == "refused"),
        errors=share(lambda row: not came(row), lambda row: True),
    )


def _by_question(rows: Sequence[Response]) -> tuple[list[str], list[list[Response]]]:
    groups: dict[str, list[Response]] = {}
    for row in rows:
        groups.setdefault(row.question_id, []).append(row)
    return list(groups), list(groups.values())


def _right(by_question: Sequence[Sequence[Response]]) -> Floats:
    """(Q,) share of right replies; ``nan`` without replies."""
    return np.array(
        [
            _mean([float(row.status == "ok" and row.chosen == row.answers) for row in group if row.status != "error"])
            for group in by_question
        ]
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def _features(right: Floats, dense: Bools) -> Floats:
    """(Q, 4): right and asked among dense, right and asked among sparse."""
    asked = ~np.isnan(right)
    value = np.where(asked, right, 0.0)
    return np.column_stack([value * dense, asked * dense, value * ~dense, asked * ~dense]).astype(np.float64)


def _harmonic_of(totals: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        sr, gr = totals[:, 0] / totals[:, 1], totals[:, 2] / totals[:, 3]
        return np.asarray(np.where(sr + gr == 0, 0.0, 2 * sr * gr / (sr + gr)))


@metric("robustness", "RS", "harmonic mean of SR and GR", unit="share", source="P3 eq. 6-7")
def _robustness(rows: Sequence[Response], resamples: int, seed: int) -> Estimate:
    """RS averaged over the kinds asked, its interval from resampling all questions.

    Where RS of a kind is 0 or 1 every resample repeats it, and the bootstrap would claim certainty: the interval then
    comes from those of the SR and GR of each kind, at a confidence at which they hold together (Bonferroni).
    """
    kinds: list[tuple[Floats, Bools]] = []
    for kind in FORMS:
        group = [row for row in rows if kind_of(row) == kind]
        if group:
            _, by_question = _by_question(group)
            dense = np.array([answer_form(kind, g[0].answers) in DENSE for g in by_question])
            kinds.append((_right(by_question), dense))
    n = sum(int((~np.isnan(right)).sum()) for right, _ in kinds)
    if any(dense.all() or not dense.any() for _, dense in kinds):
        return Estimate.undefined("needs questions of both usual and unusual form", n)
    parts = [_features(*kind) for kind in kinds]
    features = np.concatenate(
        [np.pad(part, ((0, 0), (4 * i, 4 * (len(parts) - i - 1)))) for i, part in enumerate(parts)]
    )

    def average(totals: Floats) -> Floats:
        return np.asarray(np.mean([_harmonic_of(totals[:, 4 * i : 4 * i + 4]) for i in range(len(parts))], axis=0))

    found = Bootstrap(len(features), resamples=resamples, seed=seed).statistic(features, average, n, low=0.0, high=1.0)
    each = [float(_harmonic_of(part.sum(axis=0, keepdims=True))[0]) for part in parts]
    if not found.defined or not {0.0, 1.0} & set(each):
        return found
    ends = []
    for right, dense in kinds:
        bootstrap = Bootstrap(len(right), resamples=resamples, seed=seed)
        confidence = 1 - (1 - CONFIDENCE) / (2 * len(kinds))
        sr, gr = (bootstrap.mean(np.where(w, right, np.nan), confidence=confidence) for w in (dense, ~dense))
        ends.append([_harmonic_of(np.array([[s, 1.0, g, 1.0]]))[0] for s, g in ((sr.low, gr.low), (sr.high, gr.high))])
    low, high = (float(end) for end in np.mean(ends, axis=0))
    if math.isnan(low) or math.isnan(high):
        return replace(found, low=math.nan, high=math.nan, method="none", note="too few questions for an interval")
    return replace(
        found, low=min(low, found.value), high=max(high, found.value), method="intervals of SR and GR, Bonferroni"
    )


@metric("changes.difference", "against vanilla", "accuracy less that under vanilla, same questions", unit="difference")
@metric("changes.p_value", "p", "exact McNemar test against vanilla", unit="p")
def _change(
    name: str, kind: str, rows: Sequence[Response], base: Sequence[Response], resamples: int, seed: int
) -> Change | None:
    ids, groups = _by_question(rows)
    base_ids, base_groups = _by_question(base)
    here, there = dict(zip(ids, _right(groups), strict=True)), dict(zip(base_ids, _right(base_groups), strict=True))
    shared = [i for i in ids if i in there and not math.isnan(here[i]) and not math.isnan(there[i])]
    if not shared:
        return None
    new, old = np.array([here[i] for i in shared]), np.array([there[i] for i in shared])
    gained, lost, p_value = 0, 0, math.nan
    if np.isin(np.concatenate([new, old]), (0.0, 1.0)).all():
        gained, lost = int((new > old).sum()), int((old > new).sum())
        p_value = mcnemar(gained, lost)
    difference = Bootstrap(len(shared), resamples=resamples, seed=seed).mean(new - old, share=False)
    return Change(name, kind, difference, gained, lost, p_value)


@dataclass(frozen=True)
class AcrossModels(Jsonable):
    """Effect of a setting with models as observations (P3, appendix G).

    Attributes:
        accuracy: mean accuracy over the models asked under this setting and under vanilla.
        difference: mean accuracy difference from vanilla, with Student's t interval; N counts models.
        t, p_value: two-sided one-sample t test; ``nan`` with fewer than two models.
        p_corrected: the same for the number of settings tested (Holm 1979); the paper does not correct.
    """

    setting: str
    accuracy: float
    difference: Estimate
    t: float
    p_value: float
    p_corrected: float


def across_models(accuracies: Mapping[str, Mapping[str, float]]) -> list[AcrossModels]:
    """Test every setting against vanilla over models.

    Args:
        accuracies: model -> setting -> accuracy in [0, 1], nan where no reply came; models without vanilla or the
            setting are ignored.
    """
    from scipy.stats import ttest_1samp

    names = list(dict.fromkeys(name for by_setting in accuracies.values() for name in by_setting if name != BASELINE))
    results = []
    for name in names:
        both = [(a[name], a[BASELINE]) for a in accuracies.values() if name in a and BASELINE in a]
        both = [pair for pair in both if not any(map(math.isnan, pair))]
        differences = [here - there for here, there in both]
        if not differences:
            continue
        accuracy = float(np.mean([here for here, _ in both]))
        mean, n, method = float(np.mean(differences)), len(differences), "Student's t over models"
        if n < 2:
            estimate = Estimate(mean, math.nan, math.nan, n, "none", note="one model: no test")
            t, p = math.nan, math.nan
        elif len(set(differences)) == 1:  # no spread: t is infinite or, at 0, undefined
            estimate = Estimate(mean, mean, mean, n, method, note="the same in every model")
            t, p = math.copysign(math.inf, mean) if mean else math.nan, float(not mean)
        else:
            test = ttest_1samp(differences, 0.0)
            low, high = test.confidence_interval(CONFIDENCE)
            estimate = Estimate(mean, float(low), float(high), n, method)
            t, p = float(test.statistic), float(test.pvalue)
        results.append(AcrossModels(name, accuracy, estimate, t, p, math.nan))
    corrected = holm([one.p_value for one in results])
    return [replace(one, p_corrected=p) for one, p in zip(results, corrected, strict=True)]


@dataclass(frozen=True)
class Agreement(Jsonable):
    """Rank correlations of two rankings of models; N counts shared models, p is exact for Kendall without ties."""

    kendall: Estimate
    spearman: Estimate
    kendall_p: float
    spearman_p: float


def leaderboard_agreement(scores: Mapping[str, float], external: Mapping[str, float]) -> Agreement:
    """Compare robustness scores with external ones (higher is better); InputError with fewer than 3 shared models."""
    shared = [model for model in scores if model in external]
    if len(shared) < 3:
        raise InputError(
            f"the two rankings share {len(shared)} models, a correlation needs 3: names must be equal ("
            f"here: {', '.join(scores)}; there: {', '.join(external)})"
        )
    ours, theirs = [scores[m] for m in shared], [external[m] for m in shared]
    kendall, kendall_p = correlation(ours, theirs, "kendall", of="models")
    spearman, spearman_p = correlation(ours, theirs, "spearman", of="models")
    return Agreement(kendall, spearman, kendall_p, spearman_p)

"""Metrics of P3: accuracy by answer form, distribution of answers, and effect of instructions.

An answer is right if it is exactly the set of right options. Replies without an answer (``unparsed``, ``refused``) are
wrong; requests without a reply (``error``) are counted, and excluded from accuracies.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from unslant.arrays import Bools, Floats, Ints, Jsonable, mean_by
from unslant.asking import GENERATE
from unslant.errors import InputError
from unslant.experiment.comparison import unpaired_difference
from unslant.metrics import Measured, Numbers, Verdict, verdicts
from unslant.metrics.bootstrap import Bootstrap
from unslant.metrics.estimate import CONFIDENCE, Estimate
from unslant.metrics.pairs import p_of_pairs
from unslant.metrics.registry import metric
from unslant.presentations import NONE
from unslant.questions import JudgingQuestion
from unslant.responses import Responses, is_right
from unslant.studies.instruction_boundary.instruction_settings import BASELINE, DENSE, FORMS, SETTING, setting

Texts: TypeAlias = NDArray[Any]
JUDGED = f"{GENERATE}/judge"
SAME = 0.05
"""A setting that changes accuracy by less makes no difference."""


@dataclass(frozen=True)
class SettingMetrics(Measured):
    """One setting and kind of question. All shares are in [0, 1].

    Attributes:
        setting, kind: name of the setting; ``choice`` or ``judging``.
        numbers: accuracy, SR (``stability``), GR (``generalization``), RS (``robustness``; 0 where SR or GR is 0), and
            shares of replies; see their metrics.
        outputs: OR, form of answer -> its share among all replies that came (eq. 4, 5); the rest is ``unreadable``.
        outputs_readable: as ``outputs``, among the readable replies only.
        truth: form of answer -> its share among the right answers of these questions.
    """

    setting: str
    kind: str
    numbers: Numbers
    outputs: Mapping[str, Estimate]
    outputs_readable: Mapping[str, Estimate]
    truth: Mapping[str, float]

    def cells(self) -> dict[str, Any]:
        """A row of a table: the fields, numbers and outputs."""
        return {**vars(self), **self.outputs, **self.numbers.cells()}


@dataclass(frozen=True)
class SettingChange(Jsonable):
    """Effect of a setting relative to vanilla, on shared questions.

    Attributes:
        difference: accuracy under the setting minus accuracy under vanilla; interval from resampling questions.
        gained, lost: questions right only under the setting, and only under vanilla (single replies only).
        p_value: see :func:`~unslant.metrics.pairs.p_of_pairs`; ``nan`` for repeated replies.
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
        changes: from vanilla, if it was asked; :attr:`effects` has their verdicts.
        robustness: setting -> RS, averaged over the kinds of question (eq. 7).
    """

    settings: tuple[SettingMetrics, ...]
    changes: tuple[SettingChange, ...] = ()
    robustness: Mapping[str, Estimate] = field(default_factory=dict)

    @cached_property
    def effects(self) -> list[tuple[SettingChange, Verdict]]:
        """Every change whose difference is defined, with its verdict, corrected for their number."""
        changes = [change for change in self.changes if change.difference.defined]
        outcomes = verdicts([one.difference for one in changes], bound=SAME, p=[one.p_value for one in changes])
        return list(zip(changes, outcomes, strict=True))

    @property
    def largest(self) -> tuple[SettingChange, Verdict]:
        """The change to name: the largest loss shown, without one the largest gain shown, or the lowest estimate."""
        for kind in ("below", "above"):
            if shown := [one for one in self.effects if one[1].kind == kind]:
                return max(shown, key=lambda one: abs(one[0].difference.value))
        return min(self.effects, key=lambda one: one[0].difference.value)

    @property
    def of_baseline(self) -> list[SettingMetrics]:
        """The rows under vanilla, one for each kind of question; empty if it was not asked."""
        return [row for row in self.settings if row.setting == BASELINE]

    def of(self, setting: str, kind: str) -> SettingMetrics:
        """The row of a setting and kind; KeyError if it was not asked."""
        return {(row.setting, row.kind): row for row in self.settings}[setting, kind]

    def disturbing(self) -> dict[int, Estimate]:
        """Number of wrong options -> accuracy, for the disturbing options."""
        return {k: row["accuracy"] for row in self.settings if (k := setting(row.setting).disturbing)}


@dataclass(frozen=True)
class SettingReplies:
    """R replies to instruction settings, as columns.

    Attributes:
        settings, kinds, ids, contexts: (R,) setting, kind of question, its id, and its passage.
        status: (R,) see :class:`~unslant.responses.Response`.
        forms, truth: (R,) form of the answer, empty where there is none, and of the truth; see :func:`answer_form`.
        right: (R,) whether the answer is exactly the set of right options.
        judged: (R,) whether a judge had to read the reply.
    """

    settings: Texts
    kinds: Texts
    ids: Texts
    contexts: Texts
    status: Texts
    forms: Texts
    truth: Texts
    right: Bools
    judged: Bools

    @classmethod
    def read(cls, responses: Responses) -> SettingReplies:
        """The generated replies in a table.

        Raises:
            InputError: if there are none.
        """
        table = responses.where(kind=SETTING, elicitation=(GENERATE, JUDGED)).table
        if not len(table):
            raise InputError("the table has no generated replies: run the instruction-boundary study first")
        names = ("item", "question_id", "status", "elicitation", "labels", "chosen", "answers", "text_ranks")
        items, ids, status, elicitation, labels, chosen, answers, ranks = (table[name].to_pylist() for name in names)
        kinds = ["judging" if tuple(each) == JudgingQuestion.VERDICTS else "choice" for each in labels]
        replies = [frozenset(each or ()) if ok == "ok" else None for each, ok in zip(chosen, status, strict=True)]
        right = [frozenset(each) for each in answers]
        forms = ["" if each is None else answer_form(kind, each) for kind, each in zip(kinds, replies, strict=True)]
        truth = [answer_form(kind, each) for kind, each in zip(kinds, right, strict=True)]
        rows = zip(replies, right, ranks, strict=True)
        hits = [each is not None and is_right(each, answer, texts, scored=False) for each, answer, texts in rows]
        judged = [each == JUDGED for each in elicitation]
        contexts = np.array(responses.passages_of(ids), object)  # not as wide as the longest passage, each
        return cls(*map(np.array, (items, kinds, ids, contexts, status, forms, truth, hits, judged)))

    def under(self, setting: str, kind: str) -> SettingReplies:
        """Those to questions of a kind under a setting."""
        return self.rows((self.settings == setting) & (self.kinds == kind))

    def rows(self, rows: Bools) -> SettingReplies:
        """Some of them."""
        return SettingReplies(*(getattr(self, column.name)[rows] for column in fields(self)))

    @property
    def came(self) -> Bools:
        """(R,) whether there is a reply."""
        return np.asarray(self.status != "error")

    @cached_property
    def _questions(self) -> tuple[Ints, Ints]:
        """(Q,) first row of each question, by its id, and (R,) the question of each row."""
        _, first, question = np.unique(self.ids, return_index=True, return_inverse=True)
        return first, question  # by id: resamples must not depend on the sequence of the rows

    @property
    def question_truth(self) -> Texts:
        """(Q,) form of the right answer."""
        return np.asarray(self.truth[self._questions[0]])

    @property
    def question_contexts(self) -> list[str]:
        """(Q,) passage of the question."""
        texts: list[str] = self.contexts[self._questions[0]].tolist()
        return texts

    def share(self, rows: Bools, among: Bools | None = None) -> Floats:
        """(Q,) share of each question's replies, by default among those that came; ``nan`` without any."""
        first, question = self._questions
        return mean_by(question, np.where(self.came if among is None else among, rows, np.nan), len(first))

    @cached_property
    def accuracy(self) -> Floats:
        """(Q,) share of right replies among those that came."""
        return self.share(self.right)

    @property
    def dense(self) -> Bools:
        """(Q,) whether the right answer has a usual form."""
        return np.isin(self.question_truth, tuple(DENSE))

    def shared(self, other: SettingReplies) -> tuple[SettingReplies, SettingReplies]:
        """The replies of both to the questions that both have a reply to."""
        ids = np.intersect1d(self.ids[self.came], other.ids[other.came])
        return self.rows(np.isin(self.ids, ids)), other.rows(np.isin(other.ids, ids))


def boundary_metrics(responses: Responses, *, seed: int = 0) -> BoundaryMetrics:
    """Measure the generated replies; several samples of one reply are averaged by question.

    Raises:
        InputError: if there are none.
    """
    replies = SettingReplies.read(responses)
    settings, changes, robustness = [], [], {}
    for name in dict.fromkeys(replies.settings.tolist()):
        groups = []
        for kind in FORMS:
            group, base = (replies.under(setting, kind) for setting in (name, BASELINE))
            if not len(group.ids):
                continue
            groups.append(group)
            settings.append(_measure(name, kind, group, seed))
            if name != BASELINE and (change := _change(name, kind, group, base, seed)):
                changes.append(change)
        robustness[name] = _robustness(groups, seed)
    return BoundaryMetrics(tuple(settings), tuple(changes), robustness)


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
@metric("outputs_sparse", "output rate, unusual forms", "share of none, several or Unknown among all replies",
        unit="share", source="P3 eq. 5", short="OR sparse")  # fmt: skip
@metric("outputs_readable", "output rate among readable replies", "without the replies that are no answer",
        unit="share")  # fmt: skip
@metric("truth", "truth", "share of a form among the right answers", unit="share")
@metric("judged", "read by a judge", "replies that a judge had to read", unit="share")
def _measure(setting: str, kind: str, replies: SettingReplies, seed: int) -> SettingMetrics:
    truth, forms = replies.question_truth, replies.forms
    bootstrap = Bootstrap(len(truth), contexts=replies.question_contexts, seed=seed)
    came, readable = replies.came, replies.status == "ok"
    sparse = [form for form in FORMS[kind] if form not in DENSE]

    def only(*names: str) -> Estimate:
        among = np.isin(truth, names)
        note = "" if among.any() else "no such question asked"
        return bootstrap.mean(np.where(among, replies.accuracy, np.nan), note=note)

    def share(rows: Bools, among: Bools | None = None) -> Estimate:
        return bootstrap.mean(replies.share(rows, among))

    none, several = Estimate.undefined("judging questions have no none"), Estimate.undefined("no several in judging")
    numbers = {
        "settings.accuracy": bootstrap.mean(replies.accuracy),
        "stability": only(*DENSE),
        "generalization": only(*sparse),
        "generalization_none": only("none") if kind == "choice" else none,
        "generalization_several": only("several") if kind == "choice" else several,
        "robustness": _robustness([replies], seed),
        "outputs_sparse": share(np.isin(forms, sparse)),
        "judged": share(replies.judged),
        "unreadable": share(~readable),
        "readable": share(replies.right, readable),
        "unparsed": share(replies.status == "unparsed"),
        "refused": share(replies.status == "refused"),
        "errors": share(~came, np.ones(len(came), bool)),
    }
    return SettingMetrics(
        setting,
        kind,
        Numbers(numbers),
        outputs={form: share(forms == form) for form in FORMS[kind]},
        outputs_readable={form: share(forms == form, readable) for form in FORMS[kind]},
        truth={form: float((truth == form).mean()) for form in FORMS[kind]},
    )


_EVERY = np.array([1.0, 0.0, 1.0, 0.0]), np.array([True, True, False, False])
"""A question of each kind that there may be, right or wrong, of usual or unusual form: a sample may have none."""


def _features(right: Floats, dense: Bools) -> Floats:
    """(Q, 4): right and asked among dense, right and asked among sparse."""
    mask = ~np.isnan(right)
    value = np.where(mask, right, 0.0)
    return np.column_stack([value * dense, mask * dense, value * ~dense, mask * ~dense]).astype(np.float64)


def _harmonic_of(totals: Floats) -> Floats:
    """(...) RS of the (..., 4) totals of :func:`_features`."""
    with np.errstate(invalid="ignore", divide="ignore"):
        sr, gr = totals[..., 0] / totals[..., 1], totals[..., 2] / totals[..., 3]
        return np.asarray(np.where(sr + gr == 0, 0.0, 2 * sr * gr / (sr + gr)))


@metric("robustness", "RS", "harmonic mean of SR and GR", unit="share", source="P3 eq. 6-7")
def _robustness(groups: Sequence[SettingReplies], seed: int) -> Estimate:
    """RS = 2 SR GR / (SR + GR), averaged over the kinds asked; its interval is from resampling all questions."""
    kinds = [(group.accuracy, group.dense) for group in groups]
    n = sum(int((~np.isnan(right)).sum()) for right, _ in kinds)
    if any(dense.all() or not dense.any() for _, dense in kinds):
        return Estimate.undefined("needs questions of both usual and unusual form", n)
    features = block_diag(*(_features(*kind) for kind in kinds))

    def by_kind(totals: Floats) -> Floats:
        return _harmonic_of(totals.reshape(len(totals), len(kinds), 4))

    passages = [group.question_contexts for group in groups]
    bootstrap = Bootstrap(len(features), contexts=[*chain(*passages)], seed=seed)
    unseen = block_diag(*[_features(*_EVERY)] * len(kinds))
    estimate = bootstrap.statistic(
        features, lambda totals: by_kind(totals).mean(axis=1), n, low=0.0, high=1.0, unseen=unseen
    )
    if not estimate.defined or not math.isnan(estimate.low):
        return estimate
    # Of few questions it comes from the intervals of the SR and GR of each kind, at a confidence at which they hold
    # together (Bonferroni).
    ends = []
    for (right, dense), contexts in zip(kinds, passages, strict=True):
        bootstrap = Bootstrap(len(right), contexts=contexts, seed=seed)
        confidence = 1 - (1 - CONFIDENCE) / (2 * len(kinds))
        sr, gr = (bootstrap.mean(np.where(w, right, np.nan), confidence=confidence) for w in (dense, ~dense))
        ends.append(_harmonic_of(np.array([[sr.low, 1.0, gr.low, 1.0], [sr.high, 1.0, gr.high, 1.0]])))
    low, high = np.mean(ends, axis=0).tolist()
    if math.isnan(low) or math.isnan(high):
        return replace(estimate, low=math.nan, high=math.nan, method="none", note="too few questions for an interval")
    low, high, method = min(low, estimate.value), max(high, estimate.value), "intervals of SR and GR, Bonferroni"
    return replace(estimate, low=low, high=high, method=method, note="")


def robustness_difference(one: Responses, other: Responses) -> Estimate:
    """RS under vanilla of one model minus that of another, over the questions both replied to, paired.

    Of few questions, the interval comes from those of the two (Zou and Donner 2008), which leaves out the pairing.
    """
    tables = [SettingReplies.read(responses) for responses in (one, other)]
    by_kind = ([replies.under(BASELINE, kind) for replies in tables] for kind in FORMS)
    pairs = [pair for here, there in by_kind if len((pair := here.shared(there))[0].ids)]
    features = [np.column_stack([_features(of.accuracy, pair[0].dense) for of in pair]) for pair in pairs]
    n = sum(map(len, features))
    if not n or any(here.dense.all() or not here.dense.any() for here, _ in pairs):
        return Estimate.undefined("needs questions of both usual and unusual form", n)

    def gap(totals: Floats) -> Floats:
        here, there = _harmonic_of(totals.reshape(len(totals), len(features), 2, 4)).mean(axis=1).T
        return np.asarray(here - there)

    both = [(np.repeat(_EVERY[0], 2), np.repeat(_EVERY[1], 2)), (np.tile(_EVERY[0][:2], 4), np.repeat(_EVERY[1], 2))]
    unseen = block_diag(*[np.column_stack([_features(*every) for every in both])] * len(features))
    bootstrap = Bootstrap(n, contexts=[*chain(*(here.question_contexts for here, _ in pairs))])
    estimate = bootstrap.statistic(block_diag(*features), gap, n, low=-1.0, high=1.0, unseen=unseen)
    if not math.isnan(estimate.low):
        return estimate
    alone = unpaired_difference(*(_robustness(groups, 0) for groups in zip(*pairs, strict=True))).within(-1.0, 1.0)
    return estimate if math.isnan(alone.low) else replace(alone, n=n, method="intervals of both")


@metric("changes.difference", "against vanilla", "accuracy minus vanilla accuracy, same questions", unit="difference")
@metric("changes.p_value", "p", "McNemar test that as many are right as under vanilla", unit="p")
def _change(name: str, kind: str, group: SettingReplies, base: SettingReplies, seed: int) -> SettingChange | None:
    group, base = group.shared(base)
    if not len(group.ids):
        return None
    new, old = group.accuracy, base.accuracy
    bootstrap = Bootstrap(len(new), contexts=group.question_contexts, seed=seed)
    gained, lost, p_value = 0, 0, math.nan
    if np.isin([new, old], (0.0, 1.0)).all():
        gained, lost = int((new > old).sum()), int((old > new).sum())
        p_value = p_of_pairs(bootstrap, new, old)
    difference = bootstrap.mean(new - old, share=False, room="bounds, unsure")
    return SettingChange(name, kind, difference, gained, lost, p_value)

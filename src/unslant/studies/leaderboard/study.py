"""The leaderboard: audit every model on every set, and rank them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, Literal

from unslant.auditing.orders import OrderDesign
from unslant.auditing.result import AuditResult
from unslant.auditing.settings import AuditSettings
from unslant.auditing.study import Audit
from unslant.errors import InputError
from unslant.experiment.job import Given, Job
from unslant.experiment.study import Keywords, Study, function
from unslant.models import GenerateOptions
from unslant.models.open import check_opens
from unslant.presentations import parse_labels
from unslant.questions import Question, QuestionSet
from unslant.reach import Reach
from unslant.studies.leaderboard.result import Leaderboard


@dataclass(frozen=True, kw_only=True)
class BoardOptions:
    """Question sets, and what models are ranked by."""

    sets: Annotated[tuple[str, ...], Reach.PLACE] = ()
    """Question set: a file or a known set; repeat for each."""
    rank_by: Literal["mean", "vote"] = "mean"
    """Rank by the mean over orders (performance in a random order) or the vote (knowledge with the habit corrected)."""


class LeaderboardStudy(Study[AuditSettings]):
    """Rank several models on several question sets by their mean score over option orders, or by the vote over them.

    Audits every model on every set, one model at a time: ranks with their confidence sets next to the published ones,
    which models differ, PBM against accuracy, and the tokens and time of each way of computing it.

    With --log, ranks recorded audits: tables of `audit --responses`, one per model and set, or logs of other harnesses,
    where all logs of one model are one set. Files of the same questions are one set under any name.

    Examples:
      unslant leaderboard -m org/one -m org/two --sets arc.jsonl --sets mmlu.jsonl --html board.html
      unslant leaderboard --log one-arc.parquet two-arc.parquet
    """

    name = "leaderboard"
    settings = AuditSettings
    result = Leaderboard
    model = None
    inputs = BoardOptions
    generate = GenerateOptions
    of_logs = ("fields",)
    in_memory = True
    several = True

    def check(self, given: Given[AuditSettings]) -> None:
        if given.log:
            if given.inputs.sets:
                raise InputError("--log reads recorded audits: leave out --sets")
        elif not given.models:
            raise InputError("no models: give some, as in: unslant leaderboard -m org/one -m org/two --sets FILE")

    def load(self, given: Given[AuditSettings]) -> list[QuestionSet[Question]]:
        sets = given.settings.load_each(list(given.inputs.sets) or given.questions)
        for settings in {one.elicit: one for one in self.settings_of_each(given)}.values():
            settings.writer()  # a way to ask and a set that are incompatible are refused before a model is opened
            for questions in sets:
                if not settings.in_words:
                    OrderDesign.of(questions, settings)
                    continue
                from unslant.auditing.words import plan

                parse_labels(settings.labels)
                plan(questions.questions, settings, settings.chooser(questions))
        return sets

    def measure(self, job: Job[AuditSettings]) -> Leaderboard:
        sets, given = job.questions, job.given
        for model, options, settings in zip(given.models, given.options, job.settings, strict=True):
            if isinstance(model, str) and not job.record.offline:
                check_opens(model, options, ("generate",) if settings.in_words else ("score",))
        every = QuestionSet.of(list(chain.from_iterable(sets)), ", ".join(one.name for one in sets))
        job.record.begin(", ".join(map(str, given.models)), every)

        def audits() -> Iterator[AuditResult]:
            for place, settings in enumerate(job.settings):
                model = job.open(place, (), *sets)
                if not isinstance(given.models[place], str):  # what a function loads is known only now
                    settings = given.settings.of_model(model)
                for questions in sets:
                    yield Audit().of_model(model, questions, settings, job.record)

        return Leaderboard.of(audits(), given.inputs.rank_by)

    def read(self, given: Given[AuditSettings]) -> Leaderboard:
        from unslant.auditing.comparison import recorded_audits

        return Leaderboard.of(recorded_audits(given.log, given.settings.fields), given.inputs.rank_by)


@dataclass(frozen=True, kw_only=True)
class LeaderboardKeywords(Keywords, BoardOptions, GenerateOptions, AuditSettings):
    """Keywords of :func:`leaderboard`."""


leaderboard = function(
    LeaderboardStudy(),
    LeaderboardKeywords,
    Leaderboard,
    """
    >>> board = unslant.leaderboard(["prefers-a", "fair"], "embedded", limit=40)
    >>> [standing.model for standing in board.models]
    ['fair', 'prefers-a']
    """,
)

"""The unbiased evaluator (P4): the score as published and under random interventions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from unslant.asking import read_labels
from unslant.experiment.job import Asking, Given
from unslant.experiment.ranking import RankingOptions
from unslant.experiment.result import StudyResult
from unslant.experiment.study import Keywords, Study, function
from unslant.models import GenerateOptions
from unslant.models.open import address_of, gives_replies
from unslant.presentations import Presentation
from unslant.prompts import Cloze
from unslant.questions import Question
from unslant.replies import read_open
from unslant.responses import Responses
from unslant.studies.unbiased.plan import plan
from unslant.studies.unbiased.result import UnbiasedResult
from unslant.studies.unbiased.settings import UnbiasedSettings


class Unbiased(Study[UnbiasedSettings]):
    """Compare the published score with the score under random changes of presentation.

    Interventions: DH distractor hint, DQ distractor question, AR answer removal, OS option shuffling, LR label
    replacement, BT binary transformation; for maths also QJ question jitter and AJ answer jitter. Models that can only
    generate (inspect:...) are asked for replies. Several models, or several logs, are set side by side.

    A reply without an answer is not right, a presentation without a reply is left out, and both are counted. With
    --limit, options and second stems still come from all questions.

    Examples:
      unslant study unbiased org/name mmlu --limit 500 --responses run.parquet
      unslant study unbiased -m org/one -m inspect:openai/gpt-4o-mini gsm8k --maths --ranking leaderboard.csv
    """

    name = "unbiased"
    settings = UnbiasedSettings
    result = UnbiasedResult
    inputs = RankingOptions
    generate = GenerateOptions
    several = True
    in_shards = True
    switch = "--generate"

    def ask(self, asking: Asking[UnbiasedSettings]) -> Responses:
        settings, whole = asking.settings, asking.whole
        settings.writer()  # a bad template is refused before the model is opened
        pool = settings.pool(settings.shots_from, settings.maths)
        planned = plan(asking.questions, settings, pool_from=whole, shots_from=pool)
        if settings.generate:
            return asking.ask_for_replies(planned.asked, read_reply, counts=planned.counts())
        parameters = asking.model.info.parameters
        return asking.ask(
            planned.asked, [Cloze(asking.settings.writer())], parameters=parameters, counts=planned.counts()
        )

    def settings_of_each(self, given: Given[UnbiasedSettings]) -> list[UnbiasedSettings]:
        """The same for all: where one of several models must be asked for replies, or in a chat, all are."""
        settings = given.settings
        asked = list(zip(given.models, given.options, strict=True))
        words = settings.generate or any(gives_replies(model, options) for model, options in asked)
        remote = any(isinstance(model, str) and address_of(model, options).scheme for model, options in asked)
        return [replace(settings, generate=words, chat=settings.chat or (words and remote))] * len(asked)

    def compare(self, results: Sequence[Any], given: Given[UnbiasedSettings]) -> StudyResult:
        from unslant.studies.unbiased.comparison import compare_models

        return compare_models(results, given.inputs.scores(len(results)))

    def check(self, given: Given[UnbiasedSettings]) -> None:
        given.inputs.scores(len(given.log or given.models))


@dataclass(frozen=True, kw_only=True)
class UnbiasedKeywords(Keywords, RankingOptions, GenerateOptions, UnbiasedSettings):
    """Keywords of :func:`unbiased`."""


unbiased = function(Unbiased(), UnbiasedKeywords, UnbiasedResult)


def read_reply(reply: str, question: Question, presentation: Presentation) -> tuple[str, frozenset[int] | None]:
    """Status and contents of a reply; to an open question, 0 if its number is right and 1 if not."""
    if presentation.shown:
        return read_labels(reply, question, presentation)
    return read_open(reply, question.options[0])

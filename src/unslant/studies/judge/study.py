"""The study of judges: which of two answers is preferred, in both orders, and what that depends on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from unslant.asking import elicitation_of
from unslant.experiment.job import Asking, Given
from unslant.experiment.options import check_unused
from unslant.experiment.result import StudyResult
from unslant.experiment.study import Keywords, Study, function
from unslant.models import GenerateOptions
from unslant.models.base import TokenizingModel
from unslant.models.open import gives_replies
from unslant.presentations import Presentation, cyclic_orders, parse_labels, present
from unslant.questions import Question, QuestionSet
from unslant.replies import chosen_contents, extract_preference
from unslant.responses import Responses
from unslant.studies.judge.pairs import EMBEDDED, load_pairs
from unslant.studies.judge.result import JudgeComparison, JudgeResult
from unslant.studies.judge.settings import JudgeSettings


class Judge(Study[JudgeSettings]):
    """Measure and correct how far a judge's verdict depends on the order and length of the answers.

    A judge compares two answers (or more) to a question. Every pair is shown in both orders, and the verdict is read
    from the probabilities of the labels, or with --elicit generate from the reply. Reward models (reward:NAME) score
    each answer by itself. Without arguments, asks the reference model prefers-a about embedded pairs.

    With --log, reads verdicts that were logged: by JudgeBench, MT-Bench or AlpacaEval, or in a table of your own
    (question, response_A, response_B, decision or reply, order, label, system_A, system_B; --fields names its columns).
    Several judges are set side by side.

    Examples:
      unslant study judge org/name pairs.jsonl --html report.html
      unslant study judge --log judgements.jsonl
    """

    name = "judge"
    settings = JudgeSettings
    result = JudgeResult
    questions = EMBEDDED
    about_questions = (
        "Pairs: a file with question, response_A, response_B and, if known, label, system_A, system_B; or chosen and "
        "rejected; hub:ID; embedded-pairs."
    )
    generate = GenerateOptions
    of_logs = ("fields", "error")
    several = True
    in_shards = True

    def ask(self, asking: Asking[JudgeSettings]) -> Responses:
        settings, alphabet = asking.settings, parse_labels(asking.settings.labels)
        asked = [(pair, present(pair, o, alphabet)) for pair in asking.questions for o in cyclic_orders(pair)]
        if settings.in_words:
            return asking.ask_for_replies(asked, read=preferred, repeats=settings.repeats)
        model = asking.model
        if model.info.renders_prompts and settings.template == "judge":  # its words are its own
            settings = replace(settings, template="plain")
        elicitation = elicitation_of(model, settings.writer())
        responses = asking.ask(asked, [elicitation])
        run = responses.run
        listed = [
            prompt for pair in responses.questions for prompt in elicitation.prompts(present(pair, None, alphabet))
        ]
        cost = replace(run.cost, tokens_ordinary=_tokens(model.unwrapped, listed))
        return replace(responses, run=replace(run, cost=cost, example_prompt=listed[0].as_text() if listed else ""))

    def check(self, given: Given[JudgeSettings]) -> None:
        check_unused("labels of pairs are A, B or tie", given.settings, only=("answer_base", "answer_kind"))

    def load(self, given: Given[JudgeSettings]) -> QuestionSet[Question]:
        return load_pairs(given.questions, given.settings.fields, given.settings.skip_bad)

    def settings_of_each(self, given: Given[JudgeSettings]) -> list[JudgeSettings]:
        settings, each = given.settings, []
        for model, options in zip(given.models, given.options, strict=True):
            words = gives_replies(model, options) if settings.elicit == "auto" else settings.elicit == "generate"
            each.append(settings.resolved(words))
            if given.questions == EMBEDDED and not settings.template and not words:
                each[-1] = replace(each[-1], template="plain")  # the reference models know this layout only
        return each

    def recorded(self, responses: Responses, given: Given[JudgeSettings]) -> JudgeResult:
        return JudgeResult.of(responses, given.settings.error)

    def compare(self, results: Sequence[JudgeResult], given: Given[JudgeSettings]) -> StudyResult:
        return JudgeComparison.of(results)


@dataclass(frozen=True, kw_only=True)
class JudgeKeywords(Keywords, GenerateOptions, JudgeSettings):
    """Keywords of :func:`judge`."""


judge = function(Judge(), JudgeKeywords, JudgeResult)


def preferred(reply: str, question: Question, page: Presentation) -> tuple[str, frozenset[int] | None]:
    """The answers that a reply prefers: one, or all in a tie."""
    read = extract_preference(reply, page.labels)
    return read.status, chosen_contents(read, page)


def _tokens(model: Any, prompts: Sequence[Any]) -> int:
    """Tokens of prompts run one by one, whole; 0 where the model does not count them."""
    if not isinstance(model, TokenizingModel) or not prompts:
        return 0
    from unslant.models.hf.tree import other_costs

    return other_costs(model.encode(prompts), [""] * len(prompts))[0]

"""The study of judges: which of two answers is preferred, in both orders, and what that depends on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar, Self

from unslant.asking import elicitation_of
from unslant.errors import InputError
from unslant.experiment import ElicitOptions, ScoredLabelOptions
from unslant.experiment.job import Asking, Given
from unslant.experiment.result import StudyResult
from unslant.experiment.study import Keywords, Study, function
from unslant.flags import check_unused
from unslant.models import GenerateOptions
from unslant.models.base import TokenizingModel
from unslant.presentations import Presentation, cyclic_orders, parse_labels, present, question_rng
from unslant.questions import Question, QuestionSet, load_questions
from unslant.questions.loaders import Bad, open_source, ready_made
from unslant.questions.question import LoadReport
from unslant.questions.records import BadRecord, Record, usual_name, values_in
from unslant.questions.reshape import pairs_of
from unslant.reach import Reach
from unslant.replies import chosen_contents, extract_preference
from unslant.responses import Responses
from unslant.responses.importers.judgments import FIELDS, check_fields, columns_of, pair_of
from unslant.studies.judge.measures import ERROR
from unslant.studies.judge.result import JudgeComparison, JudgeResult


@dataclass(frozen=True, kw_only=True)
class JudgeSettings(ElicitOptions, ScoredLabelOptions):
    """How pairs are asked about; see :func:`unslant.studies.judge.study.judge`."""

    LEAST: ClassVar = {"repeats": 1}

    template: Annotated[str, Reach.PLACE] = ""
    """Prompt template: a name or the path of a .toml file. By default judge, or judge-reasoning with --reasoning."""
    repeats: int = 1
    """Replies: judge every pair N times in each order, to see how often the verdict changes by itself."""
    error: float = ERROR
    """Highest share of wrong verdicts, above 0 and below 1, allowed when the judge may abstain."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.error < 1:
            raise InputError(f"--error {self.error}: give a share above 0 and below 1")

    def resolved(self, generate: bool) -> Self:
        """See :meth:`ElicitOptions.resolved`; with the templates of judges."""
        if self.repeats > 1 and not generate:
            raise InputError("--repeats applies only to generated replies; add --elicit=generate")
        settings, usual = super().resolved(generate), "judge-reasoning" if self.reasoning else "judge"
        return settings if self.template else replace(settings, template=usual)


EMBEDDED = "embedded-pairs"
"""Name of the pairs that ship with unslant."""
_SYSTEMS = {"careful": 0.9, "average": 0.6, "careless": 0.3}
"""Invented systems -> how often each answers an embedded question right."""


def load_pairs(source: Any, fields: Mapping[str, str], skip_bad: bool = False) -> QuestionSet[Question]:
    """Pairs (or lists) of answers from a file, a data set of the Hub, records, or questions made ready.

    A record has ``question`` and ``response_A``, ``response_B`` with a ``label`` ("A>B", "A", "tie"), ``chosen`` and
    ``rejected`` (texts or lists, as in RewardBench), or ``responses`` with a label; see
    :data:`unslant.responses.importers.judgments.FIELDS`.

    Raises:
        InputError: naming place and field.
    """
    if isinstance(source, str) and source == EMBEDDED:
        return QuestionSet.of(demonstration(), EMBEDDED)
    if (ready := ready_made(source, Question)) is not None:
        return ready
    check_fields(fields, "pairs")
    names = {key: ",".join(names) for key, names in FIELDS.items()}  # by which a header is recognised
    opened, bad = open_source(source, "questions", {**names, **fields}), Bad(skip_bad)
    records, note = (opened.records, "") if fields else _with_labels(opened.records)
    pairs = bad.kept((record, partial(_pair, record, fields, opened.name, bad)) for record in records)
    return bad.whole(opened.name, pairs, records, LoadReport(opened.origin, notes=(note,) if note else ()))


def _with_labels(records: list[Record]) -> tuple[list[Record], str]:
    """Votes, whose label is the winner (Arena, Kaggle), as records of :data:`FIELDS`, and a note; others unchanged."""
    voted, names = pairs_of(records), {usual_name(column) for record in records for column in record.data}
    # Labels that are read already, or verdicts of a judge.
    if voted is None or names & {"label", "gold", "chosen", "verdict", "judgment", "judgement"}:
        return records, ""
    fields = {"question": "context", "responses": "options", "label": "answer", "id": "id"}
    made = [
        replace(pair, data={**record.data, **{to: pair.data.get(key) for to, key in fields.items()}})
        for record, pair in zip(records, voted[0], strict=True)
    ]
    return made, voted[1]


def _pair(record: Record, fields: Mapping[str, str], source: str, bad: Bad) -> Question:
    if record.problem:
        raise BadRecord("not a record", record.problem)
    pair = pair_of(values_in(record, columns_of(record, fields)))
    bad.claim(pair.id, record)
    # Files of ``chosen`` and ``rejected`` list the right answer first everywhere, so that a judge who prefers the first
    # place would be right on all of them.
    order = list(range(len(pair.options)))
    question_rng(pair.id, 0, "answers").shuffle(order)
    return replace(pair.relisted(order), source=source)


def demonstration() -> Iterator[Question]:
    """Two of three invented systems on every embedded question: one is right and one is wrong."""
    for question in load_questions("embedded"):
        rng = question_rng(question.id, 0, "systems")
        two = rng.sample(list(_SYSTEMS), 2)
        (right,) = question.answers
        wrong = [i for i in range(len(question.options)) if i != right]
        weights = [_SYSTEMS[one] * (1 - _SYSTEMS[other]) for one, other in (two, two[::-1])]
        right_first = rng.random() < weights[0] / sum(weights)
        texts = [question.options[right], question.options[rng.choice(wrong)]]
        options, answers = tuple(texts if right_first else texts[::-1]), frozenset({0 if right_first else 1})
        yield replace(question, options=options, answers=answers, pinned=(), authors=tuple(two))


class Judge(Study[JudgeSettings]):
    """Measure and correct how far a judge's verdict depends on the order and length of the answers.

    A judge compares two answers (or more) to a question. Every pair is shown in both orders, and the verdict is read
    from the probabilities of the labels, or with --elicit=generate from the reply. Reward models (reward:NAME) score
    each answer by itself. Without arguments, asks the reference model prefers-a about embedded pairs.

    With --log, reads logged verdicts: from JudgeBench, MT-Bench, AlpacaEval, LLMBar, PandaLM or RewardBench, or from a
    table of your own (question, response_A, response_B, decision or reply, order, label, system_A, system_B; --fields
    names its columns).
    Several judges are compared side by side.

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
    in_memory = True
    several = True
    in_shards = True

    def ask(self, asking: Asking[JudgeSettings]) -> Responses:
        settings, alphabet = asking.settings, parse_labels(asking.settings.labels)
        pages = [(pair, present(pair, o, alphabet)) for pair in asking.questions for o in cyclic_orders(pair)]
        if settings.in_words:
            return asking.ask_for_replies(pages, read=preferred, repeats=settings.repeats)
        model = asking.model
        if model.info.renders_prompts and settings.template == "judge":  # it words its prompts itself
            settings = replace(settings, template="plain")
        elicitation = elicitation_of(model, settings.writer())
        responses = asking.ask(pages, [elicitation])
        run = responses.run
        given = [present(pair, None, alphabet) for pair in responses.questions]
        listed = [prompt for page in given for prompt in elicitation.prompts(page)]
        cost = replace(run.cost, tokens_ordinary=_tokens(model.unwrapped, listed))
        return replace(responses, run=replace(run, cost=cost, example_prompt=listed[0].as_text() if listed else ""))

    def check(self, given: Given[JudgeSettings]) -> None:
        check_unused("labels of pairs are A, B or tie", given.settings, only=("answer_base", "answer_kind"))

    def load(self, given: Given[JudgeSettings]) -> QuestionSet[Question]:
        return load_pairs(given.questions, given.settings.fields, given.settings.skip_bad)

    def settings_of_each(self, given: Given[JudgeSettings]) -> list[JudgeSettings]:
        each = super().settings_of_each(given)
        embedded = isinstance(given.questions, str) and given.questions == EMBEDDED
        if embedded and not given.settings.template:  # the reference models know this layout only
            each = [one if one.in_words else replace(one, template="plain") for one in each]
        return each

    def recorded(self, responses: Responses, given: Given[JudgeSettings]) -> JudgeResult:
        return JudgeResult.of(responses, given.settings.error)

    def compare(self, results: Sequence[JudgeResult], given: Given[JudgeSettings]) -> StudyResult:
        return JudgeComparison.of(results)


@dataclass(frozen=True, kw_only=True)
class JudgeKeywords(Keywords, GenerateOptions, JudgeSettings):
    """Keywords of :func:`judge`.

    Examples:
        >>> result = unslant.study.judge("prefers-a", limit=10)
        >>> result.changes["winner follows the place"]
        4
    """


judge = function(Judge(), JudgeKeywords, JudgeResult)


def preferred(reply: str, question: Question, page: Presentation) -> tuple[str, frozenset[int] | None]:
    """The answers that a reply prefers: one, or all in a tie."""
    preference = extract_preference(reply, page.labels)
    return preference.status, chosen_contents(preference, page)


def _tokens(model: Any, prompts: Sequence[Any]) -> int:
    """Tokens of prompts run one by one, whole; 0 where the model does not count them."""
    if not isinstance(model, TokenizingModel) or not prompts:
        return 0
    from unslant.models.hf import other_costs

    return other_costs(model.encode(prompts), [""] * len(prompts))[0]

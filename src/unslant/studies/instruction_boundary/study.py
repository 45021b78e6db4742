"""The instruction-boundary study (P3): the effect of instructions on generated answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unslant.asking import Progress, generate_all
from unslant.errors import InputError
from unslant.experiment.job import Asking, Given, Job
from unslant.experiment.provenance_block import check_same, provenance
from unslant.experiment.ranking import RankingOptions
from unslant.experiment.reply_judge import CERTAIN, ReplyJudge
from unslant.experiment.result import StudyResult
from unslant.experiment.run_record import answerers, requests_of
from unslant.experiment.study import Keywords, Study, function
from unslant.models import ChatModel, GenerateOptions, LengthOptions, Reply
from unslant.models.open import address_of, open_chat
from unslant.models.options import scoring_options
from unslant.presentations import Presentation, parse_labels
from unslant.prompts import Message, Prompt
from unslant.questions import Question
from unslant.reference import WORDS, reference_names
from unslant.replies.judge import needs_judge
from unslant.responses import Response, Responses, Run
from unslant.studies.instruction_boundary.instruction_settings import setting
from unslant.studies.instruction_boundary.plan import Asked, plan, setting_names
from unslant.studies.instruction_boundary.prompts import POLISH_REQUEST, chat, is_instruction
from unslant.studies.instruction_boundary.question_sources import BoundarySet, load_boundary
from unslant.studies.instruction_boundary.result import BoundaryStudy, facts_of, read, result_of, row
from unslant.studies.instruction_boundary.settings import MAX_TOKENS, TEMPERATURE, BoundarySettings


class InstructionBoundary(Study[Any]):
    """Ask the same questions under complete, excessive and incomplete instructions.

    One, several or no options may be right; a statement may be true, false or unknown. Replies are stored as they come:
    the same command resumes a run that was stopped, and with --judge added asks only the judge. Several models, or
    several logs, are set side by side: what each setting does across models, which model is robust, and whether another
    ranking agrees.

    Examples:
      unslant study instruction-boundary inspect:openai/gpt-4o-mini --limit 60 --html report.html
      unslant study instruction-boundary -m inspect:openai/gpt-4o -m inspect:google/gemini-2.0-flash -m org/name
    """

    name = "instruction-boundary"
    settings = BoundarySettings
    result = BoundaryStudy
    model = "words"
    about_questions = "File from 'unslant questions build instruction-boundary', or 'embedded'."
    inputs = RankingOptions
    generate = LengthOptions
    several = True
    without = scoring_options()

    def check(self, given: Given[Any]) -> None:
        given.inputs.scores(len(given.log or given.models))
        for name in filter(None, (given.settings.judge, given.settings.polisher)):
            address_of(name, None, ("generate",))
        if silent := [name for name in given.models if isinstance(name, str) and name in reference_names()]:
            raise InputError(f"{silent[0]}: was trained to score labels and does not reply in words; use {WORDS}")

    def load(self, given: Given[Any]) -> BoundarySet:
        questions = given.questions
        return questions if isinstance(questions, BoundarySet) else load_boundary(questions, **given.settings.reading)

    def compare(self, results: Sequence[BoundaryStudy], given: Given[Any]) -> StudyResult:
        from unslant.studies.instruction_boundary.comparison import compare_boundaries

        return compare_boundaries(results, ranking=given.inputs.scores(len(results)))

    def measured(self, responses: Responses) -> BoundaryStudy:
        return result_of(responses)

    def ask(self, asking: Asking[Any]) -> Responses:
        settings: BoundarySettings = asking.settings
        generate = asking.job.given.generate.filled(TEMPERATURE, MAX_TOKENS)
        temperatures: Sequence[Any] = tuple(settings.temperature) or (generate.temperature,)
        whole: BoundarySet = asking.job.questions
        source = asking.job.given.questions
        name = str(source) if isinstance(source, str | Path) else "questions"
        questions = whole.balanced(settings.limit, settings.seed)
        check_same(questions)
        alphabet, left_out = parse_labels(settings.labels), settings.left_out
        asked = plan(
            questions, settings.settings, seed=settings.seed, left_out=left_out, alphabet=alphabet, examples=whole
        )
        model = asking.job.open(asking.place, ("generate",))
        spent = {model.name: (model, model.cost.copy())}
        judge = polisher = None
        if settings.judge:
            judge_model = _other(asking.job, settings.judge, CERTAIN)
            spent[f"the judge {judge_model.name}"] = (judge_model, judge_model.cost.copy())
            judge = ReplyJudge(judge_model, asking.progress)
        if settings.polisher:
            polisher = _other(asking.job, settings.polisher, generate)
            spent[f"the polisher {polisher.name}"] = (polisher, polisher.cost.copy())
        asked, polished, notes = _polished(polisher or model, asked, generate, asking.progress)
        wanted = [(*one, repeat) for one in asked for repeat in range(settings.repeats)]
        rows: list[Response] = []
        for run, temperature in enumerate(temperatures):
            at = model.at(replace(generate, temperature=temperature))
            replies = _replies(at, [shown for _, shown, _ in wanted], asking.progress)
            rows += _rows(wanted, replies, judge, run)
        if errors := sum(one.status == "error" for one in rows):
            notes.append(
                f"{errors:,} of {len(rows):,} requests got no reply and are left out; start again to repeat them"
            )
        made = Run(
            study=self.name,
            model=model.name,
            questions=name,
            questions_digest=questions.digest,
            settings={
                "settings": setting_names(settings.settings),
                "labels": settings.labels,
                "seed": settings.seed,
                "temperatures": list(temperatures),
                "max_tokens": generate.max_tokens,
                **({"judge": judge.model.name} if judge else {}),
                **({"polisher": polisher.name} if polisher else {}),
            },
            polished=dict(polished),
            requests=requests_of(spent),
            offline="offline" in model.info.facts,
            **answerers(model),
            provenance=provenance([model for model, _ in spent.values()], [(name, questions)], settings),
            notes=(*questions.notes, *notes, *(judge.notes if judge else ())),
        )
        texts = {question.id: question for question, _ in asked if isinstance(question, Question)}
        return replace(Responses.from_rows(rows, made), questions=tuple(texts.values()))


@dataclass(frozen=True, kw_only=True)
class BoundaryKeywords(Keywords, RankingOptions, GenerateOptions, BoundarySettings):
    """Keywords of :func:`instruction_boundary`."""


instruction_boundary = function(InstructionBoundary(), BoundaryKeywords, BoundaryStudy)


def _other(job: Job[Any], name: str, generate: GenerateOptions) -> ChatModel:
    """The judge or the polisher."""
    model: ChatModel = job.record.stored(open_chat(name, None, generate))
    return model


def _polished(
    model: ChatModel, asked: Sequence[Asked], generate: GenerateOptions, progress: Progress
) -> tuple[list[Asked], Mapping[str, str], list[str]]:
    """The presentations with their instructions rewritten where the setting says so; each text is rewritten once.

    Returns:
        Them; original -> rewritten instruction; and notes on those that are asked with the original.
    """
    originals = list(dict.fromkeys(shown.instruction for _, shown in asked if setting(shown.item).polish))
    if not originals:
        return list(asked), {}, []
    prompts = [Prompt("", (), (Message("user", POLISH_REQUEST + text),)) for text in originals]
    replies = generate_all(model.at(replace(generate, temperature=0.0)), prompts, progress=progress, phase="polishing")
    rewritten, notes = {}, []
    for original, reply in zip(originals, replies, strict=True):
        text = (reply.text or "").strip()
        if is_instruction(text, original):
            rewritten[original] = text
        else:
            why = repr(text[:60]) if reply.text is not None else reply.error
            notes.append(f"an instruction was asked as it is: {model.name} gave none in its place ({why})")
    changed = [
        (question, replace(shown, instruction=rewritten.get(shown.instruction, shown.instruction)))
        if setting(shown.item).polish
        else (question, shown)
        for question, shown in asked
    ]
    return changed, rewritten, notes


def _replies(model: ChatModel, shown: Sequence[Presentation], progress: Progress) -> list[Reply]:
    """The reply that counts to each presentation: the second one, where its setting has a second turn."""
    prompts = [Prompt("", (), chat(presentation), group=presentation.question_id) for presentation in shown]
    replies = generate_all(model, prompts, progress=progress)
    second = {
        i: (*prompts[i].messages, Message("assistant", reply.text), Message("user", follow_up))
        for i, reply in enumerate(replies)
        if (follow_up := setting(shown[i].item).follow_up) and reply.text is not None
    }
    if second:
        again = [Prompt("", (), messages, group=shown[i].question_id) for i, messages in second.items()]
        for i, reply in zip(second, generate_all(model, again, progress=progress, phase="reflecting"), strict=True):
            replies[i] = reply
    return replies


def _rows(
    wanted: Sequence[tuple[Any, Presentation, int]], replies: Sequence[Reply], judge: ReplyJudge | None, run: int
) -> list[Response]:
    found = [read(reply, shown) for (_, shown, _), reply in zip(wanted, replies, strict=True)]
    open_ = [i for i, one in enumerate(found) if judge and needs_judge(one) and (replies[i].text or "").strip()]
    pages = [(replies[i].text or "", wanted[i][1]) for i in open_]
    asked = [(text, shown.labels, [option.text for option in shown.shown]) for text, shown in pages]
    read_by_judge = judge.read(asked) if judge else []
    judged = {i: one for i, one in zip(open_, read_by_judge, strict=True) if one is not None}
    return [
        row(shown, facts_of(question), reply, judged.get(i, found[i]), judged=i in judged, run=run, repeat=repeat)
        for i, ((question, shown, repeat), reply) in enumerate(zip(wanted, replies, strict=True))
    ]

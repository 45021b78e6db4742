"""The instruction-boundary study (P3): the effect of instructions on generated answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from unslant.asking import Progress, generate_all, no_progress
from unslant.experiment.options import with_options
from unslant.experiment.provenance_block import check_same, provenance
from unslant.experiment.reply_judge import CERTAIN, ReplyJudge
from unslant.experiment.run_record import answerers, requests_of
from unslant.models import ChatModel, GenerateOptions, Reply
from unslant.models.open import address_of, open_chat, opened
from unslant.presentations import Presentation, parse_labels
from unslant.prompts import Message, Prompt
from unslant.questions import EMBEDDED, Question
from unslant.replies.judge import needs_judge
from unslant.responses import Response, Responses, Run
from unslant.responses.provenance import Provenance
from unslant.studies.instruction_boundary.instruction_settings import setting
from unslant.studies.instruction_boundary.plan import Asked, plan, setting_names
from unslant.studies.instruction_boundary.polishing import POLISH_REQUEST, is_instruction
from unslant.studies.instruction_boundary.prompts import chat
from unslant.studies.instruction_boundary.question_sources import BoundarySet, load_boundary
from unslant.studies.instruction_boundary.result import BoundaryStudy, result_of
from unslant.studies.instruction_boundary.rows import facts_of, read, row
from unslant.studies.instruction_boundary.settings import MAX_TOKENS, TEMPERATURE, BoundarySettings


def _open(name: str, generate: GenerateOptions) -> ChatModel:
    return open_chat(name, None, generate)


def instruction_boundary(
    model: str | ChatModel | Callable[[], ChatModel],
    questions: Any = EMBEDDED,
    settings: BoundarySettings | None = None,
    *,
    generate: GenerateOptions | None = None,
    load: Callable[[str, GenerateOptions], ChatModel] = _open,
    progress: Progress = no_progress,
    **options: Any,
) -> BoundaryStudy:
    """Ask every question under every setting, and measure the effect of the settings.

    Args:
        model: a name for :func:`unslant.models.open.open_chat`, an open model, or a function that opens one.
        questions: a set, the file of one, or an object that :func:`unslant.load_questions` takes.
        settings, options: what is asked: a
            :class:`~unslant.studies.instruction_boundary.settings.BoundarySettings`, its fields as keywords
            (``names=["vanilla"]``, ``limit=60``, ...), or both.
        generate: how replies are generated; temperature 0.5 and 2048 tokens unless given. ``temperatures`` among
            the settings overrides its temperature: every request is made at each of them (P3, section 4.4).
        load: opens the judge and the polisher by name.

    Raises:
        InputError: on an invalid setting or option.
        ModelError: if a model cannot be loaded, or there is no use in asking it.
    """
    chosen = with_options(BoundarySettings, settings, options)
    asked_by = (generate or GenerateOptions()).filled(TEMPERATURE, MAX_TOKENS)
    temperatures: Sequence[Any] = tuple(chosen.temperatures) or (asked_by.temperature,)
    for name in filter(None, (chosen.judge, chosen.polisher)):
        address_of(name, None, ("generate",))
    source = questions if isinstance(questions, str | Path) else "questions"
    whole = questions if isinstance(questions, BoundarySet) else load_boundary(questions, **chosen.reading)
    found = whole.balanced(chosen.limit, chosen.seed)
    check_same(found)
    alphabet = parse_labels(chosen.labels)
    asked = plan(found, chosen.names, seed=chosen.seed, left_out=chosen.left_out, alphabet=alphabet, examples=whole)
    asker = opened(model, ("generate",))
    spent = {asker.name: (asker, asker.cost.copy())}
    judge = polisher = None
    if chosen.judge:
        judge_model = load(chosen.judge, CERTAIN)
        spent[f"the judge {judge_model.name}"] = (judge_model, judge_model.cost.copy())
        judge = ReplyJudge(judge_model, progress)
    if chosen.polisher:
        polisher = load(chosen.polisher, asked_by)
        spent[f"the polisher {polisher.name}"] = (polisher, polisher.cost.copy())
    asked, polished, notes = _polished(polisher or asker, asked, asked_by, progress)
    wanted = [(*one, repeat) for one in asked for repeat in range(chosen.repeats)]
    rows: list[Response] = []
    for run, temperature in enumerate(temperatures):
        at = asker.at(replace(asked_by, temperature=temperature))
        replies = _replies(at, [shown for _, shown, _ in wanted], progress)
        rows += _rows(wanted, replies, judge, run)
    made = Run(
        study="instruction-boundary",
        model=asker.name,
        questions=str(source),
        questions_digest=found.digest,
        settings={
            "settings": setting_names(chosen.names),
            "labels": chosen.labels,
            "seed": chosen.seed,
            "temperatures": list(temperatures),
            "max_tokens": asked_by.max_tokens,
            **({"judge": judge.model.name} if judge else {}),
            **({"polisher": polisher.name} if polisher else {}),
        },
        polished=dict(polished),
        requests=requests_of(spent),
        offline=getattr(asker, "offline", False),
        **answerers(asker),
        provenance=Provenance.model_validate(
            provenance([model for model, _ in spent.values()], [(source, found)], chosen)
        ),
    )
    errors = sum(one.status == "error" for one in rows)
    notes = [*found.notes, *notes, *(judge.notes if judge else ())]
    if errors:
        notes.append(f"{errors:,} of {len(rows):,} requests got no reply and are left out; start again to repeat them")
    texts = {question.id: question for question, _ in asked if isinstance(question, Question)}
    measured = result_of(replace(Responses.from_rows(rows, made), questions=tuple(texts.values())))
    return replace(measured, notes=tuple(notes))


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
    read_by_judge = judge.read([(replies[i].text or "", wanted[i][1].labels) for i in open_]) if judge else []
    judged = {i: one for i, one in zip(open_, read_by_judge, strict=True) if one is not None}
    return [
        row(shown, facts_of(question), reply, judged.get(i, found[i]), judged=i in judged, run=run, repeat=repeat)
        for i, ((question, shown, repeat), reply) in enumerate(zip(wanted, replies, strict=True))
    ]

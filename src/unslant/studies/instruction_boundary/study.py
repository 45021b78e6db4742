"""The instruction-boundary study (P3): the effect of instructions on generated answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from unslant.asking import Progress, generate_all, reply_row
from unslant.errors import InputError
from unslant.experiment import FieldOptions, LabelOptions, Names, Temperatures
from unslant.experiment.job import Asking, Given, facts_of_replies, provenance, requests_of
from unslant.experiment.ranking import RankingOptions
from unslant.experiment.reply_judge import CERTAIN, ReplyJudge
from unslant.experiment.result import StudyResult
from unslant.experiment.running import check_same
from unslant.experiment.study import Keywords, Study, function
from unslant.flags import check_unused
from unslant.models import ChatModel, GenerateOptions, LengthOptions, Reply
from unslant.models.open import address_of, open_chat
from unslant.models.options import options_for
from unslant.presentations import ALPHABETS, Presentation, parse_labels
from unslant.prompts import Message, Prompt
from unslant.questions import Question, QuestionSet
from unslant.questions.loaders import IN_MEMORY
from unslant.reach import Reach
from unslant.reference import WORDS, reference_names
from unslant.responses import Response, Responses, Run
from unslant.studies.instruction_boundary.instruction_settings import (
    FORMS,
    POLISH_REQUEST,
    SEED,
    SETTINGS,
    AnyForm,
    chat,
    is_instruction,
    kind_of,
    present_setting,
    setting,
)
from unslant.studies.instruction_boundary.question_sources import BoundarySet, counts_of, load_boundary
from unslant.studies.instruction_boundary.result import BoundaryStudy, as_judged, needs_reading, result_of

EVERY = "all"
"""All settings but the disturbing options."""
DISTURBING = "disturbing"
"""The disturbing options, 1 to 9."""

Asked = tuple[AnyForm, Presentation]
Sample = tuple[AnyForm, Presentation, int]
"""A question, a presentation of it, and the number of the reply to it."""


TEMPERATURE = 0.5
"""Sampling temperature of P3."""
MAX_TOKENS = 2048


@dataclass(frozen=True, kw_only=True)
class BoundarySettings(FieldOptions, LabelOptions):
    """What is asked; see :func:`unslant.studies.instruction_boundary.study.instruction_boundary`."""

    LEAST: ClassVar = {"limit": 4, "repeats": 1, "seed": 0}

    settings: Names = ("all",)
    """Settings, separated by commas; all; disturbing: 1 to 9 wrong options; few-shot:FORM=N+FORM=N: worked examples."""
    limit: int | None = None
    """Sample at most N questions of each kind, half with a usual answer."""
    seed: int = SEED
    """Random seed; 42 as in the paper."""
    repeats: int = 1
    """Replies for each question and setting."""
    temperature: Temperatures = ()
    """Sampling temperature, 0 to 2, or several separated by commas, each in its own run; 0.5 by default."""
    judge: Annotated[str | None, Reach.MODEL] = None
    """Model that reads the replies in which no answer was found."""
    polisher: Annotated[str | None, Reach.MODEL] = None
    """Model that rewrites instructions, such as inspect:PROVIDER/NAME; by default the model itself."""
    left_out: Literal["", "single", "several", "none", "True", "False", "Unknown"] = ""
    """Form that missing-choices leaves out; by default none and Unknown."""

    @property
    def in_words(self) -> bool:
        """Replies are read."""
        return True

    def __post_init__(self) -> None:
        super().__post_init__()
        for temperature in self.temperature:
            GenerateOptions(temperature=temperature)
        if len(set(self.temperature)) < len(self.temperature):
            raise InputError(f"--temperature={','.join(f'{t:g}' for t in self.temperature)}: give each once")
        names = setting_names(self.settings)
        if "missing-choices" not in names:
            check_unused("missing-choices is not asked (--settings=missing-choices)", self, only=("left_out",))
        if not any(setting(name).polish for name in names):
            check_unused("prompt-polishing is not asked (--settings=prompt-polishing)", self, only=("polisher",))


class InstructionBoundary(Study[Any]):
    """Ask the same questions under complete, excessive and incomplete instructions.

    One, several or no options may be right; a statement may be true, false or unknown. Replies are stored as they
    arrive: the same command resumes a stopped run, and with --judge added asks only the judge. Several models, or
    several logs, are compared side by side: the effect of each setting across models, which model is robust, and
    whether another ranking agrees.

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
    compared = "instruction-boundary-comparison"
    without = options_for("score")

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
        from unslant.studies.instruction_boundary.comparison import BoundaryComparison

        return BoundaryComparison.of(results, given.inputs.scores(len(given.log or given.models)))

    def measured(self, responses: Responses) -> BoundaryStudy:
        return result_of(responses)

    def ask(self, asking: Asking[Any]) -> Responses:
        settings: BoundarySettings = asking.settings
        generate = asking.job.given.generate.filled(TEMPERATURE, MAX_TOKENS)
        temperatures: Sequence[Any] = tuple(settings.temperature) or (generate.temperature,)
        whole: BoundarySet = asking.job.questions
        source = asking.job.given.questions
        of_file = str(source) if isinstance(source, str | Path) else IN_MEMORY
        name = source.name if isinstance(source, QuestionSet) else of_file
        questions = whole.balanced(settings.limit, settings.seed)
        check_same(questions)
        alphabet, left_out = parse_labels(settings.labels), settings.left_out
        items = plan(
            questions, settings.settings, seed=settings.seed, left_out=left_out, alphabet=alphabet, examples=whole
        )
        model = asking.job.open(asking.place, ("generate",))
        spent = {model.name: (model, model.cost.copy())}

        def other(role: str, name: str, how: GenerateOptions) -> ChatModel:
            """The judge or the polisher, its replies stored like the model's."""
            opened = asking.job.record.stored(open_chat(name, None, how))
            spent[f"the {role} {opened.name}"] = (opened, opened.cost.copy())
            return opened

        judge = ReplyJudge(other("judge", settings.judge, CERTAIN), asking.progress) if settings.judge else None
        polisher = other("polisher", settings.polisher, generate) if settings.polisher else None
        items, polished, notes = _polished(polisher or model, items, generate, asking.progress)
        samples = [(*one, repeat) for one in items for repeat in range(settings.repeats)]
        rows: list[Response] = []
        for run, temperature in enumerate(temperatures):
            at = model.at(replace(generate, temperature=temperature))
            replies = _replies(at, [presentation for _, presentation, _ in samples], asking.progress)
            rows += _rows(samples, replies, judge, run)
        if errors := sum(one.status == "error" for one in rows):
            failures = f"{errors:,} of {len(rows):,} requests got no reply and are left out"
            notes.append(f"{failures}; start again to repeat them")
        record = Run(
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
                **({"left_out": left_out} if left_out else {}),
                **({"judge": judge.model.name} if judge else {}),
                **({"polisher": polisher.name} if polisher else {}),
            },
            polished=dict(polished),
            requests=requests_of(spent),
            **facts_of_replies(model, model.describe().facts),
            provenance=provenance([model for model, _ in spent.values()], [(name, questions)], settings),
            notes=(*questions.notes, *notes, *(judge.notes if judge else ())),
        )
        texts = {question.id: question for question, _ in items if isinstance(question, Question)}
        return replace(Responses.from_rows(rows, record), questions=tuple(texts.values()))


@dataclass(frozen=True, kw_only=True)
class BoundaryKeywords(Keywords, RankingOptions, GenerateOptions, BoundarySettings):
    """Keywords of :func:`instruction_boundary`.

    Examples:
        >>> result = unslant.study.instruction_boundary("words", limit=10)
        >>> sum(result.statuses.values())  # replies, read or not
        160
    """


instruction_boundary = function(InstructionBoundary(), BoundaryKeywords, BoundaryStudy)


def setting_names(names: Sequence[str]) -> list[str]:
    """Expand ``all`` and ``disturbing``, without duplicates, in order; InputError for unknown settings."""
    spelled: dict[str, None] = {}
    for name in (name.strip() for name in names):
        if name in (EVERY, DISTURBING):
            members = [other for other, one in SETTINGS.items() if bool(one.disturbing) == (name == DISTURBING)]
            spelled.update(dict.fromkeys(members))
        else:
            spelled[setting(name).name] = None
    return list(spelled)


def plan(
    questions: BoundarySet,
    names: Sequence[str],
    *,
    seed: int = SEED,
    left_out: str = "",
    alphabet: tuple[str, ...] = ALPHABETS["A"],
    examples: BoundarySet | None = None,
) -> list[Asked]:
    """Every question under every setting, setting by setting.

    Multiple-choice and judging questions are asked under all settings but the disturbing options, which have
    questions of their own; under worked examples of named forms only questions of the kind that has these forms.

    Args:
        alphabet: labels of the options.
        examples: where worked examples come from; by default ``questions``. With the whole set that these were
            drawn from, a question's prompts do not depend on how many others are asked.

    Raises:
        InputError: if a setting does not exist, it has no questions, or a question has more options than labels.
    """
    mixed: tuple[AnyForm, ...] = (*questions.choice, *questions.judging)
    kinds = dict.fromkeys(map(kind_of, mixed))
    if left_out and kinds and not any(left_out in FORMS[kind] for kind in kinds):
        held = " and ".join(", ".join(FORMS[kind]) for kind in kinds)
        raise InputError(f"left out form {left_out!r}: the questions have the forms {held}: give one of these")
    pool: tuple[AnyForm, ...] = (*examples.choice, *examples.judging) if examples else mixed
    items: list[Asked] = []
    for name in setting_names(names):
        way = setting(name)
        group: Sequence[AnyForm] = questions.disturbing if way.disturbing else mixed
        if way.examples:
            group = [question for question in mixed if way.examples_of(kind_of(question))]
        if not group:
            why = "the question set has none for it"
            if examples and not way.disturbing and pool:
                why = (
                    "they are drawn in fours: two with one right option, one with several and one with none, or two "
                    f"Unknown statements, a True and a False one; the set has {counts_of(pool)}, and a limit must be "
                    "4 or more"
                )
            raise InputError(f"setting {name!r}: no questions are left ({why})")
        present = partial(present_setting, name=name, examples=pool, seed=seed, alphabet=alphabet, left_out=left_out)
        items += [(question, present(question)) for question in group]
    return items


def _polished(
    model: ChatModel, items: Sequence[Asked], generate: GenerateOptions, progress: Progress
) -> tuple[list[Asked], Mapping[str, str], list[str]]:
    """The presentations with their instructions rewritten where the setting says so; each text is rewritten once.

    Returns:
        Them; original -> rewritten instruction; and notes on those that are asked with the original.
    """
    originals = list(dict.fromkeys(page.instruction for _, page in items if setting(page.item).polish))
    if not originals:
        return list(items), {}, []
    prompts = [Prompt("", (), (Message("user", POLISH_REQUEST + text),)) for text in originals]
    replies = generate_all(model.at(replace(generate, temperature=0.0)), prompts, progress=progress, phase="polishing")
    rewritten, notes = {}, []
    for original, reply in zip(originals, replies, strict=True):
        text = (reply.text or "").strip()
        if is_instruction(text, original):
            rewritten[original] = text
        else:
            why = repr(text[:60]) if reply.text is not None else reply.error
            notes.append(f"an instruction was asked as it is: {model.name} produced no usable rewrite ({why})")
    changed = [
        (question, replace(page, instruction=rewritten.get(page.instruction, page.instruction)))
        if setting(page.item).polish
        else (question, page)
        for question, page in items
    ]
    return changed, rewritten, notes


def _replies(model: ChatModel, presentations: Sequence[Presentation], progress: Progress) -> list[Reply]:
    """The reply that counts to each presentation: the second one, where its setting has a second turn."""
    prompts = [Prompt("", (), chat(presentation), group=presentation.question_id) for presentation in presentations]
    replies = generate_all(model, prompts, progress=progress)
    second = {
        i: (*prompts[i].messages, Message("assistant", reply.text), Message("user", follow_up))
        for i, reply in enumerate(replies)
        if (follow_up := setting(presentations[i].item).follow_up) and reply.text is not None
    }
    if second:
        again = [Prompt("", (), messages, group=presentations[i].question_id) for i, messages in second.items()]
        for i, reply in zip(second, generate_all(model, again, progress=progress, phase="reflecting"), strict=True):
            replies[i] = reply
    return replies


def _rows(samples: Sequence[Sample], replies: Sequence[Reply], judge: ReplyJudge | None, run: int) -> list[Response]:
    rows = [
        replace(reply_row(question, page, reply), run=run, repeat=repeat)
        for (question, page, repeat), reply in zip(samples, replies, strict=True)
    ]
    if judge:  # only for replies that the patterns cannot read: a judge is a model too, and can be wrong
        pages = {i: page for i, (_, page, _) in enumerate(samples) if needs_reading(rows[i], page)}
        texts = [(rows[i].raw or "", page.labels, [option.text for option in page.shown]) for i, page in pages.items()]
        for (i, page), judgement in zip(pages.items(), judge.read(texts), strict=True):
            if judgement is not None:
                rows[i] = as_judged(rows[i], page, judgement)
    return rows

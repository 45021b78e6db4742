"""The instruction settings of P3 as presentations: what the instruction covers, adds or leaves out.

One instruction serves all forms of a question set: of a multiple-choice question one option may be right, several or
none; a statement is true, false or unknown. No option such as "none of these" is added. The wording is our own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from unslant.errors import InputError, one_of
from unslant.presentations import ALPHABETS, NONE, Presentation, ShownOption, labels_for, present, question_rng
from unslant.presentations.orders import wording
from unslant.prompts import Message
from unslant.questions import JudgingQuestion, Question

AnyForm = Question | JudgingQuestion
SEED = 42
MAX_DISTURBING = 9
"""Most wrong options of the disturbing miscellany."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One way of instructing.

    Attributes:
        description: what it does, as a clause after "when".
        follow_up: a second turn that shows the model its first answer; the second answer counts. Usually empty.
        polish: the instruction is first rewritten by a model.
        disturbing: number of wrong options kept with the right one; 0: the options are left alone.
        suggests: form of the answer that the prompt suggests, ``dense`` or ``sparse``; empty: it suggests none.
        example: form of the answer of the one worked example; empty: there is none.
        examples: form of answer and number of its worked examples (P3, appendix H); empty: as ``example`` says.
    """

    name: str
    description: str
    follow_up: str = ""
    polish: bool = False
    disturbing: int = 0
    suggests: str = ""
    example: str = ""
    examples: tuple[tuple[str, int], ...] = ()

    def examples_of(self, kind: str) -> list[tuple[str, int]]:
        """Those of ``examples`` whose form ``choice`` or ``judging`` questions have."""
        return [(form, n) for form, n in self.examples if form in FORMS[kind]]


_REFLECT = (
    "Check your answer: go through your reasoning, if you gave any, and look for mistakes. "
    'Then give your final answer on the last line, as "Answer: ...".'
)
_SETTINGS = (
    Setting("vanilla", "the instruction names every form, with guidance for each"),
    Setting("reasoning-reflection", "it reasons first and then reviews its own steps", _REFLECT),
    Setting("prompt-polishing", "a model has rewritten the instruction", polish=True),
    Setting("conformity-dense", "the prompt suggests a usual answer (one option, True or False)", suggests="dense"),
    Setting("conformity-sparse", "the prompt suggests an unusual answer (none, several or Unknown)", suggests="sparse"),
    Setting("few-shot-dense", "a worked example with a usual answer comes first", example="dense"),
    Setting("few-shot-sparse", "a worked example with an unusual answer comes first", example="sparse"),
    Setting("missing-choices", "the instruction leaves out one form of answer"),
    Setting("vagueness", "the instruction names every form without guidance"),
    Setting("mitigation", "the instruction warns of each bias"),
    *(Setting(f"disturbing-{k}", f"the right option is one among {k} wrong", disturbing=k)
      for k in range(1, MAX_DISTURBING + 1)),
)  # fmt: skip
SETTINGS: Mapping[str, Setting] = {setting.name: setting for setting in _SETTINGS}
"""Of these, the first three are sufficient, missing choices and vagueness insufficient, and the mitigation warns of the
biases; all others are redundant (P3, table 1)."""
FEW_SHOT = "few-shot:"
"""Begins the name of a setting with worked examples of named forms, as ``few-shot:True=1+False=1`` (P3, appendix H)."""
BASELINE = "vanilla"
SETTING = "setting"
"""Kind of these presentations; their item is the name of the setting."""

# No worked example among the guidance: an example answer primes, and whether answers are primed is what is measured.
_GUIDANCE = {
    "choice": {
        "single": "If exactly one option is right, answer with its label.",
        "several": "If several options are right, answer with all of their labels, separated by commas.",
        "none": "If no option is right, answer: none",
    },
    "judging": {
        "True": "True: the facts show that the statement holds.",
        "False": "False: the facts show that the statement does not hold.",
        "Unknown": "Unknown: the facts show neither.",
    },
}
FORMS: Mapping[str, tuple[str, ...]] = {kind: tuple(guidance) for kind, guidance in _GUIDANCE.items()}
"""Kind of question -> the forms of its right answers."""
ALL_FORMS = (*FORMS["choice"], *FORMS["judging"])
DENSE = frozenset({"single", "True", "False"})
"""The usual forms; the others are sparse (P3, section 2)."""
_LEFT_OUT = {"choice": "none", "judging": "Unknown"}
_ALONE = "Give the answer alone."
_STEPS = 'Show each step of your reasoning. Then give the answer on the last line, as "Answer: ...".'
_WARNINGS = (
    "Judge every option or statement by itself. Do not expect one form of answer more than another, do not take over "
    "an answer that somebody suggests, do not copy the form of an example, and do not be distracted by extra options "
    "or by what this instruction does not mention."
)


def setting(name: str) -> Setting:
    """The setting called ``name``: one of :data:`SETTINGS`, or worked examples counted by form (:data:`FEW_SHOT`).

    Raises:
        InputError: if there is none; it lists them.
    """
    if name.startswith(FEW_SHOT):
        return _few_shot(name)
    if name not in SETTINGS:
        raise InputError(
            f"unknown setting {name!r}: {one_of(name, SETTINGS)}, or worked examples by form, such as "
            f"{FEW_SHOT}single=2+none=1 or {FEW_SHOT}True=1+False=1"
        )
    return SETTINGS[name]


def _few_shot(name: str) -> Setting:
    counts: dict[str, int] = {}
    for part in name.removeprefix(FEW_SHOT).split("+"):
        form, _, n = part.partition("=")
        if form not in ALL_FORMS or form in counts or not n.isdecimal() or int(n) < 1:
            raise InputError(
                f"setting {name!r}, {part!r}: write each form once, with the number of its examples, as "
                f"{FEW_SHOT}single=2+none=1; forms are {', '.join(ALL_FORMS)}"
            )
        counts[form] = int(n)
    return Setting(name, "worked examples of chosen forms come first", examples=tuple(counts.items()))


def kind_of(question: AnyForm) -> str:
    """``choice`` or ``judging``."""
    return "judging" if isinstance(question, JudgingQuestion) else "choice"


def form_of(question: AnyForm) -> str:
    """``single``, ``several`` or ``none`` by the number of right options; ``True``, ``False`` or ``Unknown``."""
    if isinstance(question, JudgingQuestion):
        return question.verdict
    return "none" if not question.answers else "single" if len(question.answers) == 1 else "several"


def is_dense(question: AnyForm) -> bool:
    """Whether the right answer has a usual form: one option, True or False."""
    return form_of(question) in DENSE


def instruction(kind: str, name: str, left_out: str = "") -> str:
    """The instruction of one setting.

    Args:
        kind: ``choice`` or ``judging``.
        left_out: the form that ``missing-choices`` does not name: ``single``, ``several`` or ``none``; ``True``,
            ``False`` or ``Unknown``. By default ``none`` and ``Unknown``.

    Raises:
        InputError: if ``left_out`` is not a form of this kind.
    """
    forms = dict(_GUIDANCE[kind])
    if name == "vagueness":
        choice = "One option, several options or no option may be right. Which options answer the question?"
        return f"{choice if kind == 'choice' else 'Is the statement True, False or Unknown?'}\n{_ALONE}"
    if name == "missing-choices":
        missing = left_out or _LEFT_OUT[kind]
        if missing not in forms:
            raise InputError(f"left out form {missing!r}: use one of {', '.join(forms)}")
        del forms[missing]
    question = (
        "Which options answer the question?" if kind == "choice" else "What do the facts show about the statement?"
    )
    lines = [question, *(f"- {text}" for text in forms.values())]
    if name == "mitigation":
        lines.append(_WARNINGS)
    lines.append(_STEPS if name == "reasoning-reflection" else _ALONE)
    return "\n".join(lines)


def present_setting(
    question: AnyForm,
    name: str,
    *,
    examples: Sequence[AnyForm] = (),
    seed: int = SEED,
    alphabet: tuple[str, ...] = ALPHABETS["A"],
    left_out: str = "",
) -> Presentation:
    """One question under one setting; options stay in their order, except in the disturbing miscellany.

    Args:
        examples: questions that the few-shot settings draw their example from.
        seed: of the suggested answer, the example and the kept wrong options; each also depends on the question's id.
        left_out: see :func:`instruction`; forms of the other kind are ignored.

    Raises:
        InputError: if the setting does not exist or does not fit this question.
    """
    way, kind = setting(name), kind_of(question)
    plain = not way.disturbing
    presentation = _plain(question, alphabet) if plain else _disturbing(question, way.disturbing, seed, alphabet)
    base = BASELINE if way.disturbing or way.polish else name
    text = instruction(kind, base, left_out if left_out in FORMS[kind] else "")
    shots = [_example(question, examples, way.example == "dense", seed)] if way.example else []
    shots += _examples(question, examples, way.examples_of(kind), seed)
    shown = tuple(_plain(example, alphabet) for example in shots)
    presentation = replace(presentation, item=name, instruction=text, shots=shown)
    if way.suggests:
        answer = _suggested(question, presentation.labels, way.suggests == "dense", seed)
        contents = frozenset(presentation.content_of(label) for label in answer) or frozenset({NONE})
        presentation = replace(presentation, hint=_suggestion(answer), suggested=contents)
    return presentation


def _plain(question: AnyForm, alphabet: tuple[str, ...]) -> Presentation:
    if isinstance(question, JudgingQuestion):
        options = tuple(ShownOption(verdict, "", i) for i, verdict in enumerate(question.VERDICTS))
        right = frozenset({question.VERDICTS.index(question.verdict)})
        return Presentation(question.id, SETTING, question.statement, options, right, context=question.context)
    presentation = present(question, None, alphabet, SETTING)
    return presentation if question.answers else replace(presentation, answers=frozenset({NONE}))


def _disturbing(question: AnyForm, k: int, seed: int, alphabet: tuple[str, ...]) -> Presentation:
    """The right option among ``k`` wrong ones; the wrong ones of ``k`` are among those of ``k + 1``."""
    if isinstance(question, JudgingQuestion) or len(question.answers) != 1 or len(question.options) <= k:
        raise InputError(
            f"question {question.id!r} cannot be shown with {k} wrong options: it needs one right option and "
            f"{k} wrong ones"
        )
    right = min(question.answers)
    wrong = [i for i in range(len(question.options)) if i != right]
    question_rng(question.id, seed, "disturbing").shuffle(wrong)
    places = [right, *wrong[:k]]
    question_rng(question.id, seed, f"disturbing order {k}").shuffle(places)
    labels = labels_for(alphabet, len(places))
    options = tuple(ShownOption(label, question.options[i], i) for label, i in zip(labels, places, strict=True))
    return Presentation(question.id, SETTING, question.stem, options, question.answers, context=question.context)


def _suggested(question: AnyForm, labels: Sequence[str], dense: bool, seed: int) -> tuple[str, ...]:
    """The answer that the prompt suggests, drawn without regard to the truth; empty for "none"."""
    rng = question_rng(question.id, seed, "suggested")
    if isinstance(question, JudgingQuestion):
        return (rng.choice(("True", "False")) if dense else "Unknown",)
    if dense:
        return (rng.choice(labels),)
    if rng.random() < 0.5 or len(labels) < 3:
        return ()
    pair = rng.sample(list(labels), 2)
    return tuple(label for label in labels if label in pair)


def _suggestion(answer: tuple[str, ...]) -> str:
    if len(answer) > 1:
        return f"I think the answers are {' and '.join(answer)}."
    return f"I think the answer is {answer[0]}." if answer else "I think none of the options is right."


def _examples(
    question: AnyForm, examples: Sequence[AnyForm], counts: Sequence[tuple[str, int]], seed: int
) -> list[AnyForm]:
    """As many examples of each form as ``counts`` says, in an order that depends on the question."""
    shots: list[AnyForm] = []
    for form, n in counts:
        pool = [one for one in _others(question, examples) if form_of(one) == form]
        if len(pool) < n:
            raise InputError(
                f"question {question.id!r} has no {n} examples of form {form}: the question set holds {len(pool)} "
                "other questions of that form"
            )
        shots += question_rng(question.id, seed, f"examples {form}").sample(pool, n)
    question_rng(question.id, seed, "examples order").shuffle(shots)
    return shots


def _others(question: AnyForm, examples: Sequence[AnyForm]) -> Iterator[AnyForm]:
    # Not by id: a set may hold the question again under another one, and the example would give its answer away.
    return (one for one in examples if type(one) is type(question) and not _same(one, question))


def _same(one: AnyForm, other: AnyForm) -> bool:
    if isinstance(one, Question):
        return isinstance(other, Question) and one.stem == other.stem and wording(one) == wording(other)
    return isinstance(other, JudgingQuestion) and (one.statement, one.context) == (other.statement, other.context)


def _example(question: AnyForm, examples: Sequence[AnyForm], dense: bool, seed: int) -> AnyForm:
    pool = [one for one in _others(question, examples) if is_dense(one) == dense]
    if not pool:
        raise InputError(
            f"question {question.id!r} has no {'dense' if dense else 'sparse'} example: the question set holds no "
            "other question of that form"
        )
    return question_rng(question.id, seed, "example").choice(pool)


POLISH_REQUEST = (
    "Rewrite the following instruction for a language model so that it is clearer and reads better. "
    "Keep its meaning. Reply with the rewritten instruction only.\n\n"
)
"""What the polishing model is asked; the vanilla instruction follows."""
SHORTEST = 1 / 4
"""Share of the words of the original that a rewritten instruction has at least."""
_ANSWERS = ("none", "true", "false", "unknown")


def chat(presentation: Presentation) -> tuple[Message, ...]:
    """The instruction as system message, worked examples as turns, then the question."""
    messages = [Message("system", presentation.instruction)] if presentation.instruction else []
    for shot in presentation.shots:
        messages.append(Message("user", body(shot)))
        messages.append(Message("assistant", right_answer(shot)))
    messages.append(Message("user", body(presentation)))
    return tuple(messages)


def body(presentation: Presentation) -> str:
    """Context, question or statement, options and hint; the same layout for every form."""
    lines = [presentation.context, ""] if presentation.context else []
    if presentation.labels == JudgingQuestion.VERDICTS:
        lines.append(f"Statement: {presentation.stem}")
    else:
        lines.append(f"Question: {presentation.stem}")
        lines += [f"{option.label}. {option.text}" for option in presentation.shown]
    if presentation.hint:
        lines.append(presentation.hint)
    return "\n".join(lines)


def right_answer(presentation: Presentation) -> str:
    """The right answer in the requested format: ``A, C``, or ``none``."""
    return ", ".join(presentation.right_labels) or "none"


def is_instruction(text: str, original: str) -> bool:
    """Whether a rewritten instruction can take the place of the original.

    Models reply with an answer ("A", "none"), a refusal or nothing. An instruction has at least :data:`SHORTEST` of the
    words of the original, and names each answer in words that the original asks for (none; True, False, Unknown):
    without it another setting would be measured, that of missing choices.
    """
    words, expected = _words(text), _words(original)
    return len(words) >= SHORTEST * len(expected) and {*_ANSWERS} & {*expected} <= {*words}


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())

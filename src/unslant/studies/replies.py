"""Present, ask, read the answer out of the reply: the counterpart of :mod:`unslant.asking` in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from unslant.asking import Asked, Watch, no_watch
from unslant.models.chat import Reply, Speaker
from unslant.presentations.presentation import Presentation
from unslant.prompts.elicitation import Writer
from unslant.prompts.prompt import Prompt
from unslant.questions.question import Question
from unslant.responses.extraction import chosen_contents, extract
from unslant.responses.table import Response, Responses, text_ranks

Reader = Callable[[str, Question, Presentation], tuple[str, frozenset[int] | None]]
"""From a reply to its status and the content codes it chooses (None where it is no answer)."""
NAME = "generate"


def read_labels(reply: str, question: Question, presentation: Presentation) -> tuple[str, frozenset[int] | None]:
    """The labels that a reply chooses, as contents."""
    extracted = extract(reply, presentation)
    return extracted.status, chosen_contents(extracted, presentation)


def ask_in_words(
    speaker: Speaker,
    asked: Sequence[Asked],
    writer: Writer,
    *,
    read: Reader = read_labels,
    meta: Mapping[str, object] | None = None,
    watch: Watch = no_watch,
) -> Responses:
    """Get a reply to every presentation and read the labels it chooses; equal prompts are asked once.

    Returns:
        One row per presentation, in their order, with the reply in full.
    """
    prompts: dict[Prompt, int] = {}
    indices = []
    for _, presentation in asked:
        prompt = writer.prompt(presentation, writer.template.render("cloze.cue"), ())
        indices.append(prompts.setdefault(prompt, len(prompts)))
    replies = say_all(speaker, list(prompts), watch=watch)
    rows = (
        row_of(question, presentation, replies[index], read)
        for (question, presentation), index in zip(asked, indices, strict=True)
    )
    return Responses.from_rows(rows, meta)


def say_all(
    speaker: Speaker, prompts: Sequence[Prompt], *, watch: Watch = no_watch, phase: str = "asking"
) -> list[Reply]:
    """Replies to all prompts, in their order."""
    replies = [Reply(i, None, "no reply came") for i in range(len(prompts))]
    watch(phase, 0, len(prompts))
    for done, reply in enumerate(speaker.say(prompts), start=1):
        replies[reply.index] = reply
        watch(phase, done, len(prompts))
    return replies


def row_of(question: Question, presentation: Presentation, reply: Reply, read: Reader = read_labels) -> Response:
    """The row of one reply: its status, and what it chooses if it is an answer."""
    status, chosen = read(reply.text, question, presentation) if reply.text is not None else ("error", None)
    return Response(
        question_id=question.id,
        presentation=presentation.name,
        elicitation=NAME,
        labels=presentation.labels,
        contents=presentation.contents,
        answers=presentation.answers,
        n_options=len(question.options),
        chosen=chosen,
        status=status,
        raw=reply.text if reply.text is not None else reply.error,
        pinned=question.pinned,
        subject=question.subject,
        source=question.source,
        interventions=presentation.interventions,
        text_ranks=text_ranks(question.options),
    )

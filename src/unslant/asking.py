"""Ask a model every presentation of every question and collect the responses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from operator import itemgetter, length_hint
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa

from unslant.arrays import Floats, compact_tables, release_memory
from unslant.errors import ModelError, MostlyFailedError
from unslant.models import Scored
from unslant.models.base import checked
from unslant.presentations import Asked as Asked
from unslant.presentations import Presentation
from unslant.prompts import Cloze, Decision, Elicitation, Message, Prompt, Writer
from unslant.questions import JudgingQuestion, Question
from unslant.responses import AGAIN, SCHEMA, Response, Responses
from unslant.responses import GENERATE as GENERATE

if TYPE_CHECKING:
    from unslant.models import ChatModel, Model, Reply, ScoringModel
    from unslant.questions import QuestionSet
    from unslant.responses.run import ShardHeader

Item = TypeVar("Item")
Progress = Callable[[str, int, int], None]
"""Progress callback: name of the phase, prompts done, prompts in all."""
Reader = Callable[[str, Any, Presentation], tuple[str, frozenset[int] | None]]
"""Makes of a reply its status and the content codes that it chooses (None without an answer)."""
FOLLOW_UP = "Which label did you choose? Answer with the label alone, or NONE."
"""The question about a reply without a clear answer."""
AT_ONCE = 1 << 14
"""Number of prompts in a portion: they are written, scored and turned into rows before the next ones."""
_COPIES = 8
"""Cap on how far a portion grows with the number of copies of a model: all wait for the slowest at its end."""
_FIRST_LOOK = 50
"""Give up after this many prompts, and at the end, if most label scores are only upper bounds."""


def no_progress(phase: str, done: int, total: int) -> None:
    """The no-op progress callback."""


class Share:
    """What this machine asks of a run: everything, unless it has a shard (:class:`unslant.scale.plan.ShardShare`).

    Attributes:
        presentations: how many it asks; 0 where they have not been counted.
    """

    presentations: int = 0

    def cut(self, asked: Iterable[Item], question: Callable[[Any], Any] = itemgetter(0)) -> Iterator[Item]:
        """This machine's items; ``question`` returns the question of an item."""
        return iter(asked)

    def own(self, questions: QuestionSet[Any]) -> QuestionSet[Any]:
        """This machine's questions of the set."""
        return questions

    @property
    def header(self) -> ShardHeader | None:
        """The header for the table of a shard; None for a whole run."""
        return None


def elicitation_of(model: ScoringModel, writer: Writer) -> Elicitation:
    """How to score the labels of a model: by cloze, or by option if it words its prompts itself.

    Raises:
        InputError: if the model words its prompts itself, but the writer has another template.
    """
    return Decision.of(writer) if model.info.renders_prompts else Cloze(writer)


def ask(
    model: ScoringModel,
    asked: Iterable[Asked],
    elicitations: Sequence[Elicitation],
    *,
    progress: Progress = no_progress,
    presentations: int = 0,
) -> Responses:
    """Score every presentation under every elicitation.

    Work goes in portions of whole questions, about :func:`at_once` prompts each, so that memory other than the table
    does not grow with the run. Within a portion, equal prompts are scored once.

    Args:
        presentations: approximate number of them, for the progress only, if ``asked`` has no length.

    Returns:
        One row per presentation and elicitation, elicitation by elicitation, in the order of ``asked``.
    """
    expected = presentations or length_hint(asked)
    tables: list[list[pa.Table]] = [[] for _ in elicitations]
    read = done = total = 0

    def report(of_portion: int) -> None:
        if of_portion or not done:
            progress("scoring", done + of_portion, total)

    for portion in _portions(asked, elicitations, at_once(model)):
        distinct = list(dict.fromkeys(prompt for *_, ways in portion for prompts in ways for prompt in prompts))
        read += len(portion)
        ahead = done + len(distinct)
        # How many prompts are distinct is known of the portions so far only: the rest is assumed to repeat as often.
        total = ahead if read >= expected else max(ahead, round(ahead * expected / read))
        scored = try_all(model, distinct, report)
        done = ahead
        by_prompt = dict(zip(distinct, scored, strict=True))
        for k, (elicitation, parts) in enumerate(zip(elicitations, tables, strict=True)):
            rows = (
                _scored_row(question, presentation, elicitation, [by_prompt[prompt] for prompt in ways[k]])
                for question, presentation, ways in portion
            )
            with compact_tables():
                parts.append(Responses.from_rows(rows).table)
        # Two portions at once would be the peak of memory: free this one before the next is written.
        del portion, distinct, scored, by_prompt, rows
        release_memory()
    if done < total:
        progress("scoring", done, done)
    return Responses(pa.concat_tables([SCHEMA.empty_table(), *chain.from_iterable(tables)]))


_Presented = tuple[Question, Presentation, list[list[Prompt]]]
"""A question, a presentation of it, and its prompts under every elicitation."""


def at_once(model: Model) -> int:
    """Prompts of a portion for this model."""
    return AT_ONCE * min(_COPIES, model.info.copies)


def _portions(asked: Iterable[Asked], elicitations: Sequence[Elicitation], size: int) -> Iterator[list[_Presented]]:
    portion: list[_Presented] = []
    prompts = 0
    for question, presentation in asked:
        if prompts >= size and question.id != portion[-1][0].id:
            yield portion
            portion, prompts = [], 0
        ways = [elicitation.prompts(presentation) for elicitation in elicitations]
        portion.append((question, presentation, ways))
        prompts += sum(map(len, ways))
    if portion:
        yield portion


def score_all(
    model: ScoringModel, prompts: Sequence[Prompt], *, progress: Progress = no_progress, phase: str = "scoring"
) -> list[Floats]:
    """Scores of all prompts, in their order.

    Raises:
        ModelError: if a prompt got no scores; :class:`MostlyFailedError` if most got none.
    """
    scored = try_all(model, prompts, lambda done: progress(phase, done, len(prompts)))
    logprobs = [result.logprobs for result in scored if result.logprobs is not None]
    if len(logprobs) < len(scored):
        raise unscored(model, prompts, scored)
    return logprobs


def unscored(model: ScoringModel, prompts: Sequence[Prompt], scored: Sequence[Scored]) -> ModelError:
    """The error for prompts without scores, naming the first."""
    failed = [result for result in scored if result.logprobs is None]
    kind = MostlyFailedError if 2 * len(failed) > len(prompts) else ModelError
    return kind(
        f"{model.name}: {len(failed):,} of {len(prompts):,} prompts got no scores; the first, of question "
        f"{prompts[failed[0].index].group!r}: {failed[0].error}"
    )


def try_all(model: ScoringModel, prompts: Sequence[Prompt], report: Callable[[int], None]) -> list[Scored]:
    """Score every prompt, in order; anything that is not a log-probability is a failure.

    Raises:
        ModelError: if most scores are only upper bounds, or the model gives something other than scores of each prompt.
    """
    scored = [Scored(i, None, "no score came") for i in range(len(prompts))]
    bounded = labels = 0
    report(0)
    for done, result in enumerate(checked(model, prompts), start=1):
        scored[result.index] = result
        report(done)
        bounded, labels = bounded + len(result.bounds), labels + len(prompts[result.index].continuations)
        if done in (_FIRST_LOOK, len(prompts)) and 2 * bounded > labels:
            raise ModelError(
                f"{model.name}: {bounded:,} of the first {labels:,} label scores are only upper bounds: the labels are "
                "not among the tokens that the server returns, so the model would probably say something else (think, "
                "for example); try --chat, another --template or --labels, or a server that returns more tokens"
            )
    return scored


def _scored_row(
    question: Question, presentation: Presentation, elicitation: Elicitation, scored: Sequence[Scored]
) -> Response:
    """The row of one presentation: the log-probability of every label, or the status ``error`` or ``refused``."""
    if failed := next((result for result in scored if result.logprobs is None), None):
        status = "refused" if failed.declined else "error"
        return Response.of(question, presentation, elicitation.name, status=status, raw=failed.error)
    logprobs = [result.logprobs for result in scored if result.logprobs is not None]
    bounds: tuple[int, ...] = ()
    if any(result.bounds for result in scored):
        # Only the elicitation knows which labels the bounds belong to: it reads marks of them in place of scores.
        marks = [
            np.isin(np.arange(len(values)), one.bounds).astype(np.float64)
            for values, one in zip(logprobs, scored, strict=True)
        ]
        bounds = tuple(np.flatnonzero(elicitation.read(presentation, marks)).tolist())
    scores = elicitation.read(presentation, logprobs)
    return Response.of(question, presentation, elicitation.name, logprobs=scores, bounds=bounds)


def ask_for_replies(
    model: ChatModel,
    asked: Sequence[Asked],
    writer: Writer,
    *,
    read: Reader | None = None,
    repeats: Sequence[int] = (),
    progress: Progress = no_progress,
    phase: str = "asking",
) -> Responses:
    """Get a reply to every presentation and read the answer in it; equal prompts are asked once.

    Args:
        read: the reader of replies; by default :func:`read_labels`.
        repeats: number of each sample of a presentation, from 0; samples of equal prompts are asked separately.

    Returns:
        One row per presentation, in their order, with the reply in full.
    """
    cue = writer.template.render("cloze.cue")
    samples = repeats or [0] * len(asked)
    prompts = [
        (writer.prompt(presentation, cue, ()), sample) for (_, presentation), sample in zip(asked, samples, strict=True)
    ]
    distinct = list(dict.fromkeys(prompts))
    generated = generate_all(model, [prompt for prompt, _ in distinct], progress=progress, phase=phase)
    replies = dict(zip(distinct, generated, strict=True))
    return Responses.from_rows(
        replace(reply_row(question, presentation, replies[prompt], read), repeat=prompt[1])
        for (question, presentation), prompt in zip(asked, prompts, strict=True)
    )


def ask_again(
    model: ChatModel, asked: Iterable[Asked], responses: Responses, writer: Writer, progress: Progress = no_progress
) -> Responses:
    """Ask which label a reply meant, in the same conversation, if it is unparsed or in conflict with itself.

    The most probable label is the answer where the model gives log-probabilities; elsewhere it replies freely.

    Args:
        asked: every question and presentation of ``responses``.

    Returns:
        The responses, followed by the second replies as rows of the elicitation ``generate/again``.
    """
    by_place = {(question.id, page.labels, page.contents): (question, page) for question, page in asked}
    unclear = (row for row in responses.each_row() if row.status in ("unparsed", "conflict") and not row.repeat)
    rows = [row for row in unclear if (row.raw or "").strip()]
    if not rows:
        return responses
    pages = [by_place[row.question_id, row.labels, row.contents] for row in rows]
    cue = writer.template.render("cloze.cue")
    prompts = [
        _followed_up(writer.prompt(page, cue, page.labels), row.raw or "", model.info.takes_turns)
        for row, (_, page) in zip(rows, pages, strict=True)
    ]
    replies = generate_all(model.choosing(), prompts, progress=progress, phase="asking again")
    again = [
        replace(reply_row(question, page, reply), elicitation=AGAIN)
        for (question, page), reply in zip(pages, replies, strict=True)
    ]
    return replace(responses, table=pa.concat_tables([responses.table, Responses.from_rows(again).table]))


def _followed_up(prompt: Prompt, reply: str, turns: bool) -> Prompt:
    """The conversation so far with the question about the reply; one text for a model without turns."""
    if not turns:
        spaced = tuple(f" {label}" for label in prompt.continuations)
        return replace(prompt, text=f"{prompt.text}{reply}\n\n{FOLLOW_UP}\nAnswer:", continuations=spaced)
    before = prompt.messages or (Message("user", prompt.text),)
    answer = prompt.text + reply if prompt.messages else reply  # the text is how the reply was made to begin
    return replace(prompt, text="", messages=(*before, Message("assistant", answer), Message("user", FOLLOW_UP)))


def generate_all(
    model: ChatModel, prompts: Sequence[Prompt], *, progress: Progress = no_progress, phase: str = "asking"
) -> list[Reply]:
    """Replies to all prompts, in their order."""
    from unslant.models import Reply

    replies = [Reply(i, None, "no reply came") for i in range(len(prompts))]
    progress(phase, 0, len(prompts))
    for done, reply in enumerate(model.generate(prompts), start=1):
        replies[reply.index] = reply
        progress(phase, done, len(prompts))
    return replies


def read_labels(reply: str, question: Question, presentation: Presentation) -> tuple[str, frozenset[int] | None]:
    """The labels that a reply chooses, as contents."""
    return _extracted(reply, presentation)[:2]


def _extracted(
    reply: str, presentation: Presentation, cut: bool = False
) -> tuple[str, frozenset[int] | None, tuple[int, ...]]:
    """The status of a reply, the contents it chooses, and those between which it is in conflict."""
    from unslant.replies import chosen_contents, conflicting_contents, extract  # not needed where labels are scored

    extracted = extract(reply, presentation, cut=cut)
    return extracted.status, chosen_contents(extracted, presentation), conflicting_contents(extracted, presentation)


def reply_row(
    question: Question | JudgingQuestion, presentation: Presentation, reply: Reply, read: Reader | None = None
) -> Response:
    """The row of one reply: its status, and what it chooses if it is an answer."""
    if reply.text is None:
        return Response.of(question, presentation, GENERATE, status="error", raw=reply.error)
    if reply.declined:
        return Response.of(question, presentation, GENERATE, status="refused", raw=reply.text)
    # No reader may take the beginning of a sentence that was cut for an answer.
    if read is None:
        status, chosen, conflict = _extracted(reply.text, presentation, reply.cut)
    else:
        from unslant.replies.text import without_fragment

        text = without_fragment(reply.text) if reply.cut else reply.text
        (status, chosen), conflict = read(text, question, presentation), ()
    status = "cut" if reply.cut and status == "unparsed" else status
    return Response.of(
        question, presentation, GENERATE, status=status, chosen=chosen, conflict=conflict, raw=reply.text
    )

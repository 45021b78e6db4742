"""Set-based scoring: the options as parallel branches, so that there is no order (McIlroy-Young et al. 2024)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from scipy.special import softmax
from torch import Tensor

from unslant.arrays import Floats
from unslant.debiasing.asker import Asker
from unslant.debiasing.base import Debiaser, Method, Outcome, each_of
from unslant.debiasing.model_pass import loaded_model
from unslant.errors import InputError, ModelError, QuestionError
from unslant.models.base import Ids
from unslant.models.hf.engine import float32_output, inference
from unslant.presentations import labels_for, present, references, texts_under
from unslant.prompts import Cloze, Prompt
from unslant.questions import Question

_MARKS = range(0xE000, 0xF8FF)
"""Characters for private use: one that a question does not hold marks the place of an option."""
_TOLERANCE = 1e-3
_MOST_TOKENS = 16_384
"""In one pass, whose mask is dense: 1 GiB of it in float32."""


@dataclass(frozen=True)
class SetBased(Method):
    """All options at the same positions, blind to each other: one pass per question, PBM 0 by design.

    The question comes first. Every option line is a branch that sees only the question, and all branches begin at the
    same position; the answer cue sees the question and the branches, and comes after the longest. No labels, no fit.
    Options are laid out in canonical order, so even rounding does not depend on the file's. Pinned options are not
    held in place, since there are no places.

    Args:
        answer: ``label``: every option has one branch per label, and n cues each see one assignment of labels (the
            rotations, so that every option carries every label once); an option's probability is its mean over the
            cues. These are n of n! assignments: each label falls on each option once, but which labels the other
            options carry meanwhile is fixed by the canonical order. An option that names others by letter is shown with
            their labels in that assignment. ``text``: branches carry no label, and the option's own text is scored
            after the cue, as in the paper, by its mean log-probability per token; a question whose options name others
            by letter has no answer.
    """

    answer: str = "label"
    needs_model = order_invariant = True

    def __post_init__(self) -> None:
        if self.answer not in ("label", "text"):
            raise InputError(f"unknown answer {self.answer!r}: use label or text")

    @property
    def name(self) -> str:
        return "set-based" if self.answer == "label" else "set-based-text"

    def fit(self, asker: Asker, questions: Sequence[Question] = ()) -> Debiaser:
        """Check that the model accepts such input.

        Raises:
            InputError: on an elicitation other than cloze, or without a loaded model.
            ModelError: if the model does not follow an explicit mask and positions.
        """
        if not isinstance(asker.elicitation, Cloze):
            raise InputError("set-based scoring asks by cloze")
        return _SetScorer(asker, asker.elicitation, by_label=self.answer == "label")


set_based_text = partial(SetBased, answer="text")


@dataclass(eq=False)
class _SetScorer(Debiaser):
    """Remembers answers by the set of options, so that a question listed in another order costs nothing."""

    cloze: Cloze
    by_label: bool

    def __post_init__(self) -> None:
        self.model = loaded_model(self.asker, "set-based scoring")
        self._scores: dict[tuple[object, ...], Floats] = {}
        self._check()

    def outcomes(self, questions: Sequence[Question]) -> list[Outcome]:
        return each_of(questions, self._outcome)

    def _outcome(self, question: Question) -> Outcome:
        # Canonical order: by text, so that rounding is the same for every order of the file.
        order = sorted(range(len(question.options)), key=lambda i: question.options[i])
        key = (question.id, question.stem, question.context, tuple(question.options[i] for i in order))
        if key not in self._scores:
            self._scores[key] = self._score(question, order)
        probs = np.empty(len(order))
        probs[order] = self._scores[key]
        return Outcome.by_text(question, probs, 1)

    def _score(self, question: Question, order: Sequence[int]) -> Floats:
        """(n,) probabilities of the options in ``order``; QuestionError if they cannot be laid out side by side."""
        n = len(order)
        if not self.by_label and references(question):
            raise QuestionError({question.id: "an option names others by letter, and no letters are shown"})
        head, lines, foot, continuations = self._parts(question, order)
        if self.by_label:
            texts, branches = continuations, [line for row in lines for line in row]
            seen = [[1 + i * n + (i + turn) % n for i in range(n)] for turn in range(n)]
        else:
            lead = continuations[0][: continuations[0].index(self.asker.alphabet[0])]
            texts = tuple(lead + question.options[i] for i in order)
            branches = [f"- {question.options[i]}\n" for i in order]
            seen = [[1 + i for i in range(n)]]
        parts = ((head, tuple(branches)), (head + branches[0] + foot, texts), (head + branches[0], (foot,)))
        # Branches and texts may be equal, or prefixes of each other; apart=False allows that.
        first, whole, before = self.model.encode([Prompt(*part, group=question.id) for part in parts], apart=False)
        cue = whole.context[len(before.context) :]
        if not len(cue):
            raise ModelError(f"question {question.id!r}: there is no text between the options and the answer")
        start = len(first.context)
        behind = start + max(map(len, first.candidates))
        longest = behind + len(cue) + max(map(len, whole.candidates))
        cues = len(seen) * (len(cue) + sum(map(len, whole.candidates)))
        if longest > self.model.limit or start + sum(map(len, first.candidates)) + cues > _MOST_TOKENS:
            raise QuestionError({question.id: "its options are too long to be laid out side by side"})
        segments = [Segment(first.context, 0), *(Segment(ids, start, (0,)) for ids in first.candidates)]
        scores = self._read(segments, [Segment(cue, behind, (0, *sees)) for sees in seen], whole.candidates)
        if not self.by_label:
            return np.asarray(softmax(scores[0] / [len(ids) for ids in whole.candidates]))
        probs = [np.roll(softmax(row), -turn) for turn, row in enumerate(scores)]
        return np.asarray(np.mean(probs, axis=0))

    def _read(self, segments: list[Segment], cues: list[Segment], candidates: Sequence[Ids]) -> Floats:
        """(cues, candidates) log-probability of every candidate after every cue; all in one pass."""
        segments = list(segments)
        reads: list[tuple[int, int, int, int]] = []  # segment whose end is read, token, cue, candidate
        for c, cue in enumerate(cues):
            at = len(segments)
            segments.append(cue)
            for k, ids in enumerate(candidates):
                reads.append((at, int(ids[0]), c, k))
                path = (*cue.sees, at)
                for j in range(len(ids) - 1):
                    segments.append(Segment(ids[j : j + 1], cue.position + len(cue.ids) + j, path))
                    path = (*path, len(segments) - 1)
                    reads.append((len(segments) - 1, int(ids[j + 1]), c, k))
        wanted = sorted({at for at, *_ in reads})
        logprobs = torch.log_softmax(last_logits(self.model.model, segments, wanted), dim=-1).double().cpu().numpy()
        scores = np.zeros((len(cues), len(candidates)))
        for at, token, c, k in reads:
            scores[c, k] += logprobs[wanted.index(at), token]
        self.asker.cost.tokens += sum(len(segment.ids) for segment in segments)
        self.asker.cost.prompts += 1
        self.asker.cost.forwards += 1
        return scores

    def _parts(self, question: Question, order: Sequence[int]) -> tuple[str, list[list[str]], str, tuple[str, ...]]:
        """Text before the options, line [option][label] of every option under every label, text after, answers."""
        n = len(order)
        mark = next(chr(code) for code in _MARKS if chr(code) not in question.stem + question.context)
        marks = [f"{mark}{k}{mark}" for k in range(n)]
        marked = Question(question.id, question.stem, tuple(marks), frozenset(), question.context)
        (prompt,) = self.cloze.prompts(present(marked, alphabet=self.asker.alphabet))
        if prompt.messages:
            raise InputError("set-based scoring cuts the prompt, which chat templates do not allow: leave out --chat")
        pieces = prompt.text.splitlines(keepends=True)
        places = [i for i, piece in enumerate(pieces) if mark in piece]
        rows = pieces[places[0] : places[-1] + 1] if places else []
        if len(rows) != len(marks) or any(mark not in row for mark, row in zip(marks, rows, strict=True)):
            raise InputError("set-based scoring needs a template that writes every option on its own line")
        labels = labels_for(self.asker.alphabet, n)
        # An option carries a given label in one assignment only, so it names other options by their labels in that one.
        texts = [texts_under(question, {order[i]: labels[(i + turn) % n] for i in range(n)}) for turn in range(n)]
        lines = [
            [
                row.replace(mark, texts[(k - i) % n][order[i]])
                for k, (mark, row) in enumerate(zip(marks, rows, strict=True))
            ]
            for i in range(n)
        ]
        return "".join(pieces[: places[0]]), lines, "".join(pieces[places[-1] + 1 :]), prompt.continuations

    def _check(self) -> None:
        """Raise ModelError unless a text in segments, one after the other, scores as the same text in one piece."""
        vocabulary = int(self.model.model.get_input_embeddings().weight.shape[0])
        ids = np.random.default_rng(0).integers(0, vocabulary, 24).astype(np.int32)
        refusal = f"{self.model.name}: set-based scoring cannot serve this model"
        try:
            whole = last_logits(self.model.model, [Segment(ids, 0)], [0])
            parts = [Segment(ids[:10], 0), Segment(ids[10:18], 10, (0,)), Segment(ids[18:], 18, (0, 1))]
            blind = [Segment(ids[:10], 0), Segment(ids[3:9], 10, (0,)), *parts[1:2], Segment(ids[18:], 18, (0, 2))]
            cut = torch.cat([last_logits(self.model.model, parts, [2]), last_logits(self.model.model, blind, [3])])
        except Exception as error:  # model classes reject an explicit mask in different ways
            raise ModelError(f"{refusal}: {error}") from error
        scale = max(1.0, float(whole.abs().max()))
        if float((cut - whole).abs().max()) > _TOLERANCE * scale * (1 if self.model.dtype == torch.float32 else 60):
            raise ModelError(f"{refusal} (it does not follow an explicit mask)")


@dataclass(frozen=True)
class Segment:
    """A run of tokens; branches of a text are runs at the same positions.

    It attends to itself (causally) and to all tokens of the segments that it names.

    Attributes:
        ids: token ids, at least one.
        position: position of the first one in the text.
        sees: indices of earlier segments that all its tokens attend to.
    """

    ids: Ids
    position: int
    sees: tuple[int, ...] = ()


def last_logits(model: Any, segments: Sequence[Segment], wanted: Sequence[int]) -> Tensor:
    """Float32 logits after the last token of the ``wanted`` segments, shape ``(len(wanted), vocabulary)``.

    The model sees everything in one forward pass through its ordinary attention with an explicit mask: small inputs
    only, since it is dense. Sliding windows are not applied.

    Raises:
        ValueError: if a segment is empty or names one that does not come before it.
    """
    starts = np.cumsum([0, *(len(segment.ids) for segment in segments)])
    total = int(starts[-1])
    seen = torch.zeros(total, total, dtype=torch.bool)
    for i, segment in enumerate(segments):
        if not len(segment.ids) or any(not 0 <= j < i for j in segment.sees):
            raise ValueError(f"segment {i} is empty, or sees a segment that does not come before it")
        span = slice(int(starts[i]), int(starts[i + 1]))
        seen[span, span] = torch.ones(len(segment.ids), len(segment.ids)).tril().bool()
        for j in segment.sees:
            seen[span, int(starts[j]) : int(starts[j + 1])] = True
    device, dtype = model.get_input_embeddings().weight.device, model.dtype
    mask = torch.zeros(total, total, dtype=dtype).masked_fill(~seen, torch.finfo(dtype).min)
    positions = np.concatenate([np.arange(s.position, s.position + len(s.ids)) for s in segments])
    rows = torch.as_tensor([int(starts[i + 1]) - 1 for i in wanted])
    with inference(model), float32_output(model):
        output = model(
            input_ids=torch.from_numpy(np.concatenate([s.ids for s in segments])).to(device, torch.long)[None],
            attention_mask=mask[None, None].to(device),
            position_ids=torch.from_numpy(positions).to(device, torch.long)[None],
            logits_to_keep=rows.to(device),
            use_cache=False,
        )
    logits: Tensor = output.logits[0].float()
    return logits

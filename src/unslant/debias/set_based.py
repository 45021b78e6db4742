"""Set-based scoring: the options as parallel branches, so that there is no order (McIlroy-Young et al. 2024)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from scipy.special import softmax

from unslant.arrays import Floats
from unslant.asking import Asker
from unslant.debias.base import Debiaser, Method, Outcome, OutcomeList
from unslant.debias.model_pass import loaded_model
from unslant.errors import InputError, ModelError
from unslant.models.base import Cost, Ids
from unslant.models.hf.parallel import Segment, last_logits
from unslant.presentations import present
from unslant.prompts import Cloze, Prompt
from unslant.questions import Question

_MARK = "\ue000{}\ue001"
_TOLERANCE = 1e-3


@dataclass(frozen=True)
class SetBased(Method):
    """All options side by side at the same positions, blind to each other; one pass a question, PBM 0 by construction.

    The question stands first. Every option line is a branch that sees the question only and begins at the same
    position; the answer cue sees the question and the branches, and stands behind the longest. No labels to learn from,
    no fit. Options are laid out in canonical order, so even rounding does not depend on the file's. Nothing is pinned:
    an option that refers to others has no others to refer to.

    Args:
        answer: ``label``: every option has one branch per label, and n cues each see one way to hand out the labels
            (the rotations, so that every option carries every label once); an option's probability is its mean over
            the cues. ``text``: branches carry no label, and the option's own text is scored after the cue, as the paper
            does, by its mean log-probability per token.
    """

    answer: str = "label"
    needs_model = order_invariant = True

    @property
    def name(self) -> str:
        return "set-based" if self.answer == "label" else "set-based-text"

    def fit(self, asker: Asker, questions: Sequence[Question] = ()) -> SetScorer:
        """Check that the model takes such input.

        Raises:
            InputError: on an unknown ``answer``, another elicitation than cloze, or without a loaded model.
            ModelError: if the model does not follow an explicit mask and positions.
        """
        if self.answer not in ("label", "text"):
            raise InputError(f"set-based: unknown answer {self.answer!r}: use label or text")
        if not isinstance(asker.elicitation, Cloze):
            raise InputError("set-based scoring asks by cloze")
        return SetScorer(asker, self)


class SetScorer(Debiaser):
    """Answers; remembers answers by what was shown, so that a question listed in another order costs nothing new."""

    def __init__(self, asker: Asker, method: SetBased) -> None:
        super().__init__(asker)
        self.method = method
        self.model = loaded_model(asker, "set-based scoring")
        self._known: dict[tuple[object, ...], Floats] = {}
        self._check()

    @cached_property
    def _cloze(self) -> Cloze:
        assert isinstance(self.asker.elicitation, Cloze)
        return self.asker.elicitation

    def answer(self, questions: Sequence[Question]) -> OutcomeList:
        outcomes = []
        for question in questions:
            # stable by text; options of one text are interchangeable
            order = sorted(range(len(question.options)), key=lambda i: question.options[i])
            texts = tuple(question.options[i] for i in order)
            key = (question.id, question.stem, question.context, texts)
            if key not in self._known:
                self._known[key] = self._score(question, order)
            probs = np.empty(len(order))
            probs[order] = self._known[key]
            outcomes.append(Outcome.by_text(question, probs, 1))
        return OutcomeList(tuple(outcomes))

    def _score(self, question: Question, order: Sequence[int]) -> Floats:
        """(n,) probabilities of the options in ``order``."""
        by_label = self.method.answer == "label"
        n = len(order)
        head, lines, foot, continuations = self._parts(question, order)
        if by_label:
            texts, branches = continuations, [line for row in lines for line in row]
        else:
            lead = continuations[0][: continuations[0].index(self.asker.alphabet[0])]
            texts = tuple(lead + question.options[i] for i in order)
            branches = [f"- {question.options[i]}\n" for i in order]
        prompts = [Prompt(head, tuple(branches), group=question.id)]
        prompts.append(Prompt(head + branches[0] + foot, texts, group=question.id))
        prompts.append(Prompt(head + branches[0], (foot,), group=question.id))
        first, whole, before = self.model.encode(prompts)
        cue = whole.context[len(before.context) :]
        if not len(cue):
            raise ModelError(f"question {question.id!r}: nothing stands between the options and the answer")
        start = len(first.context)
        behind = start + max(map(len, first.candidates))
        segments = [Segment(first.context, 0), *(Segment(ids, start, (0,)) for ids in first.candidates)]
        seen = [
            [1 + i * n + (i + turn) % n if by_label else 1 + i for i in range(n)]
            for turn in range(n if by_label else 1)
        ]
        scores = self._read(segments, [Segment(cue, behind, (0, *own)) for own in seen], whole.candidates)
        if not by_label:
            lengths = np.asarray([len(ids) for ids in whole.candidates])
            return np.asarray(softmax(scores[0] / lengths))
        probs = [softmax(row)[[(i + turn) % n for i in range(n)]] for turn, row in enumerate(scores)]
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
        row = {at: r for r, at in enumerate(wanted)}
        scores = np.zeros((len(cues), len(candidates)))
        for at, token, c, k in reads:
            scores[c, k] += logprobs[row[at], token]
        self._pay(self.model.cost, segments)
        return scores

    @staticmethod
    def _pay(cost: Cost, segments: Sequence[Segment]) -> None:
        cost.tokens += sum(len(segment.ids) for segment in segments)
        cost.prompts += 1
        cost.forwards += 1

    def _parts(self, question: Question, order: Sequence[int]) -> tuple[str, list[list[str]], str, tuple[str, ...]]:
        """Text before the options, line [option][label] of every option under every label, text after, answers."""
        n = len(order)
        marked = Question(question.id, question.stem, tuple(map(_MARK.format, range(n))), frozenset(), question.context)
        shown = present(marked, alphabet=self.asker.alphabet)
        (prompt,) = self._cloze.prompts(shown)
        if prompt.messages:
            raise InputError(
                "set-based scoring cuts the prompt in pieces, which chat templates do not allow: no --chat"
            )
        pieces = self.model.encoder.text_of(prompt).splitlines(keepends=True)
        places = [i for i, piece in enumerate(pieces) if "\ue000" in piece]
        marks = [_MARK.format(k) for k in range(n)]
        if (
            len(places) != n
            or places != list(range(places[0], places[0] + n))
            or any(mark not in pieces[place] for mark, place in zip(marks, places, strict=True))
        ):
            raise InputError("set-based scoring needs a template that writes every option on a line of its own")
        lines = [
            [pieces[place].replace(mark, question.options[i]) for mark, place in zip(marks, places, strict=True)]
            for i in order
        ]
        return "".join(pieces[: places[0]]), lines, "".join(pieces[places[-1] + 1 :]), prompt.continuations

    def _check(self) -> None:
        """Whether text in segments, one after the other, scores as the same text in one piece."""
        vocabulary = int(self.model.model.get_input_embeddings().weight.shape[0])
        ids = np.random.default_rng(0).integers(0, vocabulary, 24).astype(np.int32)
        try:
            whole = last_logits(self.model.model, [Segment(ids, 0)], [0])
            parts = [Segment(ids[:10], 0), Segment(ids[10:18], 10, (0,)), Segment(ids[18:], 18, (0, 1))]
            blind = [Segment(ids[:10], 0), Segment(ids[3:9], 10, (0,)), *parts[1:2], Segment(ids[18:], 18, (0, 2))]
            found = torch.cat([last_logits(self.model.model, parts, [2]), last_logits(self.model.model, blind, [3])])
        except Exception as error:  # model classes differ in what they make of an explicit mask; any failure means no
            raise ModelError(f"{self.model.name}: set-based scoring cannot serve this model: {error}") from error
        scale = max(1.0, float(whole.abs().max()))
        if float((found - whole).abs().max()) > _TOLERANCE * scale * (1 if self.model.dtype == torch.float32 else 60):
            raise ModelError(
                f"{self.model.name}: set-based scoring cannot serve this model (it does not follow an explicit mask)"
            )

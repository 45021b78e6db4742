"""Two ways to score token sequences with one model: through the prefix tree, and plainly (the reference).

Both run batch by batch and can resume after any batch (:class:`Checkpoint`), with the same numbers bit for bit. What a
batch computes depends in the last bits on the batches before it, through the keys and values of the root path that they
hand on. So a checkpoint holds those, and nothing before it is run again.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from inspect import Parameter, signature
from typing import Any

import numpy as np
import torch
from safetensors.torch import load, save
from torch import Tensor
from torch.nn.functional import linear

from unslant.arrays import Floats, Ints
from unslant.errors import first_line
from unslant.models.base import Cost, Encoded, Ids
from unslant.models.hf import Batch, attention, distinct_sequences, plan
from unslant.store import digest

_LOGIT_ELEMENTS = 1 << 26
"""Logits held at once, 256 MiB in float32: with large vocabularies they outgrow all else that a batch needs."""
_LOGSUMEXP_ROWS = 16
"""Rows reduced at once: what is written in between then stays in fast memory."""

Result = tuple[int, Floats]
"""Index of a prompt and the log-probability of each of its candidates."""


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The result of one batch.

    Attributes:
        number: number of batches run so far.
        results: of the prompts that now have all their scores.
        checkpoint: gives the bytes to resume from after this batch. May be called later, or not at all: the
            store writes now and then, and keys and values need not be copied for every batch.
        skipped: prompts whose results came before the checkpoint that this call resumed from.
    """

    number: int
    results: list[Result]
    checkpoint: Callable[[], bytes]
    skipped: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state after a batch.

    Attributes:
        number: number of batches run so far.
        open: candidates with some tokens read; shape ``(n,)``.
        sums: their log-probabilities so far; shape ``(n,)``.
        spine: keys and values of the root path handed on, per layer.
    """

    number: int
    open: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    sums: Floats = field(default_factory=lambda: np.empty(0))
    spine: list[tuple[Tensor, Tensor]] = field(default_factory=list)

    def to_bytes(self, layout: bytes) -> bytes:
        """Serialize; ``layout``, a digest, says which batches it belongs to."""
        tensors = {
            "layout": torch.frombuffer(bytearray(layout), dtype=torch.uint8),
            "number": torch.tensor([self.number]),
            "open": torch.from_numpy(self.open),
            "sums": torch.from_numpy(self.sums),
        }
        for i, (key, value) in enumerate(self.spine):
            tensors |= {f"key.{i}": key.cpu().contiguous(), f"value.{i}": value.cpu().contiguous()}
        return bytes(save(tensors))

    @classmethod
    def from_bytes(cls, data: bytes, layout: bytes, device: torch.device) -> Checkpoint:
        """Read what :meth:`to_bytes` wrote; the beginning if there is nothing, or it belongs to other batches."""
        tensors = load(data) if data else {}
        if not tensors or bytes(tensors["layout"].tolist()) != layout:
            return cls(0)
        layers = sum(name.startswith("key.") for name in tensors)
        spine = [(tensors[f"key.{i}"].to(device), tensors[f"value.{i}"].to(device)) for i in range(layers)]
        return cls(int(tensors["number"]), tensors["open"].numpy(), tensors["sums"].numpy(), spine)


class Engine(ABC):
    """Scores with one model. Nothing is kept between calls, since the model may have changed."""

    def __init__(self, model: Any, token_budget: int) -> None:
        self.model, self.token_budget = model, token_budget

    def score(self, encoded: Sequence[Encoded], cost: Cost) -> Iterator[Result]:
        """Score every prompt, adding to ``cost`` as batches run.

        Running out of memory raises an error; the results of all batches before it have been yielded.
        """
        for step in self.steps(encoded, cost):
            yield from step.results

    @abstractmethod
    def steps(self, encoded: Sequence[Encoded], cost: Cost, checkpoint: bytes = b"") -> Iterator[BatchResult]:
        """Score batch by batch, as :meth:`score` does.

        Args:
            checkpoint: of an earlier call with the same prompts and budget, to resume from. All results then equal
                those of an uninterrupted call, bit for bit.
        """


class TreeEngine(Engine):
    """Scores through the prefix tree, every distinct node once (see :mod:`unslant.models.hf`).

    Exact: results equal those of :class:`PlainEngine` to float tolerance.
    """

    def steps(self, encoded: Sequence[Encoded], cost: Cost, checkpoint: bytes = b"") -> Iterator[BatchResult]:
        if not encoded:
            return
        # The layout follows from prompts and budgets alone, so that a resumed call is cut into the same batches.
        row_budget = max(1, _LOGIT_ELEMENTS // _vocabulary(self.model))
        batches, first_candidate = plan(encoded, self.token_budget, row_budget)
        key, first = digest(*(batch.ids.tobytes() for batch in batches)), np.asarray(first_candidate)
        start = Checkpoint.from_bytes(checkpoint, key, _device(self.model))
        sums = np.zeros(first[-1])
        sums[start.open] = start.sums
        open_, spine = start.open, start.spine
        if start.number:
            skipped = [prompt for batch in batches[: start.number] for prompt in batch.done]
            yield BatchResult(start.number, [], lambda: checkpoint, skipped)
        for number, batch in enumerate(batches[start.number :], start=start.number + 1):
            scores, spine = self._run(batch, spine)
            # A candidate's tokens may lie in several batches, and several of them in one: += would add only one.
            np.add.at(sums, batch.read_candidate, scores)
            cost.tokens += len(batch)
            cost.forwards += 1
            cost.prompts += len(batch.done)
            results = [(prompt, sums[first[prompt] : first[prompt + 1]].copy()) for prompt in batch.done]
            complete = [np.arange(first[prompt], first[prompt + 1]) for prompt in batch.done]
            open_ = np.setdiff1d(np.union1d(open_, batch.read_candidate), np.concatenate([[], *complete])).astype(int)
            after = Checkpoint(number, open_, sums[open_], spine)
            yield BatchResult(number, results, partial(after.to_bytes, key))

    def _run(self, batch: Batch, spine: list[tuple[Tensor, Tensor]]) -> tuple[Floats, list[Any]]:
        with using(self.model, attention.NAME), inference(self.model):
            logits, rows, context = self.forward(batch, spine)
            device = logits.device  # that of the output layer, where layers are spread over GPUs
            total = torch.cat([torch.logsumexp(part, dim=-1) for part in torch.split(logits, _LOGSUMEXP_ROWS)])
            row = torch.from_numpy(rows).to(device)
            token = torch.tensor(batch.read_token, device=device)
            scores = (logits[row, token] - total[row]).clamp(max=0)  # rounding can put a certain token above 0
            return scores.double().cpu().numpy(), context.keep

    def forward(self, batch: Batch, spine: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Ints, attention.TreeContext]:
        """One pass: float32 logits at the rows that are read, and which of those rows each read uses.

        Differentiable when gradients are enabled. The model must use the tree attention (:func:`using`).

        Raises:
            NotImplementedError: if the model does not call the attention interface.
        """
        device = _device(self.model)
        context = attention.TreeContext(batch, device, spine)
        # Only the rows that are read get logits: all of them would take gigabytes with a large vocabulary.
        needed, rows = np.unique(np.asarray(batch.read_row, dtype=np.int64), return_inverse=True)
        ids = torch.from_numpy(batch.ids).to(device, torch.long)[None]
        # It hides nothing. Without one, transformers takes positions that start again for those of several texts. It is
        # longer than the batch for classes that look positions, here depths, up in a table of as many tokens.
        mask = torch.ones(1, len(batch) + int(batch.depth.max()) + 1, dtype=torch.long, device=device)
        with attention.active(context), float32_output(self.model):
            try:
                logits = _logits(self.model, needed, ids, mask, position_ids=context.depth[None])
            except (TypeError, AttributeError) as error:  # other code than tree_attention takes the rule for a tensor
                raise NotImplementedError(f"its code fails on the tree: {first_line(error)}") from error
        # Some classes accept the implementation and then call their own attention over the packed tokens, as if these
        # were one text. The numbers look plausible and are wrong.
        if context.calls == 0:
            raise NotImplementedError("the model does not use the attention interface")
        return logits[0].float(), rows, context


class PlainEngine(Engine):
    """Scores whole prompts in padded batches, sorted by length: the reference, and the fallback."""

    def steps(self, encoded: Sequence[Encoded], cost: Cost, checkpoint: bytes = b"") -> Iterator[BatchResult]:
        if not encoded:
            return
        batches = list(self._batches(encoded))
        key = digest(*(np.asarray(batch).tobytes() for batch in batches))
        start = Checkpoint.from_bytes(checkpoint, key, _device(self.model)).number
        if start:
            yield BatchResult(start, [], lambda: checkpoint, [i for batch in batches[:start] for i in batch])
        for number, indices in enumerate(batches[start:], start=start + 1):
            results = list(self._run(encoded, indices, cost))
            cost.prompts += len(results)
            yield BatchResult(number, results, partial(Checkpoint(number).to_bytes, key))

    def _batches(self, encoded: Sequence[Encoded]) -> Iterator[list[int]]:
        vocabulary = _vocabulary(self.model)
        batch: list[int] = []
        longest = rows = 0
        for i in sorted(range(len(encoded)), key=lambda i: len(encoded[i].context)):  # little padding
            sequences, _ = distinct_sequences(encoded[i])
            more, length = len(sequences), max(map(len, sequences))
            wide = (rows + more) * max(longest, length) > self.token_budget
            if batch and (wide or (rows + more) * vocabulary > _LOGIT_ELEMENTS):
                yield batch
                batch, longest, rows = [], 0, 0
            batch.append(i)
            longest, rows = max(longest, length), rows + more
        yield batch

    def _run(self, encoded: Sequence[Encoded], indices: Sequence[int], cost: Cost) -> Iterator[Result]:
        sequences: list[Ids] = []
        row_of: list[list[int]] = []  # of each candidate of each prompt
        for i in indices:
            prompt_sequences, which = distinct_sequences(encoded[i])
            row_of.append([len(sequences) + row for row in which])
            sequences += prompt_sequences
        device = _device(self.model)
        ids, mask = padded(sequences, device)
        # Padding goes on the right, so that positions need no shift. Logits are kept where any of the rows is read.
        columns = sorted(
            {len(encoded[i].context) - 1 + j for i in indices for c in encoded[i].candidates for j in range(len(c))}
        )
        with inference(self.model), float32_output(self.model):
            logits = _logits(self.model, np.array(columns), ids, mask).to(device)
        cost.tokens += sum(map(len, sequences))
        cost.forwards += 1
        column_of = {column: c for c, column in enumerate(columns)}
        for i, candidate_rows in zip(indices, row_of, strict=True):
            start = len(encoded[i].context) - 1
            scores = np.empty(len(candidate_rows))
            for c, (row, tokens) in enumerate(zip(candidate_rows, encoded[i].candidates, strict=True)):
                at = [column_of[start + j] for j in range(len(tokens))]
                logprobs = torch.log_softmax(logits[row, at].float(), dim=-1)
                ids = torch.from_numpy(tokens).to(device, torch.long)[:, None]
                # In double: a float32 sum over a long continuation would depend on its order.
                scores[c] = float(logprobs.gather(1, ids).double().sum())
            yield i, scores


def plain_scores(model: Any, encoded: Sequence[Encoded], budget: int = 1024) -> list[Floats]:
    """Log-probabilities of whole prompts, without the tree, in their order; ``budget`` as the engine's."""
    scores = dict(PlainEngine(model, budget).score(encoded, Cost()))
    return [scores[i] for i in range(len(encoded))]


def padded(sequences: Sequence[Ids], device: torch.device) -> tuple[Tensor, Tensor]:
    """Token ids and attention mask of a batch, (rows, longest) each, with zeros after the shorter sequences."""
    ids = torch.zeros(len(sequences), max(map(len, sequences)), dtype=torch.long)
    mask = torch.zeros_like(ids)
    for r, sequence in enumerate(sequences):
        ids[r, : len(sequence)] = torch.from_numpy(sequence)
        mask[r, : len(sequence)] = 1
    return ids.to(device), mask.to(device)


def _logits(model: Any, columns: Ints, ids: Tensor, mask: Tensor, **positions: Tensor) -> Tensor:
    """Logits of one pass at some columns of ``ids``; shape ``(rows, columns, vocabulary)``."""
    wishes = {"logits_to_keep": _kept_rows(model, columns), "use_cache": False}
    taken = signature(_base(model).forward).parameters.values()
    if not any(parameter.kind is Parameter.VAR_KEYWORD for parameter in taken):
        wishes = {parameter.name: wishes[parameter.name] for parameter in taken if parameter.name in wishes}
    logits: Tensor = model(input_ids=ids, attention_mask=mask, **positions, **wishes).logits
    # Classes such as Whisper's take logits_to_keep among other keywords, and return the logits of every column.
    return logits if logits.shape[1] == len(columns) else logits[:, columns.tolist()]


def _kept_rows(model: Any, rows: Ints) -> Any:
    """``logits_to_keep``; as a list for a model on several devices, since its output layer may be on another one."""
    split = len(set((getattr(model, "hf_device_map", None) or {}).values())) > 1
    return rows.tolist() if split else torch.from_numpy(rows).to(_device(model))


def _base(model: Any) -> Any:
    """The model of transformers within a peft model; a plain model may carry adapters (and a peft_config) itself."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def _vocabulary(model: Any) -> int:
    return int(model.get_output_embeddings().weight.shape[0])


def _device(model: Any) -> torch.device:
    return torch.device(model.get_input_embeddings().weight.device)


ALONE = threading.RLock()
"""Held while a model is changed for a pass, and while it is identified: several threads may score, one at a time, since
models share their attention function, and may be the same one."""


def train(modules: Sequence[torch.nn.Module], on: bool = True) -> None:
    """Put modules into training mode, or out of it."""
    for module in modules:
        module.training = on


@contextmanager
def inference(model: torch.nn.Module) -> Iterator[None]:
    """Without gradients, and without dropout even if the model's owner has gone back to training it."""
    with ALONE, torch.inference_mode():
        training = [module for module in model.modules() if module.training]
        train(training, False)
        try:
            yield
        finally:
            train(training)


@contextmanager
def using(model: Any, implementation: str) -> Iterator[None]:
    """Run ``model`` with another attention implementation, then restore its own.

    Raises:
        NotImplementedError: if the model's class does not let its attention be exchanged.
    """
    # Set and restored at every pass: the caller may use the model, and its identity includes the implementation.
    base = _base(model)
    if not base._can_set_attn_implementation():
        raise NotImplementedError(f"{type(base).__name__} does not use the attention interface")
    with ALONE:
        before = base.config._attn_implementation
        base.set_attn_implementation(implementation)
        try:
            yield
        finally:
            base.set_attn_implementation(before)


_ELEMENTS = 1 << 24
"""Weights converted at once: 64 MiB in float32."""
_HALF = (torch.float16, torch.bfloat16)


@contextmanager
def float32_output(model: Any) -> Iterator[None]:
    """While the block runs, the model's output layer takes and gives float32. Does nothing to a wider layer.

    In bfloat16, logits have 8 significant bits, which would give many labels equal scores. Quantised layers multiply as
    they do.
    """
    head = model.get_output_embeddings()
    parameters = [] if head is None else [(m, name, p) for m in head.modules() for name, p in m._parameters.items()]
    halves = [(m, name, p) for m, name, p in parameters if p is not None and p.dtype in _HALF]
    with ALONE if halves else nullcontext():
        if not halves:
            yield
        elif type(head) is torch.nn.Linear and "forward" not in vars(head):
            vars(head)["forward"] = lambda hidden: _product(hidden.float(), head.weight, head.bias)
            try:
                yield
            finally:
                del vars(head)["forward"]
        else:  # an adapter's layer, or a class of the model's own
            hook = head.register_forward_pre_hook(lambda _, inputs: (inputs[0].float(), *inputs[1:]))
            try:
                for module, name, parameter in halves:
                    module._parameters[name] = parameter.float()
                yield
            finally:
                hook.remove()
                for module, name, parameter in halves:
                    module._parameters[name] = parameter


def _product(hidden: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """The linear layer in float32, without a float32 copy of all its weights, often the model's largest tensor."""
    rows = max(1, _ELEMENTS // weight.shape[1])
    parts = [linear(hidden, some.float()) for some in torch.split(weight, rows)]
    logits = torch.cat(parts, dim=-1) if len(parts) > 1 else parts[0]
    return logits if bias is None else logits + bias.float()


def is_cut(model: Any) -> bool:
    """Whether this process holds only a part of the model's weights, so that all must compute in step."""
    return any(is_part(parameter) for parameter in model.parameters())


def is_part(tensor: Tensor) -> bool:
    """Whether this process holds only a part of a tensor (tensor parallelism)."""
    if not torch.distributed.is_available():
        return False
    from torch.distributed.tensor import DTensor

    return isinstance(tensor, DTensor)

"""What unslant adds to lm-eval itself: a model that scores with the prefix tree, and a filter that reads replies.

Both are entry points (groups ``lm_eval.models`` and ``lm_eval.filters``), which lm-eval looks for since its pull
requests 4013 and 4014; with an older one, register them by hand::

    from lm_eval.api.registry import register_filter, register_model
    register_model("unslant")(TreeLM)
    register_filter("unslant")(ReadLabel)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from lm_eval.api.filter import Filter
from lm_eval.models.huggingface import HFLM

from unslant.models.base import Encoded
from unslant.models.hf.model import TransformersModel
from unslant.presentations.labels import ALPHABETS, labels_for
from unslant.prompts import Prompt
from unslant.replies import extract_labels
from unslant.responses.importers.lm_eval import document_options

_MOST_LABELS = 10


class TreeLM(HFLM):  # type: ignore[misc]  # the library is not typed
    """lm-eval's transformers backend (``--model unslant --model_args pretrained=NAME``), scoring with the prefix tree.

    All requests of a call share the beginnings of their prompts: worked examples, a passage, a question in several
    orders. Log-probabilities are those of ``--model hf``. Whether a continuation is what the model would generate
    follows from them where it has more than half of the probability, or another one of its context is more probable;
    the other requests are also run by lm-eval's own code, for that alone.
    """

    def _loglikelihood_tokens(
        self, requests: Sequence[tuple[Any, list[int], list[int]]], disable_tqdm: bool = False, **options: Any
    ) -> list[tuple[float, bool]]:
        model = TransformersModel(self.model, self.tokenizer, self.model.config.name_or_path or "model")
        groups: dict[tuple[int, ...], list[int]] = {}
        for place, (_, context, continuation) in enumerate(requests):
            kept = context[-max(1, self.max_length + 1 - len(continuation)) :]  # cut on the left, as HFLM does
            groups.setdefault(tuple(kept), []).append(place)
        encoded = [
            Encoded(np.array(context, np.int32), tuple(np.array(requests[i][2], np.int32) for i in places))
            for context, places in groups.items()
        ]
        prompts = [Prompt("", (" ",) * len(places), group=str(k)) for k, places in enumerate(groups.values())]
        values, by_group = np.full(len(requests), np.nan), list(groups.values())
        greedy: dict[int, bool] = {}
        for scored in model.score_encoded(prompts, encoded):
            assert scored.logprobs is not None, scored.error
            members, scores = by_group[scored.index], scored.logprobs
            values[members] = scores
            single = [len(requests[place][2]) == 1 for place in members]
            most = max((score for score, one in zip(scores, single, strict=True) if one), default=-np.inf)
            for place, score, one in zip(members, scores, single, strict=True):
                if score > np.log(0.5):
                    greedy[place] = True
                elif one and score < most:
                    greedy[place] = False
        left = [place for place in range(len(requests)) if place not in greedy]
        again = (
            super()._loglikelihood_tokens([requests[place] for place in left], disable_tqdm=True, **options)
            if left
            else []
        )
        greedy |= {place: bool(found[1]) for place, found in zip(left, again, strict=True)}
        results = [(float(value), greedy[place]) for place, value in enumerate(values)]
        for (key, _, _), found in zip(requests, results, strict=True):
            self.cache_hook.add_partial("loglikelihood", key, found)
        return results


class ReadLabel(Filter):  # type: ignore[misc]
    """The label that a reply gives, read by unslant's rules; ``[invalid]`` where it gives none or several.

    In a task: ``filter_list: [{name: read, filter: [{function: unslant}, {function: take_first}]}]``.
    """

    def apply(self, resps: Iterable[Sequence[str]], docs: Sequence[Mapping[str, Any]]) -> list[list[str]]:
        """Labels of the replies of each document, whose options are looked for under the usual names."""
        return [
            [self._label(reply, document_options(doc)) for reply in replies]
            for replies, doc in zip(resps, docs, strict=True)
        ]

    def _label(self, reply: str, options: tuple[str, ...]) -> str:
        labels = labels_for(ALPHABETS["A"], len(options) or _MOST_LABELS)
        read = extract_labels(reply, labels, options)
        return next(iter(read.labels)) if read.status == "ok" and len(read.labels) == 1 else "[invalid]"

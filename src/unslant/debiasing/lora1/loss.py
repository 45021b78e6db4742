"""The loss of LoRA-1 (P1 eq. 8-10)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from unslant.debiasing.model_pass import ModelPass
from unslant.presentations import Presentation


def content_logprobs(found: ModelPass, shown: Sequence[Presentation]) -> Tensor:
    """(K, n) log-probability of each option under each order, over the labels shown only."""
    positions = [np.argsort(presentation.contents).tolist() for presentation in shown]
    rows = [torch.log_softmax(scores, dim=0)[own] for scores, own in zip(found.logprobs, positions, strict=True)]
    return torch.stack(rows)


def log_bias(logprobs: Tensor) -> Tensor:
    """B_log = sum over orders of the mean over options of (log P[k,i] - log mean_k P[k,i])^2 (P1 eq. 9, with eq. 1).

    Args:
        logprobs: (K, n) natural-log probabilities; rows sum to 1 in probability.
    """
    mean = torch.logsumexp(logprobs, dim=0) - math.log(logprobs.shape[0])
    return (logprobs - mean).square().mean(dim=1).sum()


def order_entropy(logprobs: Tensor) -> Tensor:
    """H = - sum over orders and options of P log P (P1 eq. 10), in nats."""
    return -(logprobs.exp() * logprobs).sum()


def loss(logprobs: Tensor, entropy_weight: float) -> Tensor:
    """B_log + lambda H (P1 eq. 8)."""
    return log_bias(logprobs) + entropy_weight * order_entropy(logprobs)

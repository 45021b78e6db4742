"""LoRA-1: a rank-1 adapter trained, without labels, to give the same probabilities in every order (P1 sec. 3.3.2)."""

from unslant.debias.lora1.loss import log_bias, order_entropy
from unslant.debias.lora1.method import Lora1
from unslant.debias.lora1.settings import TrainSettings

__all__ = ["Lora1", "TrainSettings", "log_bias", "order_entropy"]

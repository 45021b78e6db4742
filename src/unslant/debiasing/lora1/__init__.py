"""LoRA-1: a rank-1 adapter trained, without labels, to give the same probabilities in every order (P1 sec. 3.3.2).

Only the settings are imported here: the command line names them, and everything else needs torch.
"""

from unslant.debiasing.lora1.settings import TrainSettings

__all__ = ["TrainSettings"]

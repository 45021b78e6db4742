"""The run store: every score as it comes, in one crash-safe file that several processes may share."""

from unslant.responses.store.database import StoreError, default_path
from unslant.responses.store.runs import Run
from unslant.responses.store.scores import Pass
from unslant.responses.store.store import Store

__all__ = ["Pass", "Run", "Store", "StoreError", "default_path"]

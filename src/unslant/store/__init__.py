"""The run store: every score and reply as it comes, in one crash-safe file that several processes may share."""

from unslant.store.database import StoreError, default_path
from unslant.store.replies import KeptReply
from unslant.store.runs import Run
from unslant.store.scores import Kept, Pass
from unslant.store.store import Store

__all__ = ["Kept", "KeptReply", "Pass", "Run", "Store", "StoreError", "default_path"]

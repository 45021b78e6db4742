"""The run store: every score and reply as it arrives, in one crash-safe file that several processes may share."""

from unslant.store.database import StoreError, default_path
from unslant.store.runs import RecordedRun
from unslant.store.scores import Kept, KeptReply, Pass, digest
from unslant.store.store import Store

__all__ = ["Kept", "KeptReply", "Pass", "RecordedRun", "Store", "StoreError", "default_path", "digest"]

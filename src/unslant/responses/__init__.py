"""What came back."""

from unslant.responses.checks import NO_ANSWER as NO_ANSWER
from unslant.responses.checks import REPLY_STATUSES as REPLY_STATUSES
from unslant.responses.checks import STATUSES as STATUSES
from unslant.responses.run import Run as Run
from unslant.responses.table import SCHEMA as SCHEMA
from unslant.responses.table import Response as Response
from unslant.responses.table import Responses as Responses
from unslant.responses.table import text_ranks as text_ranks

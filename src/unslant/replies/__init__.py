"""Read replies in words: the answer that a reply gives to one presentation of a question.

A reply is cleaned (:mod:`text`), every mention of an option in it becomes one character (:mod:`grammar`,
:mod:`collapse`), mentions that it does not assert are masked (:mod:`reading`), and the first rule that applies reads it
(:mod:`choice`, :mod:`explicit`, :mod:`every_option`, :mod:`verdict`). A second model may read what no rule does
(:mod:`judge`). The words of the rules are data, a file a language (``cues/``).

Examples:
    >>> from unslant.replies import extract_labels
    >>> sorted(extract_labels("The answer is (B), not (A).", "ABCD").labels)
    ['B']
"""

from unslant.replies.choice import extract_labels as extract_labels
from unslant.replies.extraction import RecordedReply as RecordedReply
from unslant.replies.extraction import chosen_contents as chosen_contents
from unslant.replies.extraction import conflicting_contents as conflicting_contents
from unslant.replies.extraction import extract as extract
from unslant.replies.extraction import read_open as read_open
from unslant.replies.extraction import read_replies as read_replies
from unslant.replies.extraction import stated_confidence as stated_confidence
from unslant.replies.preference import extract_preference as extract_preference
from unslant.replies.reading import VERDICTS as VERDICTS
from unslant.replies.reading import Extracted as Extracted
from unslant.replies.verdict import extract_verdict as extract_verdict

"""The plan of a run, which is all that it asks, and one machine's share of it.

Presentations, worked examples and controls are decided on the whole question set and seeded by question id, so machines
need not communicate: a plan consists of digests that every machine computes alike, and equal plans mean that their
shards belong together.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import accumulate
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any, Self

from pydantic import Field

from unslant import __version__
from unslant.asking import Item, Share
from unslant.errors import InputError
from unslant.files import Checked, checked, dump_json, parse_json, read_text
from unslant.presentations import Asked, Presentation, ShownOption
from unslant.questions import QuestionSet
from unslant.responses.run import ShardHeader
from unslant.writing import write_atomically

_WITHOUT_SHOTS = attrgetter(*(f.name for f in fields(Presentation) if f.name != "shots"))
_OPTION = attrgetter(*(f.name for f in fields(ShownOption)))
_BETWEEN_REPORTS = 20_000


class Plan(Checked):
    """What a run asks, on any number of machines.

    Attributes:
        questions, presentations, worked_examples, prompts: SHA-256 (hex) of the questions in order; of every
            presentation in order, without its worked examples; of those; of how prompts are written.
        ways: elicitations of each presentation; the table has ``ways * n_presentations`` rows.
    """

    unslant: str = Field(title="versions of unslant")
    study: str = Field(title="studies")
    questions: str = Field(title="questions")
    n_questions: int = Field(title="numbers of questions", ge=0, description="a whole number")
    settings: dict[str, Any] = Field(title="settings", description="an object")
    prompts: str = Field(title="templates")
    ways: int = Field(title="numbers of elicitations", ge=0, description="a whole number")
    presentations: str = Field(title="presentations")
    n_presentations: int = Field(title="numbers of presentations", ge=0, description="a whole number")
    worked_examples: str = Field(title="worked examples")

    @property
    def rows(self) -> int:
        """Rows of the whole table."""
        return self.ways * self.n_presentations

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) over the whole plan."""
        return _sha(json.dumps(self.model_dump(), sort_keys=True))

    def differs_from(self, other: Plan) -> str:
        """What differs from another plan, in words, with the values of settings; empty if nothing does."""
        names = [name for name in Plan.model_fields if getattr(self, name) != getattr(other, name)]
        if "settings" in names:
            mine, theirs = self.settings, other.settings
            keys = sorted(key for key in {*mine, *theirs} if mine.get(key) != theirs.get(key))
            values = ", ".join(f"{key} {mine.get(key)!r} and {theirs.get(key)!r}" for key in keys)
            return f"settings ({values})"
        # Fields are in the order of causes, each following from those before, so the first that differs is the reason.
        return str(Plan.model_fields[names[0]].title) if names else ""

    @classmethod
    def from_json(cls, path: str | Path) -> Plan:
        """Read what :meth:`agree` wrote; InputError if it is not a plan, or was changed."""
        try:
            data = parse_json(read_text(Path(path)))
        except ValueError as error:
            raise InputError.at(path, f"is not a plan: {error}") from None
        if not isinstance(data, dict):
            raise InputError.at(path, "is not a plan: not a JSON object")
        return cls.read({key: value for key, value in data.items() if key != "digest"}, data.get("digest"), path)

    @classmethod
    def read(cls, data: Mapping[str, Any], digest: object, path: object) -> Plan:
        """The plan that a file holds, with its digest; InputError, naming the file, if it is not one or was changed."""
        plan = checked(cls, data, path)
        if plan.digest != digest:
            raise InputError.at(path, "its plan is damaged: its digest does not match; create it again")
        return plan

    def agree(self, path: Path) -> None:
        """Write the plan to ``path`` if there is no file; otherwise it must be the plan there.

        If several machines start at the same moment, one writes and the others check.

        Raises:
            InputError: naming what differs, if there is another plan.
            OutputError: if the plan cannot be written.
        """
        if not os.path.exists(path):
            scratch = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
            write_atomically(scratch, dump_json(self.model_dump() | {"digest": self.digest}))
            try:
                os.link(scratch, path)  # a rename would replace the plan of a faster machine
            except FileExistsError:
                pass
            except OSError:  # a file system without hard links
                os.replace(scratch, path)
            finally:
                scratch.unlink(missing_ok=True)
        if unlike := Plan.from_json(path).differs_from(self):
            raise InputError.at(path, f"is the plan of another run: its {unlike} differ from what is asked here")


def planned(
    study: str,
    questions: QuestionSet[Any],
    settings: Mapping[str, Any],
    ways: Sequence[object],
    asked: Iterable[Asked],
    progress: Callable[[str, int, int], None] = lambda *_: None,
) -> tuple[Plan, list[int], list[int]]:
    """The plan of a run, from one pass over everything it asks, without holding it in memory.

    Args:
        questions: all questions of the run.
        settings: those that results show, JSON-able.
        ways: the elicitations, or the writer of prompts; their ``repr`` states how prompts are written.

    Returns:
        The plan; the number of presentations of each question, by its place in the set, and last of all others
        (controls); and in the same order the characters of their texts without worked examples.
    """
    n, ids = len(questions), {question.id: place for place, question in enumerate(questions)}
    numbers, characters = [0] * (n + 1), [0] * (n + 1)
    presentations, examples = hashlib.sha256(), hashlib.sha256()
    total, last = 0, tuple[Presentation, ...]()
    for question, presentation in asked:
        line = _line(presentation)
        presentations.update(line)  # one digest over all, in order: a list of them would be as long as the table
        if presentation.shots is not last:  # presentations of one question share theirs
            last = presentation.shots
            for shot in last:
                examples.update(_line(shot))
            examples.update(b"\n")
        place = ids.get(question.id, n)
        numbers[place] += 1
        characters[place] += len(line)
        if total % _BETWEEN_REPORTS == 0:
            progress("planning", min(place, n - 1), n)
        total += 1
    progress("planning", n, n)
    plan = Plan(
        unslant=__version__,
        study=study,
        questions=questions.digest,
        n_questions=n,
        settings=json.loads(json.dumps(dict(settings))),
        prompts=_sha(repr(list(ways))),
        ways=len(ways),
        presentations=presentations.hexdigest(),
        n_presentations=total,
        worked_examples=examples.hexdigest(),
    )
    return plan, numbers, characters


def _line(presentation: Presentation) -> bytes:
    """Everything of a presentation but its worked examples."""
    return json.dumps(_WITHOUT_SHOTS(presentation), default=_plain).encode() + b"\n"


def _plain(value: Any) -> Any:
    return sorted(value) if isinstance(value, frozenset) else _OPTION(value)


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Shard:
    """One of several parts of a run.

    Attributes:
        index: its number, from 1.
        of: number of parts.
    """

    index: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Parse ``3/16``; InputError if it is written otherwise, or there is no such part."""
        numbers = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text.strip())
        if not numbers or not 1 <= int(numbers[1]) <= int(numbers[2]):
            raise InputError(f"--shard {text!r}: give I/N with I from 1 to N, such as 3/16")
        return cls(int(numbers[1]), int(numbers[2]))


def stretch(part: Shard, contexts: Sequence[str], characters: Sequence[int]) -> range:
    """Places of the questions of a shard. A question is in the shard that the middle of its characters falls in.

    Characters approximate work: tokens would need the model's tokenizer on every machine that plans, and equal numbers
    of questions are unequal work wherever some have a passage.
    """
    middles = [2 * end - size for end, size in zip(accumulate(characters), characters, strict=True)][:-1]
    total = 2 * sum(characters[:-1])

    def bound(k: int) -> int:
        return len(middles) if k == part.of else bisect_left(middles, total * k / part.of)

    def whole(k: int) -> int:
        """The bound moved behind the passage that it cuts, unless that is longer than a shard."""
        first = place = bound(k)
        while place < bound(min(k + 1, part.of)) and _shared(contexts, place):
            place += 1
        return first if place == len(middles) or _shared(contexts, place) else place

    return range(whole(part.index - 1), whole(part.index))


def _shared(contexts: Sequence[str], place: int) -> bool:
    """Whether a question has the same passage as the one before."""
    return place > 0 and bool(contexts[place]) and contexts[place] == contexts[place - 1]


@dataclass
class ShardShare(Share):
    """The share of a shard: everything asked about some of the questions.

    Shards are stretches of the question set, so that prompts that share a beginning stay together: dealt out in turn,
    questions on one passage would have it computed once per shard. They are about equally long in characters, and
    questions on one passage stay together. Controls come last in every table, so only the last shard asks them.

    Attributes:
        places: place of each question in the set, by id.
        here: places of the questions asked.
        runs: filled in while asking: first row in the whole run's table, and number, of every stretch of rows.
    """

    shard: Shard
    plan: Plan
    places: Mapping[str, int]
    here: range
    presentations: int
    runs: list[list[int]] = field(default_factory=list)

    @classmethod
    def of(
        cls, shard: Shard, questions: QuestionSet[Any], plan: Plan, numbers: list[int], characters: list[int]
    ) -> Self:
        """A shard of these questions; ``numbers`` and ``characters`` are those of :func:`planned`."""
        places = {question.id: place for place, question in enumerate(questions)}
        here = stretch(shard, [getattr(question, "context", "") for question in questions], characters)
        controls = numbers[-1] if shard.index == shard.of else 0
        return cls(shard, plan, places, here, sum(numbers[place] for place in here) + controls)

    def cut(self, asked: Iterable[Item], question: Callable[[Any], Any] = itemgetter(0)) -> Iterator[Item]:
        """See :meth:`Share.cut`; notes where the rows of these items belong."""
        last, self.runs = self.shard.index == self.shard.of, []
        for row, item in enumerate(asked):
            place = self.places.get(question(item).id)
            if last if place is None else place in self.here:
                if self.runs and sum(self.runs[-1]) == row:
                    self.runs[-1][1] += 1
                else:
                    self.runs.append([row, 1])
                yield item

    def own(self, questions: QuestionSet[Any]) -> QuestionSet[Any]:
        return replace(questions, questions=questions.questions[self.here.start : self.here.stop])

    @property
    def header(self) -> ShardHeader:
        """The header for the table, once everything was asked."""
        n = self.plan.n_presentations
        return ShardHeader(
            index=self.shard.index,
            of=self.shard.of,
            questions=len(self.here),
            runs=tuple((start + way * n, length) for way in range(self.plan.ways) for start, length in self.runs),
            plan=self.plan.model_dump(),
            digest=self.plan.digest,
        )

"""How the pages of one question, from one file or several, become a table of responses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from unslant.arrays import Floats
from unslant.errors import InputError, shown
from unslant.presentations.labels import alphabetical
from unslant.presentations.presentation import NONE
from unslant.questions.question import MAX_OPTIONS, Question
from unslant.responses.importers.logged import FILE, Consistency, Log, Logged, Order
from unslant.responses.run import Hits, LogFacts, LoggedScore, Run
from unslant.responses.table import GENERATE, Response, Responses, is_censored, text_ranks

UNPLACED = "unplaced"
"""Kind of a page whose log does not say which option was shown where."""
OTHER_LABELS = "labels-other"
"""Kind of a page whose labels are in a sequence that no metric looks at."""


def joined(logs: Sequence[Log], name: str = "") -> Responses:
    """One table of the logs of one model.

    A question's options are numbered as in the order given, else as on its first page; the others are known by their
    texts. A page that comes again is a repeat. Labels in reversed or shifted sequence are presentations of their own.
    Replies are read by the scores of their labels where every answer has them, else by their words.

    Raises:
        InputError: if pages of one id show other options, disagree about the right one, or have in one log an order
            that their options contradict.
    """
    for log in logs:
        consistency = Consistency()
        for page in () if log.checked else log.pages:
            consistency.check(page)
    logs = same_questions(logs)
    several = len({log.task for log in logs}) > 1
    by_id: dict[str, list[tuple[Logged, str]]] = {}
    for log in logs:
        for page in log.pages:
            page = replace(page, subject=log.task) if several and not page.subject else page
            by_id.setdefault(page.id, []).append((page, log.task))
    in_words = all(log.scores in ("words", "verdicts") for log in logs)
    answers = [page for own in by_id.values() for page, _ in own if page.named is not None]
    replied = any(page.reply is not None for log in logs for page in log.pages)
    scored = in_words and bool(answers) and all(page.logprobs is not None for page in answers)
    elicitation = GENERATE if in_words and not scored else "cloze"
    questions: list[Question] = []
    sequences: dict[int, tuple[str, ...]] = {}
    orders = Counter[int]()
    again: list[bool] = []
    dropped = sum((log.dropped for log in logs), Counter[str]())

    # A log that has only another label sequence (D, C, B, A on every page) is measured by that one; where any page has
    # the usual sequence, the others are presentations of their own.
    usual = any(page.labels == alphabetical(page.labels) for pages in by_id.values() for page, _ in pages)

    def rows() -> Iterator[Response]:
        for pages in by_id.values():
            pages.sort(key=lambda one: one[0].repeat)
            known = _Question([page for page, _ in pages], elicitation, usual)
            if not usual:
                _check_sequence(known, sequences, pages[0][0].place)
            seen: Counter[tuple[str, tuple[str, ...], Order]] = Counter()
            yield from (known.row(page, seen, task) for page, task in pages)
            again.extend(_again([page for page, _ in pages], known))
            orders[len({order for kind, _, order in seen if kind == "order"})] += 1
            others = sum(n for (kind, *_), n in seen.items() if kind == OTHER_LABELS)
            dropped["pages with labels neither in their usual sequence, reversed, nor shifted by one"] += others
            if known.options and len(known.options) <= MAX_OPTIONS:
                first = pages[0][0]
                of = Question(known.id, first.question, known.options, known.answers, subject=first.subject)
                questions.append(replace(of, pinned=first.pinned, authors=known.authors))

    table = Responses.from_rows(rows()).table
    logged = LogFacts(
        scores="replies" if scored else logs[0].scores if not in_words or replied else "choices",
        files=tuple({key: log.about[key] for key in FILE if key in log.about} for log in logs),
        orders={str(k): n for k, n in sorted(orders.items())},
        dropped={reason: n for reason, n in dropped.items() if n},
        notes=(*dict.fromkeys(note for log in logs for note in log.notes), *_note(again)),
        reported=tuple(_reported(logs, scored or not in_words)),
        **(_read_otherwise([page for own in by_id.values() for page, _ in own]) if in_words else {}),
    )
    run = Run(
        study=logs[0].study,
        model=logs[0].model,
        questions=name or logs[0].task,
        source=logs[0].harness,
        engine=f"logged by {logs[0].harness}",
        settings={key: ", ".join(values) for key, values in _facts(logs).items()},
        logged=logged,
    )
    return Responses(table, run, tuple(questions) if len(questions) == len(by_id) else ())


def _reported(logs: Sequence[Log], scored: bool) -> Iterator[LoggedScore]:
    """The logs' own scores against the answers read here, metric by metric.

    A row's score is the harness's verdict on the same answer, so where both say right or wrong and disagree, one of
    the two has another right option, another rule, or another reading of the reply. ``scored``: answers are the options
    with the highest scores, not those named in words.
    """
    by_metric: dict[str, list[Logged]] = {}
    for log in logs:
        by_metric.setdefault(log.metric, []).extend(page for page in log.pages if page.score is not None)
    for metric, pages in by_metric.items():
        if not metric or not pages:
            continue
        scores = np.array([page.score for page in pages])
        right = np.array([page.is_right(scored) for page in pages])
        binary = bool(np.isin(scores, (0.0, 1.0)).all())
        parted = np.flatnonzero(scores != right) if binary else np.empty(0, np.intp)
        yield LoggedScore(
            metric=metric,
            value=float(scores.mean()),
            n=len(pages),
            ours=int(right.sum()),
            parted=len(parted) if binary else None,
            first=_short(pages[int(parted[0])].place) if len(parted) else "",
        )


def _short(place: str) -> str:
    """A place without the folders of its file."""
    path, comma, rest = shown(place).partition(", ")
    return Path(path).name + comma + rest


def _facts(logs: Sequence[Log]) -> dict[str, list[str]]:
    """What all logs state of their runs, each value once."""
    found: dict[str, dict[str, None]] = {}
    for log in logs:
        for key, value in log.about.items():
            if key not in FILE:
                found.setdefault(key, {})[value] = None
    return {key: list(values) for key, values in found.items()}


def _read_otherwise(pages: Sequence[Logged]) -> dict[str, Hits]:
    """How many replies are right by their words, by the scores of their labels, and by those of their first tokens.

    Empty where a log has no scores of tokens.
    """
    once = [page for page in pages if page.answers]
    by_label = [page for page in once if page.named is not None and page.logprobs is not None]
    first = [(page, page.first) for page in once if page.first is not None]

    def best(scores: Floats | None) -> int:
        return int(np.argmax(scores)) if scores is not None else -1

    counts = {
        "replies": (sum(page.named in page.answers for page in once), len(once)),
        "labels": (sum(best(page.logprobs) in page.answers for page in by_label), len(by_label)),
        "first_tokens": (sum(best(scores) in page.answers for page, scores in first), len(first)),
    }
    return {f"right_by_{name}": found for name, found in counts.items() if counts["first_tokens"][1] and found[1]}


def _again(pages: Sequence[Logged], known: _Question) -> Iterator[bool]:
    """Pages that came before, with no sample number to distinguish them: whether each was answered otherwise."""
    first: dict[tuple[int, tuple[str, ...], Order], Logged] = {}
    for page in pages:
        before = first.setdefault((page.repeat, page.labels, known.order(page)), page)
        if before is not page:
            scored = before.logprobs is not None and page.logprobs is not None
            same = np.array_equal(before.logprobs, page.logprobs) if scored else before.chosen == page.chosen  # type: ignore[arg-type]
            yield not (same and (before.logprobs is None) == (page.logprobs is None))


def _note(again: Sequence[bool]) -> list[str]:
    what = "Pages with the question, order, labels and sample number of an earlier one"
    counts = f"{len(again):,}, {sum(again):,} of them answered otherwise"
    return [f"{what}: {counts}. They count as repeats; are rows there twice?"] if again else []


_Said = tuple[str, tuple[str, ...]]
"""The text of a question and of its options, these sorted."""


def same_questions(logs: Sequence[Log]) -> list[Log]:
    """The logs under ids that are the same for the same question, and for no other.

    The ids of a log are kept where most that an earlier log has too name the same question there. Others (row
    numbers of another task, shard or shuffled file) say nothing: questions are then known by their texts, and a new one
    whose id is taken gets the task before it.
    """
    known: dict[str, _Said] = {}
    result = []
    for log in logs:
        said: dict[str, _Said] = {}
        for page in log.pages:
            said.setdefault(page.id, (page.question.strip(), tuple(sorted(text.strip() for text in page.options))))
        both = [name for name in said if name in known]
        others = sum(not _alike(name, known[name], said[name]) for name in both)
        if known and 2 * others >= len(both):
            names = dict(_renamed(said, known, log.task))
            said = {names[name]: own for name, own in said.items()}
            log = replace(log, pages=tuple(replace(page, id=names[page.id]) for page in log.pages))
        known = said | known
        result.append(log)
    return result


def _alike(name: str, one: _Said, other: _Said) -> bool:
    """Whether two pages may be of one question; where the id is only a number, their questions must be the same too."""
    same_options = one[1] == other[1] or not (one[1] and other[1])
    return same_options and (one[0] == other[0] or not (one[0] and other[0]) or not name.isdigit())


def _renamed(said: Mapping[str, _Said], known: Mapping[str, _Said], task: str) -> Iterator[tuple[str, str]]:
    """(id, the id of the same text, or one that is free)."""
    by_text: dict[_Said, list[str]] = {}
    for name, own in known.items():
        if all(own):
            by_text.setdefault(own, []).append(name)
    taken = set(known)
    for name, own in said.items():
        if same := by_text.get(own):
            yield name, same.pop(0)
            continue
        free, n = name, 1
        while free in taken:
            free, n = f"{task}{f' {n}' if n > 1 else ''}/{name}", n + 1
        taken.add(free)
        yield name, free


def _check_sequence(question: _Question, sequences: dict[int, tuple[str, ...]], place: str) -> None:
    """Raises InputError where labels are in a sequence that is not the beginning of that of more options."""
    sequences.setdefault(len(question.labels), question.labels)
    for other in sequences.values():
        shorter, longer = sorted((question.labels, other), key=len)
        if longer[: len(shorter)] != shorter:
            raise InputError.at(
                place,
                f"has the labels {', '.join(question.labels)} from the top, where other questions have "
                f"{', '.join(other)}: a label then has different places, depending on how many options there are, and "
                "neither can be measured; give a file for each label sequence",
            )


class _Question:
    """What is known of a question from its pages."""

    def __init__(self, pages: Sequence[Logged], elicitation: str, usual: bool) -> None:
        self.elicitation = elicitation
        first = next((page for page in pages if page.order is not None and _is_given(page.order)), pages[0])
        self.id = first.id
        self.n = len(first.labels)
        numbered = first.order or tuple(range(self.n))
        place = {content: k for k, content in enumerate(numbered)}
        self.options, self.authors = (
            tuple(texts[place[i]] for i in range(self.n)) if texts else () for texts in (first.options, first.authors)
        )
        self.labels = alphabetical(first.labels) if usual else first.labels
        self.ranks = text_ranks(self.options) if self.options else ()
        self.answers = frozenset(self.order(first)[k] for k in first.answers)

    def order(self, page: Logged) -> Order:
        """The option at each place."""
        if len(page.labels) != self.n:
            raise InputError.at(
                page.place, f"question {self.id!r} has {len(page.labels)} options here, {self.n} elsewhere"
            )
        if page.order is not None and not self._numbered_otherwise(page):
            return page.order
        if not (page.options and self.options):
            return tuple(range(self.n))
        left = list(range(self.n))
        found = []
        for text in page.options:
            same = next((i for i in left if self.options[i].strip() == text.strip()), None)
            if same is None:
                raise InputError.at(
                    page.place, f"question {self.id!r} shows {text!r} here, which it does not elsewhere"
                )
            left.remove(same)
            found.append(same)
        return tuple(found)

    def _numbered_otherwise(self, page: Logged) -> bool:
        """Whether a page has the same options, but its log numbers them otherwise: their file was shuffled again."""
        own, shown = [text.strip() for text in self.options], [text.strip() for text in page.options]
        return bool(own) and sorted(own) == sorted(shown) and shown != [own[i] for i in page.order or ()]

    def row(self, page: Logged, seen: Counter[tuple[str, tuple[str, ...], Order]], source: str) -> Response:
        order = self.order(page)
        answers = frozenset(order[k] for k in page.answers)
        if answers != self.answers:
            right = [", ".join(str(i) for i in sorted(found)) or "none" for found in (answers, self.answers)]
            raise InputError.at(
                page.place,
                f"question {self.id!r} has another right option than elsewhere: by order or texts it is option "
                f"{right[0]} of the question here, {right[1]} elsewhere; an answer is the label or place as shown",
            )
        kind = self.kind(page, order)
        same = kind, page.labels, order
        repeat = seen[same]
        seen[same] += 1
        scored = page.logprobs is not None and self.elicitation != GENERATE
        logprobs, bounds = (page.logprobs, page.bounds) if scored else (None, ())
        chosen = None if page.chosen is None else frozenset(order[k] for k in page.chosen) or frozenset({NONE})
        return Response(
            question_id=self.id,
            kind=kind,
            elicitation=self.elicitation,
            labels=page.labels,
            contents=order,
            answers=answers,
            n_options=self.n,
            logprobs=logprobs,
            chosen=None if scored else chosen,
            status="censored" if logprobs is not None and is_censored(logprobs, bounds) else page.status,
            raw=page.reply,
            pinned=page.pinned,
            subject=page.subject,
            source=source,
            repeat=repeat,
            text_ranks=self.ranks,
            bounds=bounds,
            conflict=() if scored else tuple(order[k] for k in page.conflict),
        )

    def kind(self, page: Logged, order: Order) -> str:
        """What the sequence of its labels makes of a page."""
        if not page.placed:
            return UNPLACED
        standard, given, turned = self.labels, tuple(range(self.n)), tuple(range(self.n))[::-1]
        kinds = {
            (standard[::-1], given): "labels-reversed",
            (standard[::-1], turned): "both-reversed",
            ((*standard[1:], standard[0]), given): "labels-shifted",
        }
        if page.labels == standard:
            return "given" if page.besides else "order"
        if set(page.labels) != set(standard):
            other = f"labels {', '.join(page.labels)} here, {', '.join(standard)} elsewhere"
            raise InputError.at(page.place, f"question {self.id!r} has {other}; give a file for each label set")
        return kinds.get((page.labels, order), OTHER_LABELS)


def _is_given(order: Order) -> bool:
    return order == tuple(range(len(order)))

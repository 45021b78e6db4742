"""Join the pages of each question, from one file or several, into a table of responses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from unslant.arrays import Floats, grouped
from unslant.errors import InputError, shown
from unslant.presentations import NONE, alphabetical
from unslant.questions.question import MAX_OPTIONS, Question
from unslant.responses import GENERATE, Response, Responses, text_ranks
from unslant.responses.importers.logged import FILE, Consistency, Log, Logged, Order
from unslant.responses.provenance import LoggedScore
from unslant.responses.run import Hits, LogFacts, Run

UNPLACED = "unplaced"
"""Kind of a page whose log does not say which option was shown where."""
_MOST_REPEATS = 32_767  # of the column, which has 16 bits
OTHER_LABELS = "labels-other"
"""Kind of a page whose labels are in a sequence that no metric uses."""


def joined(logs: Sequence[Log], name: str = "") -> Responses:
    """One table of the logs of one model.

    A question's options are numbered as in its published order, else as on its first page; other pages are matched by
    their texts. A page that occurs again is a repeat. Labels in reversed or shifted sequence are presentations of their
    own. Replies are read by the scores of their labels where every answer has them, else by their words.

    Raises:
        InputError: if pages of one id show different options, disagree about the right one, or have in one log an order
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
    all_pages = [page for group in by_id.values() for page, _ in group]
    answers = [page for page in all_pages if page.named is not None]
    replied = any(page.reply is not None for page in all_pages)
    by_scores = in_words and bool(answers) and all(page.logprobs is not None for page in answers)
    elicitation = GENERATE if in_words and not by_scores else "cloze"
    questions: list[Question] = []
    sequences: dict[int, tuple[str, ...]] = {}
    orders = Counter[int]()
    again: list[bool] = []
    hits: dict[bool, list[bool]] = {False: [], True: []}  # of pages, and of those that repeat one
    dropped = sum((log.dropped for log in logs), Counter[str]())

    # A log that has only another label sequence (D, C, B, A on every page) is measured by that one; where any page has
    # the usual sequence, the others are presentations of their own.
    usual = any(page.labels == alphabetical(page.labels) for page in all_pages)

    def rows() -> Iterator[Response]:
        for pages in by_id.values():
            # An answer goes before a failed request for the same page, which a resumed run or another epoch repeated.
            pages.sort(key=lambda one: (one[0].status == "error", one[0].repeat))
            question = _Question([page for page, _ in pages], elicitation, usual)
            if not usual:
                _check_sequence(question, sequences, pages[0][0].place)
            counts: Counter[tuple[str, tuple[str, ...], Order]] = Counter()
            contents: list[Order] = []
            for page, task in pages:
                row = question.row(page, counts, task)
                contents.append(row.contents)
                if page.status != "error":
                    hits[row.repeat > 0].append(page.is_right(by_scores or not in_words))
                yield row
            again.extend(_again([page for page, _ in pages], contents))
            orders[len({order for kind, _, order in counts if kind == "order"})] += 1
            others = sum(n for (kind, *_), n in counts.items() if kind == OTHER_LABELS)
            dropped["pages with labels neither in their usual sequence, reversed, nor shifted by one"] += others
            if question.options and len(question.options) <= MAX_OPTIONS:
                page = pages[0][0]
                asked = question.id, page.question, question.options, question.answers, page.context, page.subject
                questions.append(Question(*asked, pinned=page.pinned, authors=question.authors))

    table = Responses.from_rows(rows()).table
    facts = LogFacts(
        scores="replies" if by_scores else logs[0].scores if not in_words or replied else "choices",
        files=tuple({key: log.about[key] for key in FILE if key in log.about} for log in logs),
        orders={str(k): n for k, n in sorted(orders.items())},
        dropped={reason: n for reason, n in dropped.items() if n},
        notes=(*dict.fromkeys(note for log in logs for note in log.notes), *_unscored(logs), *_note(again)),
        reported=tuple(_reported(logs, by_scores or not in_words)),
        caveats=(
            *dict.fromkeys(caveat for log in logs for caveat in log.caveats),
            *(_of_repeats(hits[False], hits[True]) if logs[0].study == "audit" else ()),
        ),
        **(_other_readings(all_pages) if in_words else {}),
    )
    stated = [(key, value) for log in logs for key, value in log.about.items() if key not in FILE]
    run = Run(
        study=logs[0].study,
        model=logs[0].model,
        questions=name or logs[0].task,
        source=logs[0].harness,
        engine=f"logged by {logs[0].harness}",
        settings={key: ", ".join(dict.fromkeys(v for k, v in stated if k == key)) for key, _ in stated},
        logged=facts,
    )
    return Responses(table, run, tuple(questions) if len(questions) == len(by_id) else ())


def _reported(logs: Sequence[Log], by_scores: bool) -> Iterator[LoggedScore]:
    """The logs' own scores compared with the answers read here, metric by metric.

    Args:
        by_scores: answers are the options with the highest scores, not those named in words.
    """
    # A row's score is the harness's verdict on the same answer: where the two disagree, one of them has another right
    # option, another rule, or another reading of the reply, and the reader must know before the first number.
    for metric, all_pages in _by_metric(logs):
        if not (pages := [page for page in all_pages if page.score is not None]):
            continue
        scores = np.array([page.score for page in pages])
        right = np.array([page.is_right(by_scores) for page in pages])
        binary = bool(np.isin(scores, (0.0, 1.0)).all())
        differences = np.flatnonzero(scores != right) if binary else np.empty(0, np.intp)
        yield LoggedScore(
            metric=metric,
            value=float(scores.mean()),
            n=len(pages),
            ours=int(right.sum()),
            parted=len(differences) if binary else None,
            first=_short(pages[int(differences[0])].place) if len(differences) else "",
            failed=_failed(pages),
        )
    by_mean: dict[tuple[str, float, int, object], list[Logged]] = {}
    for k, log in enumerate(logs):
        for metric, mean in log.means.items():
            by_mean.setdefault((metric, mean, log.of, log.task if log.of else k), []).extend(log.pages)
    for (metric, mean, of, _), pages in by_mean.items():
        if of in (0, len(pages)):  # a part of the pages says nothing of the mean of all
            hits = sum(page.is_right(by_scores) for page in pages)
            yield LoggedScore(metric=metric, value=mean, n=len(pages), ours=hits, failed=_failed(pages))


def _by_metric(logs: Sequence[Log]) -> Iterable[tuple[str, list[Logged]]]:
    return grouped((log.metric, page) for log in logs for page in log.pages if log.metric).items()


def _unscored(logs: Sequence[Log]) -> Iterator[str]:
    """A note for each metric that answers of its log do not have, or not as a number from 0 to 1."""
    for metric, pages in _by_metric(logs):
        if missing := [page for page in pages if page.score is None and page.status != "error"]:
            yield (
                f"{metric} is missing, or not a number from 0 to 1, in {len(missing):,} of {len(pages):,} rows, the "
                f"first at {_short(missing[0].place)}: these are not compared with the answers that are read."
            )


def _failed(pages: Sequence[Logged]) -> int:
    """The pages without an answer to read. Harnesses score them as wrong, so that their accuracy is below ours."""
    return sum(page.status == "error" for page in pages)


def _short(place: str) -> str:
    """A place without the folders of its file."""
    path, comma, rest = shown(place).partition(", ")
    return Path(path).name + comma + rest


def _other_readings(pages: Sequence[Logged]) -> dict[str, Hits]:
    """How many replies are right by their words, by the scores of their labels, and by those of their first tokens;
    empty where a log has no scores of tokens."""
    # The three can differ widely: a model may begin a correct reply with a word, or a parser may read no reply at all.
    pages = [page for page in pages if page.answers]
    by_label = [(page, page.logprobs) for page in pages if page.named is not None]

    def hits(scored: Iterable[tuple[Logged, Floats | None]]) -> Hits:
        right = [int(np.argmax(scores)) in page.answers for page, scores in scored if scores is not None]
        return sum(right), len(right)

    counts = {
        "replies": (sum(page.named in page.answers for page in pages), len(pages)),
        "labels": hits(by_label),
        "first_tokens": hits((page, page.first) for page in pages),
    }
    return {f"right_by_{name}": count for name, count in counts.items() if counts["first_tokens"][1] and count[1]}


def _again(pages: Sequence[Logged], orders: Sequence[Order]) -> Iterator[bool]:
    """For each page that repeats an earlier one, with the same sample number: whether its answer differs."""
    first: dict[tuple[int, tuple[str, ...], Order], Logged] = {}
    for page, order in zip(pages, orders, strict=True):
        before = first.setdefault((page.repeat, page.labels, order), page)
        if before is not page:
            both = before.logprobs is not None and page.logprobs is not None
            same = np.array_equal(before.logprobs, page.logprobs) if both else before.chosen == page.chosen  # type: ignore[arg-type]
            yield not (same and (before.logprobs is None) == (page.logprobs is None))


def _of_repeats(hits: Sequence[bool], again: Sequence[bool]) -> Iterator[str]:
    """The accuracy over all answers, where that over the first to each page, which the report is of, is another."""
    first, every = (f"{sum(of) / max(1, len(of)):.3f}" for of in (hits, [*hits, *again]))
    if first != every:
        yield (
            f"{len(again):,} of the {len(hits) + len(again):,} answers repeat a page (epochs, samples or a row twice): "
            f"only the first answer to each counts below. These are right in {first}, all in {every}."
        )


def _note(again: Sequence[bool]) -> list[str]:
    what = "Pages with the question, order, labels and sample number of an earlier one"
    counts = f"{len(again):,}, {sum(again):,} of them answered otherwise"
    return [f"{what}: {counts}. They count as repeats; are rows there twice?"] if again else []


_Text = tuple[str, tuple[str, ...]]
"""The text of a question and, sorted, of its options."""


def same_questions(logs: Sequence[Log]) -> list[Log]:
    """The logs under ids that are the same for the same question, and for no other.

    A log's ids stay if most of those that earlier logs have too name the same question there. Other ids (row numbers of
    another task, shard or shuffled file) are meaningless: questions are then matched by their texts, and a new one
    whose id is taken gets the task before it.
    """
    texts_before: dict[str, _Text] = {}
    result = []
    for log in logs:
        texts: dict[str, _Text] = {}
        for page in log.pages:
            texts.setdefault(page.id, (page.question.strip(), tuple(sorted(text.strip() for text in page.options))))
        both = [name for name in texts if name in texts_before]
        others = sum(not _alike(name, texts_before[name], texts[name]) for name in both)
        if texts_before and 2 * others >= len(both):
            names = dict(_renamed(texts, texts_before, log.task))
            texts = {names[name]: text for name, text in texts.items()}
            log = replace(log, pages=tuple(replace(page, id=names[page.id]) for page in log.pages))
        texts_before = texts | texts_before
        result.append(log)
    return result


def _alike(name: str, one: _Text, other: _Text) -> bool:
    """Whether two texts may be of one question; where the id is only a number, their stems must be the same too."""
    same_options = one[1] == other[1] or not (one[1] and other[1])
    return same_options and (one[0] == other[0] or not (one[0] and other[0]) or not name.isdigit())


def _renamed(texts: Mapping[str, _Text], earlier: Mapping[str, _Text], task: str) -> Iterator[tuple[str, str]]:
    """For each id, the earlier id of the same text, or one that is free."""
    by_text = grouped((text, name) for name, text in earlier.items() if all(text))
    taken = set(earlier)
    for name, text in texts.items():
        if same := by_text.get(text):
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
    """A question as its pages show it."""

    def __init__(self, pages: Sequence[Logged], elicitation: str, usual: bool) -> None:
        self.elicitation = elicitation
        first = next((page for page in pages if page.order == tuple(range(len(page.order or ())))), pages[0])
        self.id = first.id
        self.n = len(first.labels)
        numbered = first.order or tuple(range(self.n))
        place = {content: k for k, content in enumerate(numbered)}
        self.options, self.authors = (
            tuple(texts[place[i]] for i in range(self.n)) if texts else () for texts in (first.options, first.authors)
        )
        self.labels = alphabetical(first.labels) if usual else first.labels
        self.texts = [text.strip() for text in self.options]
        self.ranks = text_ranks(self.options) if self.options else ()
        self.answers = frozenset(numbered[k] for k in first.answers)

    def order(self, page: Logged) -> Order:
        """The option at each place."""
        if len(page.labels) != self.n:
            counts = f"{len(page.labels)} options here, {self.n} elsewhere"
            raise InputError.at(page.place, f"question {self.id!r} has {counts}")
        texts, on_page = self.texts, [text.strip() for text in page.options]
        # The log may number the same options otherwise, if their file was shuffled again.
        again = bool(texts) and sorted(texts) == sorted(on_page) and on_page != [texts[i] for i in page.order or ()]
        if page.order is not None and not again:
            return page.order
        if not (page.options and self.options):
            return tuple(range(self.n))
        left, order = list(range(self.n)), []
        for k, text in enumerate(page.options):
            same = [i for i in left if texts[i] == text.strip()]
            if not same:
                shows = f"question {self.id!r} shows {text!r} here, which it does not elsewhere"
                raise InputError.at(page.place, shows)
            # Two options may have the same text: each is used once, the right one where the page has it.
            order.append(next((i for i in same if (i in self.answers) == (k in page.answers)), same[0]))
            left.remove(order[-1])
        return tuple(order)

    def row(self, page: Logged, counts: Counter[tuple[str, tuple[str, ...], Order]], source: str) -> Response:
        order = self.order(page)
        answers = frozenset(order[k] for k in page.answers)
        if answers != self.answers:
            right = [", ".join(str(i) for i in sorted(options)) or "none" for options in (answers, self.answers)]
            raise InputError.at(
                page.place,
                f"question {self.id!r} has another right option than elsewhere: by order or texts it is option "
                f"{right[0]} of the question here, {right[1]} elsewhere; an answer is the label or place as shown",
            )
        kind = self.kind(page, order)
        same = kind, page.labels, order
        repeat = counts[same]
        counts[same] += 1
        if repeat > _MOST_REPEATS:
            again = f"question {self.id!r} is on more than {_MOST_REPEATS:,} equal pages; give each question its own id"
            raise InputError.at(page.place, again)
        has_scores = page.logprobs is not None and self.elicitation != GENERATE
        logprobs, bounds = (page.logprobs, page.bounds) if has_scores else (None, ())
        answered = None if page.chosen is None else frozenset(order[k] for k in page.chosen) or frozenset({NONE})
        return Response(
            question_id=self.id,
            kind=kind,
            elicitation=self.elicitation,
            labels=page.labels,
            contents=order,
            answers=answers,
            n_options=self.n,
            logprobs=logprobs,
            chosen=None if has_scores else answered,
            status=page.status,
            raw=page.reply,
            pinned=page.pinned,
            subject=page.subject,
            source=source,
            repeat=repeat,
            text_ranks=self.ranks,
            bounds=bounds,
            conflict=() if has_scores else tuple(order[k] for k in page.conflict),
        )

    def kind(self, page: Logged, order: Order) -> str:
        """Kind of the presentation, by the sequence of its labels."""
        if not page.placed:
            return UNPLACED
        standard, published = self.labels, tuple(range(self.n))
        kinds = {
            (standard[::-1], published): "labels-reversed",
            (standard[::-1], published[::-1]): "both-reversed",
            ((*standard[1:], standard[0]), published): "labels-shifted",
        }
        if page.labels == standard:
            return "given" if page.besides else "order"
        if set(page.labels) != set(standard):
            other = f"labels {', '.join(page.labels)} here, {', '.join(standard)} elsewhere"
            raise InputError.at(page.place, f"question {self.id!r} has {other}; give a file for each label set")
        return kinds.get((page.labels, order), OTHER_LABELS)

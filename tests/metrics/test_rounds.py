"""What some rounds of orders tell of all."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.planted import Planted, at, planted_scores
from unslant.metrics import Block
from unslant.metrics.permutation import by_round, pbm, pbm_of_all, spread_between_rounds


def block_of(n: int) -> Block:
    (block,) = planted_scores(Planted(label=at(0, 1.5)), 30, (n,), seed=n).blocks
    return block


def part(block: Block, orders: np.ndarray) -> Block:
    """The block with the orders (Q, k) only."""
    rows = np.arange(len(block.index))[:, None]
    return replace(block, probs=block.probs[rows, orders], positions=block.positions[rows, orders])


@pytest.mark.parametrize(("n", "rounds"), [(3, 2), (4, 6), (5, 5), (6, 4)])
def test_in_each_round_every_option_stands_in_every_place(n: int, rounds: int) -> None:
    block = block_of(n)
    ((rows, positions),) = by_round(block, block.positions)
    assert rows.tolist() == list(range(30))
    assert positions.shape == (30, rounds, n, n)
    assert (np.sort(positions, axis=2) == np.arange(n)[:, None]).all()


@pytest.mark.parametrize("r", [2, 3, 5])
def test_pbm_from_some_rounds_is_that_of_all_on_average(r: int) -> None:
    block = block_of(4)
    ((_, places),) = by_round(block, np.tile(np.arange(24), (30, 1)))
    whole, some = np.full(30, 24), list(itertools.combinations(range(6), r))
    found = [part(block, places[:, list(chosen)].reshape(30, -1)) for chosen in some]
    full = pbm(block.probs)
    assert np.mean([pbm_of_all(one, whole) for one in found], axis=0) == pytest.approx(full, rel=1e-9)
    assert np.mean([pbm(one.probs) for one in found]) < 0.999 * full.mean()  # as it stands, it would be too small
    assert pbm_of_all(block, whole).tolist() == full.tolist()


def test_pbm_from_single_orders_is_that_of_all_on_average() -> None:
    block = block_of(4)
    pairs = [np.tile(pair, (30, 1)) for pair in itertools.combinations(range(24), 2)]
    found = [pbm_of_all(part(block, pair), np.full(30, 24)) for pair in pairs]
    assert np.mean(found, axis=0) == pytest.approx(pbm(block.probs), rel=1e-9)


def test_pinned_options_stand_aside() -> None:
    whole = block_of(3)  # with a fourth option, pinned below
    last = np.full((30, 6, 1), 0.2)
    probs = np.concatenate([0.8 * whole.probs, last], axis=2)
    positions = np.concatenate([whole.positions, np.full((30, 6, 1), 3)], axis=2)
    pinned = np.tile([False, False, False, True], (30, 1))
    block = replace(whole, probs=probs, positions=positions, pinned=pinned)
    ((_, found),) = by_round(block, block.probs)
    assert found.shape == (30, 2, 3, 4)
    right = (block.probs.argmax(axis=2) == 0) * 1.0
    ((_, places),) = by_round(block, np.tile(np.arange(6), (30, 1)))
    halves = [part(block, own) for own in np.moveaxis(places, 1, 0)]
    means = np.stack([(half.probs.argmax(axis=2) == 0).mean(axis=1) for half in halves])
    assert spread_between_rounds(block, right) == pytest.approx(means.var(axis=0, ddof=1))

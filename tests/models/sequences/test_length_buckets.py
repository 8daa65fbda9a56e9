from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from models.interactions.interactions import Interactions, from_lists
from models.interactions.told_events import Told
from models.sequences.length_buckets import SequenceBatch, batch, batches


def log(users: int = 700, table: int = 90) -> Interactions:
    random = np.random.default_rng(0)
    lengths = np.minimum(random.geometric(0.12, users), 60)
    return from_lists([list(random.integers(2, table, length)) for length in lengths], table)


def pairs(made: SequenceBatch) -> list[tuple[int, int]]:
    """(last item read, target) of every prediction."""
    return list(zip(made.items.flatten()[made.place].tolist(), made.target.tolist(), strict=True))


def test_what_is_told_of_an_action_is_read_with_it_and_not_of_the_one_to_predict():
    whole = log(50)
    whole = replace(whole, told=Told(False, whole.items[:, None] + 1, (99,)))
    for made in batches(whole, 200, 64, np.random.default_rng(1)):
        assert made.events[:, :, 0].tolist() == torch.where(made.items > 0, made.items + 1, 0).tolist()


def test_lengths_up_to_two_hundred_are_predicted_whole_with_little_padding():
    random = np.random.default_rng(0)
    lengths = random.integers(150, 260, 60)
    whole = from_lists([list(random.integers(2, 90, length)) for length in lengths], 90)
    made = list(batches(whole, 200, 1000, random))
    assert max(one.items.shape[1] for one in made) == 200
    assert sum(len(one.target) for one in made) == int(np.minimum(lengths - 1, 200).sum())
    assert sum(len(one.target) for one in made) > 0.9 * sum(one.items.numel() for one in made)


def test_each_action_but_a_users_first_is_predicted_once_an_epoch():
    whole = log()
    expected = Counter((int(a), int(b)) for u in range(whole.users) for a, b in zip(whole.of(u), whole.of(u)[1:],
                                                                                     strict=False))
    found = Counter(pair for made in batches(whole, 100, 64, np.random.default_rng(1)) for pair in pairs(made))
    assert found == expected


def test_long_histories_lose_their_oldest_actions():
    made = batch(from_lists([[2, 3, 4, 5, 6], [7, 8]], 9), np.array([0, 1]), 2)
    assert made.items.tolist() == [[4, 5], [7, 0]]
    assert pairs(made) == [(4, 5), (5, 6), (7, 8)]


def test_almost_no_work_goes_into_padding():
    made = list(batches(log(6000), 60, 1024, np.random.default_rng(1)))
    assert sum(len(one.target) for one in made) > 0.9 * sum(one.items.numel() for one in made)
    assert np.mean([len(one.target) for one in made]) == pytest.approx(1024, rel=0.1)


def test_a_seed_gives_one_order_and_another_seed_another():
    whole = log(100)
    first, again, other = (
        [pair for made in batches(whole, 20, 64, np.random.default_rng(seed)) for pair in pairs(made)]
        for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_farther_targets_come_from_the_next_actions_of_the_same_user():
    whole = from_lists([[2, 3, 4, 5], [6, 7], [8, 9, 10]], 11)
    found = {pair for seed in range(60) for made in batches(whole, 9, 4, np.random.default_rng(seed), horizon=2)
             for pair in pairs(made)}
    assert found == {(2, 3), (2, 4), (3, 4), (3, 5), (4, 5), (6, 7), (8, 9), (8, 10), (9, 10)}


def test_a_log_of_single_actions_has_no_batch():
    assert list(batches(from_lists([[2], [3], []], 4), 5, 8, np.random.default_rng(0))) == []

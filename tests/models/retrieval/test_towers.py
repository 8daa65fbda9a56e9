from __future__ import annotations

import numpy as np
import pytest
import torch

from models.interactions.interactions import from_lists
from models.interactions.splits import leave_one_out
from models.retrieval.towers import Towers, TowerSettings, asked_rows, before, training_rows
from tests.models.interaction_world import ring_split

LOG = from_lists([[2, 3, 4, 5], [5], [4, 3, 2]], 6)


def test_each_action_but_a_users_first_is_described_by_those_before_it():
    rows = training_rows(LOG, 2)
    assert rows.user.tolist() == [0, 0, 0, 2, 2]
    assert rows.item.tolist() == [3, 4, 5, 3, 2]
    assert rows.history.tolist() == [[2, 0], [3, 2], [4, 3], [4, 0], [3, 4]]


def test_a_target_is_described_by_the_history_when_asked():
    rows = asked_rows(leave_one_out(LOG).test, 3)
    assert rows.user.tolist() == [0, 2]
    assert rows.item.tolist() == [5, 2]
    assert rows.history.tolist() == [[4, 3, 2], [3, 4, 0]]


def test_nothing_stands_before_the_first_action():
    assert before(LOG, np.array([4]), np.array([1]), 2).tolist() == [[0, 0]]
    assert before(from_lists([[]], 6), np.array([0]), np.array([0]), 2).tolist() == [[0, 0]]


def test_what_follows_on_a_ring_is_learned():
    split = ring_split()
    model = Towers(TowerSettings(width=16, embedding=8, hidden=(32,), epochs=15, batch=64, learning_rate=1e-2), 0)
    model.fit(split)
    found = model.scores(split.test.asked, split.test.history)
    found[:, :2] = -torch.inf
    near = (split.test.targets.items[:, None] == found.topk(5).indices.numpy()).any(1).mean()
    assert near > 0.5  # 5 of 24 by chance


@pytest.mark.slow
def test_mixed_and_hard_negatives_change_what_is_learned_and_one_seed_is_one_fit():
    split = ring_split()
    plain = TowerSettings(width=16, embedding=8, hidden=(32,), epochs=15, batch=64, learning_rate=1e-2)
    mixed, both = (plain.model_copy(update=more) for more in ({"mixed": 16}, {"mixed": 16, "hard": 3}))
    found = [Towers(settings, 0) for settings in (plain, mixed, both, both)]
    for model in found:
        model.fit(split)
    without, first, second, again = (model.scores(split.test.asked, split.test.history)[:, 2:] for model in found)
    assert torch.equal(second, again)
    assert not torch.equal(without, first)
    assert not torch.equal(first, second)
    near = [(split.test.targets.items[:, None] - 2 == scores.topk(5).indices.numpy()).any(1).mean()
            for scores in (first, second)]
    assert near[0] > 0.5  # 5 of 24 by chance
    assert near[1] > 0.3

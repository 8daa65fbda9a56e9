from __future__ import annotations

import numpy as np
import pytest

from contracts.errors import DataError
from models.interactions.interactions import Interactions, from_columns
from models.interactions.splits import Holdout, Split
from models.retrieval.popularity import WEEK, Popularity, RecentPopularity
from tests.models.interaction_world import ring_split


def split_of(log: Interactions) -> Split:
    return Split(log, Holdout(log, log), Holdout(log, log))


def test_popularity_counts_training_actions_for_every_user():
    split = ring_split(20)
    model = Popularity()
    model.fit(split)
    found = model.scores(np.arange(3), split.test.history.rows(np.arange(3)))
    assert found.tolist() == [split.train.counts().tolist()] * 3


def test_recent_popularity_counts_those_of_the_window():
    day = WEEK // 7
    log = from_columns(np.array([0, 0, 1, 1]), np.array([1, 2, 2, 3]), np.array([0, 4 * day, 7 * day, 8 * day]))
    model = RecentPopularity()
    model.fit(split_of(log))
    assert model.scores(np.array([0]), log.rows(np.array([0]))).tolist() == [[0, 0, 0, 2, 1]]


def test_recent_popularity_needs_times():
    with pytest.raises(DataError, match="needs times"):
        RecentPopularity().fit(ring_split(20))

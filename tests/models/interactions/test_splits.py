from __future__ import annotations

import numpy as np
import pytest

from contracts.errors import DataError
from models.interactions.interactions import from_columns, from_lists
from models.interactions.splits import leave_one_out, split_in_time


def test_the_last_action_tests_and_the_one_before_validates():
    split = leave_one_out(from_lists([[2, 3, 4, 5], [3, 2], [4, 5, 2]], 6))
    assert split.train.items.tolist() == [2, 3, 3, 2, 4]
    assert split.validation.asked.tolist() == split.test.asked.tolist() == [0, 2]
    assert split.validation.targets.items.tolist() == [4, 5]
    assert split.test.targets.items.tolist() == [5, 2]
    assert split.test.history.items.tolist() == [2, 3, 4, 3, 2, 4, 5]
    assert np.array_equal(split.validation.history.items, split.train.items)


def test_a_history_is_asked_for_at_the_first_target():
    log = from_columns(np.array([0, 0, 0, 0, 1, 1, 1]), np.arange(7), np.array([1, 2, 3, 9, 4, 5, 8]))
    split = leave_one_out(log)
    asked = split.test.history_of(np.array([1, 0])).asked
    assert asked is not None
    assert asked.tolist() == [8, 9]
    assert leave_one_out(from_lists([[2, 3, 4]], 6)).test.history_of(np.array([0])).asked is None


def test_a_log_of_short_histories_cannot_leave_one_out():
    with pytest.raises(DataError, match="three actions"):
        leave_one_out(from_lists([[2, 3], [3]], 6))


def test_in_time_nothing_after_the_cut_is_trained_on():
    times = np.arange(100)
    log = from_columns(times % 7, times % 60, times)
    split = split_in_time(log, 0.1, 0.2)
    parts = split.train, split.validation.targets, split.test.targets
    assert [part.times.min() for part in parts] == [0, 70, 80]  # type: ignore[union-attr]
    assert split.train.times.max() < 70  # type: ignore[union-attr]
    assert split.test.history.times.max() < 80  # type: ignore[union-attr]


def test_what_was_taken_before_is_no_target():
    log = from_columns(np.zeros(10), np.array([1, 2, 3, 4, 5, 6, 7, 8, 1, 9]), np.arange(10))
    assert split_in_time(log, 0.1, 0.3).test.targets.items.tolist() == [9, 10]  # 8 and 9: the second 1 is left out


def test_a_log_without_times_cannot_be_cut_in_time():
    with pytest.raises(DataError, match="no times"):
        split_in_time(from_lists([[2, 3, 4]], 6))

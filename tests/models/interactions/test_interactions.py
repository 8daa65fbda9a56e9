from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from contracts.errors import DataError
from contracts.features.feature_spec import FIRST_ID, UNKNOWN
from models.interactions.interactions import Interactions, from_columns, from_lists, offsets_of, read_lines
from models.interactions.told_events import SECOND

LISTS = [[2, 3, 4], [], [5, 2], [3]]


def lists_of(log: Interactions) -> list[list[int]]:
    return [log.of(user).tolist() for user in range(log.users)]


def test_lists_come_back_as_they_went_in():
    log = from_lists(LISTS, 6)
    assert lists_of(log) == LISTS
    assert log.lengths.tolist() == [3, 0, 2, 1]
    assert log.owners.tolist() == [0, 0, 0, 2, 2, 3]
    assert log.counts().tolist() == [0, 0, 2, 2, 1, 1]


def test_rows_latest_and_where_keep_the_order():
    log = from_lists(LISTS, 6)
    assert lists_of(log.rows(np.array([2, 0, 2]))) == [[5, 2], [2, 3, 4], [5, 2]]
    assert lists_of(log.latest(2)) == [[3, 4], [], [5, 2], [3]]
    assert lists_of(log.where(log.items != 2)) == [[3, 4], [], [5], [3]]


def test_padding_stands_behind_the_latest_items():
    assert from_lists(LISTS, 6).padded(np.array([0, 1, 3]), 2).tolist() == [[3, 4], [0, 0], [3, 0]]


def test_columns_are_ordered_by_time_and_then_as_the_log_has_them():
    log = from_columns(np.array(["b", "a", "b", "b"]), np.array(["x", "y", "z", "w"]), np.array([5, 1, 3, 5]))
    assert lists_of(log) == [[4], [5, 3, 2]]  # w x y z are 2 3 4 5
    assert log.times is not None
    assert log.times.tolist() == [1, 3, 5, 5]


def test_lines_are_users_and_items(tmp_path):
    (tmp_path / "log.txt").write_text("1 10 30\n2 20\n\n3 30 10 10\n")
    log = read_lines(tmp_path / "log.txt")
    assert lists_of(log) == [[2, 4], [3], [4, 2, 2]]
    assert log.table == 5


@pytest.mark.parametrize(("text", "said"), [("1 2\n1 x\n", "line 2"), ("1\n2\n", "no actions"), ("", "no actions")])
def test_what_is_no_such_file_is_refused(tmp_path, text, said):
    (tmp_path / "log.txt").write_text(text)
    with pytest.raises(DataError, match=said):
        read_lines(tmp_path / "log.txt")


@pytest.mark.parametrize(("offsets", "items", "said"), [
    ([0, 2], [2], "end at 2"), ([0, 1], [1], "do not lie"), ([0, 1], [9], "do not lie"), ([1, 1], [2], "start at 0"),
    ([0, 2, 1], [2], "never fall")])
def test_arrays_that_contradict_each_other_are_refused(offsets, items, said):
    with pytest.raises(DataError, match=said):
        Interactions(np.array(offsets), np.array(items), 6)


def test_offsets_are_running_sums():
    assert offsets_of(np.array([3, 0, 2])).tolist() == [0, 3, 3, 5]


def test_what_is_told_of_actions_goes_with_them_and_the_last_gap_ends_when_somebody_asks():
    users, items = np.array([0, 0, 1, 0]), np.array(["a", "b", "a", "c"])
    seconds, kinds = np.array([10, 20, 30, 40]), np.array(["x", "y", "x", "y"])
    log = from_columns(users, items, seconds * SECOND, gaps=True, columns=[kinds])
    gap = {one: FIRST_ID + bucket for one, bucket in ((10, 3), (20, 4), (30, 4), (100, 6))}
    assert log.padded_events(np.array([0, 1]), 3).tolist() == [
        [[gap[10], 2], [gap[20], 3], [UNKNOWN, 3]], [[UNKNOWN, 2], [0, 0], [0, 0]]]
    asked = replace(log, asked=np.array([140, 60]) * SECOND)
    assert asked.padded_events(np.array([1, 0]), 2).tolist() == [
        [[gap[30], 2], [0, 0]], [[gap[20], 3], [gap[100], 3]]]
    kept = asked.where(np.array([True, False, True, False]))  # user 1 is left without any
    assert kept.padded_events(np.array([0, 1]), 2).tolist() == [[[gap[30], 2], [gap[100], 3]], [[0, 0], [0, 0]]]


def test_a_log_that_tells_nothing_has_no_event_inputs():
    log = from_columns(np.array([0, 0]), np.array([1, 2]), np.array([1, 2]))
    assert log.padded_events(np.array([0]), 2).shape == (1, 2, 0)

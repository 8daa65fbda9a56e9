from __future__ import annotations

import numpy as np
import pytest

from benchmarks.freshness.merges import FEWEST, NEAR_SECONDS, Look, Stretch, merge_stretches, p99_ratio
from serving.changing_index.changing_index import MERGE_AT


def test_a_merge_lasts_from_when_enough_has_come_until_its_count_is_seen() -> None:
    looks = [Look(1, 4, 0), Look(2, 4, MERGE_AT), Look(3, 4, MERGE_AT + 9), Look(4, 5, 9), Look(5, 5, 20)]
    assert merge_stretches(looks) == [Stretch(1, 4)]


def test_a_merge_between_two_looks_lies_between_them() -> None:
    assert merge_stretches([Look(1, 0, 5), Look(2, 0, 6), Look(3, 1, 2), Look(4, 2, 1)]) == [
        Stretch(2, 3), Stretch(3, 4)]
    assert merge_stretches([]) == []


def test_requests_near_merges_are_compared_with_the_others() -> None:
    due = np.linspace(0, 100, 4001)
    near = (due >= 50 - NEAR_SECONDS) & (due <= 52 + NEAR_SECONDS)
    calls = np.stack([due, np.where(near, 6.0, 2.0)], axis=1)
    assert near.sum() > FEWEST
    assert p99_ratio(calls, [Stretch(50, 52)]) == pytest.approx(3)
    assert p99_ratio(calls, [Stretch(50, 52), Stretch(70, 71)]) == pytest.approx(3)


def test_too_few_say_nothing() -> None:
    calls = np.stack([np.linspace(0, 100, 4001), np.ones(4001)], axis=1)
    assert p99_ratio(calls, []) is None
    assert p99_ratio(calls, [Stretch(0, 100)]) is None

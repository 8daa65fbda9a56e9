"""What is retrieved for a take: nearest of the latest, without what the user has."""

from __future__ import annotations

import numpy as np

from pipelines.negatives.candidates import RECENT, Candidates, Retrieval
from pipelines.negatives.neighbours import DAY_LENGTH, NEAREST, Neighbours
from pipelines.negatives.takes import Taken, Takes

ITEMS, NOON = 40, DAY_LENGTH // 2


def takes(item: list[int], at: list[int], user: list[int] | None = None, late: int = 1) -> Takes:
    """Each counts `late` microseconds after it happened."""
    who = np.array(user or [0] * len(item))
    return Takes(np.array(item), who, who, np.array(at), np.array(at) + late, np.arange(len(item)))


def next_two() -> Neighbours:
    """Since the first midnight: n + 1 and n + 2 are near to n."""
    nearest = np.full((1, ITEMS, NEAREST), -1, np.int32)
    nearest[0, :, :2] = (np.arange(ITEMS)[:, None] + [1, 2]) % ITEMS
    return Neighbours(np.array([0]), nearest)


def retrieval(made: Takes) -> Retrieval:
    return Retrieval(made, Taken(made, ITEMS), next_two())


def test_candidates_are_near_to_what_was_taken_before_and_not_had() -> None:
    made = takes([0, 1, 2, 10], [NOON, NOON + 10, NOON + 20, NOON + 30])
    found = retrieval(made).candidates(np.arange(4))
    assert [found.item[a:b].tolist() for a, b in zip(found.offsets[:-1], found.offsets[1:], strict=True)] == [
        [], [2], [3], [3, 4]]
    assert found.own.tolist() == [False, True, True, False]


def test_a_take_that_does_not_count_yet_and_another_users_retrieve_nothing() -> None:
    late = takes([0, 10], [NOON, NOON + 10], late=50)
    assert retrieval(late).candidates(np.arange(2)).sizes.tolist() == [0, 0]
    others = takes([0, 10], [NOON, NOON + 10], user=[0, 1])
    assert retrieval(others).candidates(np.arange(2)).sizes.tolist() == [0, 0]
    before = takes([0, 10], [-NOON, -NOON + 10])
    assert retrieval(before).candidates(np.arange(2)).sizes.tolist() == [0, 0]


def test_the_latest_takes_come_first_and_are_so_many() -> None:
    count = RECENT + 3
    made = takes(list(range(count)), [NOON + 10 * n for n in range(count)])
    latest = retrieval(made).latest(np.array([count - 1, 2]))
    assert latest[0].tolist() == list(range(count - 2, count - 2 - RECENT, -1))
    assert latest[1].tolist() == [1, 0] + [-1] * (RECENT - 2)


def test_a_chance_hits_each_candidate_of_its_positive() -> None:
    found = Candidates(np.array([4, 7, 9]), np.array([0, 2, 2, 3]), np.zeros(3, bool))
    assert found.at(np.array([0, 0, 2, 2]), np.array([0.0, 0.99, 0.0, 0.99])).tolist() == [4, 7, 9, 9]
    asked, item = np.array([0, 0, 1, 2, 2]), np.array([7, 9, 4, 9, 4])
    assert found.among(asked, item, ITEMS).tolist() == [True, False, False, True, False]
    none = Candidates.none(3)
    assert none.sizes.tolist() == [0, 0, 0]
    assert not none.among(asked, item, ITEMS).any()

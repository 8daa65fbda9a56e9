from __future__ import annotations

import pytest

from serving.batches.places import NoPlace, Places


def places(most: int = 8) -> Places:
    return Places(most, "batches wait", "send it later")


def test_one_caller_leaves_places_to_others() -> None:
    shared = places()
    for _ in range(2):
        shared.take("loud")
    with pytest.raises(NoPlace, match="2 batches wait of this caller alone, as many as may of one; send it later"):
        shared.take("loud")
    shared.take("quiet")
    assert shared.taken == 3


def test_there_are_so_many_for_all() -> None:
    shared = places()
    for number in range(8):
        shared.take(f"caller {number}")
    with pytest.raises(NoPlace, match="8 batches wait, as many as may; send it later"):
        shared.take("one more")


def test_who_leaves_may_come_again() -> None:
    shared = places(most=1)
    shared.take("one")
    shared.leave("one")
    assert shared.taken == 0
    shared.take("one")


def test_places_of_a_size_are_shared_by_it() -> None:
    shared = places()
    shared.take("loud", 2)
    with pytest.raises(NoPlace, match="2 batches wait of this caller alone"):
        shared.take("loud", 1)
    shared.take("large", 6)
    with pytest.raises(NoPlace, match="8 batches wait, as many as may"):
        shared.take("one more", 1)
    shared.leave("loud", 2)
    shared.take("one more", 2)
    assert shared.taken == 8


def test_what_takes_more_than_there_is_comes_in_alone() -> None:
    shared = places()
    shared.take("huge", 80)
    with pytest.raises(NoPlace):
        shared.take("one more")
    shared.leave("huge", 80)
    assert shared.taken == 0

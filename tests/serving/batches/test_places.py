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

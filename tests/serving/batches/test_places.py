from __future__ import annotations

from contextlib import suppress

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


@pytest.mark.parametrize("callers", [4, 16])
def test_callers_who_take_all_they_may_leave_places_to_the_next(callers: int) -> None:
    """A quarter of what the others leave: 0.75^4 of the places after four callers, of whom a quarter each is all."""
    shared = places(most=4096)
    for number in range(callers):
        for _ in range(4096):
            with suppress(NoPlace):
                shared.take(f"greedy {number}")
    assert 4096 - shared.taken == pytest.approx(4096 * 0.75**callers, abs=callers)
    shared.take("quiet")


def test_who_took_early_takes_no_more_once_others_have_come() -> None:
    shared = places(most=8)
    shared.take("early")
    for number in range(4):
        shared.take(f"other {number}")
    with pytest.raises(NoPlace, match="1 batches wait of this caller alone"):
        shared.take("early")


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

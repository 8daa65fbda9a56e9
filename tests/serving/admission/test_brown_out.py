"""Levels on a clock of their own."""

from __future__ import annotations

import pytest

from serving.admission.brown_out import DEEPEST, EASED, LOOKS, REFUSED, REST, STEP, BrownOut


class Watched:
    """One that stands from now on, and the time."""

    def __init__(self) -> None:
        self.now = 50.0
        self.one = BrownOut(self.now)
        self.level = self.one.taken(True, self.now)

    def later(self, seconds: float, stands: bool, refused: int = 0, admitted: int = 0) -> int:
        """The level, after so many calls."""
        for _ in range(refused):
            self.one.refused()
        for _ in range(admitted):
            self.one.admitted()
        self.now += seconds
        self.level = self.one.taken(stands, self.now)
        return self.level

    def looks(self, refused: int, times: int = LOOKS) -> int:
        """The level after so many looks, each at a hundred calls of which so many were refused."""
        for _ in range(times):
            self.later(1.01 * STEP, True, refused, 100 - refused)
        return self.level


def test_it_begins_when_the_queue_stands_and_goes_on_only_while_calls_are_refused() -> None:
    seen = Watched()
    assert seen.level == 1
    assert seen.looks(round(100 * REFUSED[1]), 10) == 1
    assert seen.later(STEP / 2, True, refused=100) == 1
    assert seen.looks(100) == 2


def test_what_a_queue_refuses_while_it_gets_over_what_waits_in_it_is_no_reason() -> None:
    seen = Watched()
    for _ in range(5):
        assert seen.looks(100, LOOKS - 1) == 1
        assert seen.looks(0, 1) == 1


@pytest.mark.parametrize(("refused", "level"), [(74, 2), (76, 3)])
def test_the_deepest_level_is_for_when_most_are_refused_all_the_same(refused: int, level: int) -> None:
    seen = Watched()
    assert seen.looks(50) == 2
    assert REFUSED[2] == 0.75
    assert seen.looks(refused) == level


def test_the_deepest_level_ends_when_it_answers_most() -> None:
    seen = Watched()
    assert seen.looks(90, 2 * LOOKS) == DEEPEST
    assert seen.looks(60) == DEEPEST
    assert EASED == 0.5
    assert seen.looks(49, 1) == 2


def test_without_a_queue_that_stands_a_level_goes_after_each_rest() -> None:
    seen = Watched()
    assert seen.looks(90, 2 * LOOKS) == DEEPEST
    assert seen.later(0.9 * REST, False) == DEEPEST
    assert seen.later(0.2 * REST, False) == DEEPEST - 1
    assert seen.later(0.9 * REST, False) == DEEPEST - 1
    assert not seen.one.over(seen.now)
    assert seen.later(10 * REST, False) == 0
    assert seen.one.over(seen.now)
    assert seen.later(0.1, True) == 1

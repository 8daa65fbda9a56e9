from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sluice.fresh_demo.category_lift import category_lift
from sluice.fresh_demo.hour import Hour, TimedVisit
from tests.sluice.fresh_demo.small_hour import ITEMS, small_hour


class Follower:
    """Adds `weight` to the logit of an item for each click in its category, and something of the user to all."""

    def __init__(self, hour: Hour, weight: float) -> None:
        self._categories, self._weight = hour.truth.items["category"], weight
        self.asked: list[tuple[np.ndarray, np.ndarray]] = []

    def logits(self, visit: TimedVisit, items: np.ndarray, history: np.ndarray) -> np.ndarray:
        self.asked.append((items, history))
        clicks = (self._categories[items][:, None] == self._categories[history][None]).sum(axis=1)
        return np.asarray(visit.user % 3 + self._weight * clicks - 2.0)


def test_who_does_not_follow_has_no_lift_and_who_does_has_that_of_the_clicks_more() -> None:
    hour = small_hour()
    idle: Any = Follower(hour, 0.0)
    eager: Any = Follower(hour, 0.5)
    assert category_lift(hour, idle).model_dump() == pytest.approx({"logit": 0.0, "standard_error": 0.0})
    found = category_lift(hour, eager)
    assert found.logit > 0.5
    assert 0 < found.standard_error < found.logit


def test_histories_are_as_long_hold_no_scored_item_and_no_newcomer() -> None:
    hour = small_hour()
    server: Any = Follower(hour, 0.0)
    category_lift(hour, server)
    assert len(server.asked) == 2 * 12
    for (items, inside), (same, outside) in zip(server.asked[::2], server.asked[1::2], strict=True):
        np.testing.assert_array_equal(items, same)
        assert len(inside) == len(outside) > 0
        assert not set(items) & {*inside, *outside}
        assert max(*items, *inside, *outside) < ITEMS

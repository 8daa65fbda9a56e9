from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contracts.features.encoding import Encoded
from serving.events.event_users import EventUsers
from serving.request.query import Fallback, FreshUser, StageStatus, StoredUser
from serving.users.online_users import OnlineUsers
from serving.users.user_reader import UserLookup
from tests.serving.recorded_events import SECOND, START, SetClock, click_event, recorded_features, shown_event, store_at

ROW = StoredUser(Encoded(np.zeros((1, 2), np.int32), np.zeros((1, 1), np.float32)), ("stored",))
BETWEEN = datetime.fromtimestamp(START / SECOND + 1, UTC)  # after the first click, before the second


class Tables:
    """What a shared store has of the user."""

    def __init__(self, looked: UserLookup) -> None:
        self._looked = looked

    async def read(self, user: str, left: float) -> UserLookup:
        return self._looked


@pytest.fixture
def events(tmp_path: Path) -> EventUsers:
    """Of a user with a click before BETWEEN and one after it."""
    clock = SetClock()
    store = store_at(tmp_path, clock)
    for name, item, seconds in (("a", "early", 0), ("b", "late", 1000)):
        clock.now = START + seconds * SECOND
        store.record([[shown_event(name, clock.now, item=item), click_event(name, clock.now, item=item)]])
    clock.now += SECOND
    return EventUsers(lambda: store_at(tmp_path, clock), recorded_features(86_400), clock)


def asked(looked: UserLookup, events: EventUsers | None = None) -> FreshUser:
    tables: Any = Tables(looked)
    return asyncio.run(OnlineUsers(tables, events).read("u"))


def test_clicks_since_the_stores_tables_come_before_the_stores_row(events: EventUsers) -> None:
    found = asked(UserLookup(ROW, BETWEEN), events)
    assert found.stored is ROW
    assert found.recent == ("late",)
    assert found.report.status is StageStatus.COMPLETE
    assert found.report.age == pytest.approx(1, abs=1e-3)


def test_where_the_store_has_no_row_all_clicks_since_the_bundles_count(events: EventUsers) -> None:
    assert asked(UserLookup(None, BETWEEN), events).recent == ("late", "early")
    found = asked(UserLookup(cause="down"), events)
    assert found.recent == ("late", "early")
    assert (found.report.status, found.report.fallback, found.report.cause) == (
        StageStatus.DEGRADED, Fallback.BUNDLE_ROW, "down")


def test_without_events_the_age_is_that_of_the_row() -> None:
    found = asked(UserLookup(ROW, datetime(2000, 1, 1, tzinfo=UTC)))
    assert found.report.age is not None
    assert found.report.age > 365 * 86_400
    assert asked(UserLookup(None, BETWEEN)).report.age is None
    assert asked(UserLookup()).report.status is StageStatus.COMPLETE


def test_both_causes_are_told(tmp_path: Path) -> None:
    store = store_at(tmp_path, SetClock())
    users = EventUsers(lambda: store_at(tmp_path, SetClock()), recorded_features(), SetClock())
    store.connection.execute("DROP TABLE events")
    cause = asked(UserLookup(cause="down"), users).report.cause
    assert cause.startswith("down; the events cannot be read")

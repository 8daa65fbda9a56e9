from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from contracts.features.event_features import ToldEvents
from serving.events.event import Event
from serving.events.event_store import EventStore
from serving.events.event_users import FEW, MOST_WAITING, NOT_IN_TIME, EventUsers
from serving.request.query import Fallback, FreshUser, StageStatus
from tests.serving.recorded_events import SECOND, START, SetClock, click_event, recorded_features, shown_event, store_at


def asked(users: EventUsers) -> FreshUser:
    return asyncio.run(users.read("u"))


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


def test_clicks_and_counters_of_a_user_with_their_age(tmp_path: Path, clock: SetClock) -> None:
    store = store_at(tmp_path, clock)
    users = EventUsers(lambda: store_at(tmp_path, clock), recorded_features(), clock)
    store.record([[shown_event("a", START), click_event("a", START)]])
    clock.now += 120 * SECOND
    found = asked(users)
    assert found.recent == ("i",)
    assert (found.report.name, found.report.status) == ("user", StageStatus.COMPLETE)
    assert found.report.age == pytest.approx(120, abs=1e-3)
    assert asyncio.run(users.read("stranger")).report.age is None


def test_what_is_told_of_clicks_is_their_time_and_the_columns_of_their_impressions(
    tmp_path: Path, clock: SetClock
) -> None:
    store, features = store_at(tmp_path, clock), recorded_features()
    clock.now += 60 * SECOND
    store.record([[shown_event("a", START), click_event("a", START + SECOND)]])
    clock.now += 60 * SECOND
    found = [asked(EventUsers(lambda: store_at(tmp_path, clock), features.model_copy(update={"events": events}),
                              clock)).told for events in ((), ("time",), ("time", "place", "age"))]
    assert found[0] == ToldEvents()
    assert found[1] == ToldEvents([START + SECOND], {})
    assert found[2] == ToldEvents([START + SECOND], {"place": ["top"], "age": [None]})


def test_a_counter_waits_until_its_whole_window_is_known(tmp_path: Path, clock: SetClock) -> None:
    users = EventUsers(lambda: store_at(tmp_path, clock), recorded_features(), clock)
    found = []
    for seconds in (59, 60, 600):
        clock.now = START + seconds * SECOND
        found.append(sorted(asked(users).values))
    short, long = ([f"visits_{statistic}_{window}" for statistic in ("count", "rate")] for window in ("1m", "10m"))
    assert found == [[], sorted(short), sorted([*short, *long])]


def test_published_counters_stay_as_published_and_only_later_clicks_come_before_the_history(
    tmp_path: Path, clock: SetClock
) -> None:
    store = store_at(tmp_path, clock)
    store.record([[shown_event("a", START, item="old"), click_event("a", START, item="old")]])
    published = datetime.fromtimestamp(START / SECOND + 1, UTC)
    features = recorded_features(86_400).model_copy(update={"published": published})
    clock.now += 1000 * SECOND
    store.record([[shown_event("b", clock.now, item="new"), click_event("b", clock.now, item="new")]])
    clock.now += SECOND
    found = asked(EventUsers(lambda: store_at(tmp_path, clock), features, clock))
    assert (found.recent, dict(found.values)) == (("new",), {})


def test_what_was_clicked_before_the_tables_and_learned_after_them_is_said(tmp_path: Path, clock: SetClock) -> None:
    """With its place among the recent items, between what was learned in time."""
    store = store_at(tmp_path, clock)

    def clicked(item: str, seconds: int) -> list[Event]:
        at = START + seconds * SECOND
        return [shown_event(item, at, item=item), click_event(item, at, item=item)]

    clock.now = START + 40 * SECOND
    store.record([clicked("first", 10), clicked("last", 30)])
    published = datetime.fromtimestamp(START / SECOND + 50, UTC)
    features = recorded_features(86_400).model_copy(update={"published": published})
    users = EventUsers(lambda: store_at(tmp_path, clock), features, clock)
    clock.now = START + 60 * SECOND
    assert (asked(users).recent, asked(users).overlap) == ((), ())
    store.record([clicked("later", 55), clicked("late", 20)])
    clock.now += SECOND
    found = asked(users)
    assert found.recent == ("later", "late")
    assert found.overlap == (("last", -1), ("late", 1), ("first", -1))


def test_a_store_that_cannot_be_read_leaves_the_bundles_row_and_says_so(tmp_path: Path, clock: SetClock) -> None:
    store = store_at(tmp_path, clock)
    users = EventUsers(lambda: store_at(tmp_path, clock), recorded_features(), clock)
    store.connection.execute("DROP TABLE events")
    found = asked(users)
    assert (found.report.status, found.report.fallback) == (StageStatus.DEGRADED, Fallback.BUNDLE_ROW)
    assert "cannot be read" in found.report.cause
    assert (found.recent, dict(found.values)) == ((), {})


def test_a_request_waits_for_no_other_process(tmp_path: Path, clock: SetClock) -> None:
    stores: list[EventStore] = []

    def opened() -> EventStore:
        stores.append(store_at(tmp_path, clock))
        return stores[-1]

    EventUsers(opened, recorded_features(), clock)
    assert {store.connection.execute("PRAGMA busy_timeout").fetchone() for store in stores} == {(0,)}


def shown_so_often(tmp_path: Path, clock: SetClock, count: int) -> EventStore:
    store = store_at(tmp_path, clock)
    store.record([[shown_event(f"{n}", START, item=f"i{n}") for n in range(count)]])
    store.record([[click_event(f"{n}", START, item=f"i{n}") for n in range(3)]])
    clock.now += SECOND
    return store


@pytest.mark.parametrize("count", [FEW, FEW + 1])
def test_many_events_are_read_as_few_are(tmp_path: Path, clock: SetClock, count: int) -> None:
    """On either side of the number from which on they are read beside the loop."""
    store = shown_so_often(tmp_path, clock, count)
    assert store.has_more("u", FEW) == (count > FEW)
    users = EventUsers(lambda: store_at(tmp_path, clock), recorded_features(), clock)
    found = asked(users)
    users.close()
    assert found.recent == ("i2", "i1", "i0")
    assert found.report.status is StageStatus.COMPLETE


def test_nobody_waits_for_the_events_of_a_user_who_has_many(tmp_path: Path, clock: SetClock) -> None:
    """The thread beside the loop is held: others are answered meanwhile, and those that come after too many of its kind
    at once, with the bundle's row."""
    shown_so_often(tmp_path, clock, FEW + 1)
    users, may_go = EventUsers(lambda: store_at(tmp_path, clock), recorded_features(), clock), threading.Event()

    async def drive() -> None:
        held = asyncio.get_running_loop().run_in_executor(users.thread, may_go.wait)
        many = [asyncio.ensure_future(users.read("u", who=partial(str, n))) for n in range(MOST_WAITING)]
        await asyncio.sleep(0)
        assert (await users.read("stranger")).report.status is StageStatus.COMPLETE
        late = await users.read("u")
        assert late.report.fallback is Fallback.BUNDLE_ROW
        assert "as many as may" in late.report.cause
        assert not any(one.done() for one in many)
        may_go.set()
        assert {(await one).recent for one in many} == {("i2", "i1", "i0")}
        await held

    asyncio.run(asyncio.wait_for(drive(), 20))
    users.close()


def test_one_caller_asks_for_users_of_many_events_in_its_share_alone(tmp_path: Path, clock: SetClock) -> None:
    """The thread beside the loop is held: who asks without a pause has the bundle's row of further ones, others wait
    for theirs."""
    shown_so_often(tmp_path, clock, FEW + 1)
    users, may_go = EventUsers(lambda: store_at(tmp_path, clock), recorded_features(), clock), threading.Event()

    async def drive() -> None:
        held = asyncio.get_running_loop().run_in_executor(users.thread, may_go.wait)
        greedy = [asyncio.ensure_future(users.read("u", who=lambda: "greedy")) for _ in range(MOST_WAITING)]
        quiet = asyncio.ensure_future(users.read("u", who=lambda: "quiet"))
        await asyncio.sleep(0)
        late = [one.result().report for one in greedy if one.done()]
        assert len(greedy) - len(late) == MOST_WAITING // 4
        assert all(report.fallback is Fallback.BUNDLE_ROW and "this caller alone" in report.cause for report in late)
        may_go.set()
        assert (await quiet).recent == ("i2", "i1", "i0")
        await asyncio.gather(held, *greedy)

    asyncio.run(asyncio.wait_for(drive(), 20))
    users.close()


def test_a_user_whose_many_events_take_longer_than_the_caller_has_is_the_bundles_row(
    tmp_path: Path, clock: SetClock
) -> None:
    shown_so_often(tmp_path, clock, FEW + 1)
    users, may_go = EventUsers(lambda: store_at(tmp_path, clock), recorded_features(), clock), threading.Event()

    async def drive() -> None:
        held = asyncio.get_running_loop().run_in_executor(users.thread, may_go.wait)
        found = (await users.read("u", 0.001)).report
        assert (found.fallback, found.cause) == (Fallback.BUNDLE_ROW, NOT_IN_TIME)
        may_go.set()
        await held

    asyncio.run(asyncio.wait_for(drive(), 20))
    users.close()

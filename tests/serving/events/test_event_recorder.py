from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from serving.events import event_recorder
from serving.events.event import Event
from serving.events.event_recorder import EventRecorder, NotKept, TooMany
from serving.events.event_store import Recorded
from tests.serving.recorded_events import SECOND, START, SetClock, click_event, shown_event, store_at


def test_batches_that_come_together_are_told_apart(tmp_path: Path) -> None:
    clock = SetClock()
    recorder = EventRecorder(lambda: store_at(tmp_path, clock), lambda: clock.now + 1000)

    async def record() -> list[Recorded]:
        batches = [[shown_event(f"{batch} {n}", START) for n in range(batch)] for batch in range(20)]
        again = [[shown_event("5 1", START), shown_event("new", START)]]
        found = await asyncio.gather(*[recorder.record(batch) for batch in batches])
        return [*found, *[await recorder.record(batch) for batch in again]]

    found = asyncio.run(record())
    recorder.close()
    assert [one[:2] for one in found] == [*[(batch, 0) for batch in range(20)], (1, 1)]
    kept = store_at(tmp_path, clock).connection.execute("SELECT count(*) FROM events").fetchone()
    assert kept == (sum(range(20)) + 1,)


def test_events_are_counted_whose_caller_has_gone(tmp_path: Path) -> None:
    clock, told = SetClock(), list[str]()
    recorder = EventRecorder(lambda: store_at(tmp_path, clock), clock, told=told.extend)

    async def leave() -> None:
        gone = asyncio.ensure_future(recorder.record([shown_event("a", START), click_event("a", START)]))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.wait([gone])
        assert gone.cancelled()

    asyncio.run(leave())
    recorder.close()
    assert sorted(told) == ["click", "impression"]


def test_events_are_recorded_whoever_fails_to_count_them(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def fail(kinds: Sequence[str]) -> None:
        raise OSError("no room for figures")

    clock = SetClock()
    recorder = EventRecorder(lambda: store_at(tmp_path, clock), clock, told=fail)

    async def record() -> list[Recorded]:
        return [await asyncio.wait_for(recorder.record([shown_event(name, START)]), 10) for name in "ab"]

    assert [one.new for one in asyncio.run(record())] == [1, 1]
    recorder.close()
    assert caplog.messages == ["new events cannot be counted by kind (no room for figures)"]


def test_a_clock_that_was_set_back_holds_nobody_up_and_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(event_recorder, "MOST_SECONDS", 0.01)
    clock = SetClock()
    clock.now += 3600 * SECOND
    recorder = EventRecorder(lambda: store_at(tmp_path, clock), clock)

    async def record() -> list[Recorded]:
        before = await recorder.record([shown_event("a", START)])
        clock.now -= 3600 * SECOND
        return [before, *[await recorder.record([shown_event(name, START)]) for name in "bc"]]

    found = asyncio.run(asyncio.wait_for(record(), 10))
    recorder.close()
    assert [one.new for one in found] == [1, 1, 1]
    assert found[0].known < found[1].known < found[2].known
    assert [line[:22] for line in caplog.messages] == ["the clock was set back"]


class HeldDisk(EventRecorder):
    """Takes up one batch, and the next ones when it is let go."""

    def __init__(self, folder: Path, clock: SetClock, most: int) -> None:
        self._held, self._let = threading.Event(), threading.Event()
        super().__init__(lambda: store_at(folder, clock), lambda: clock.now + 1000, most=most, told=self._hold)

    def _hold(self, kinds: Sequence[str]) -> None:
        self._held.set()
        self._let.wait(20)

    def let_go(self) -> None:
        self._let.set()

    async def begun(self, name: str) -> asyncio.Future[Recorded]:
        """One event, which is being written."""
        first = asyncio.ensure_future(self.record([shown_event(name, START)], 1, "first"))
        while not self._held.is_set():
            await asyncio.sleep(0)
        return first


def shown(name: str, count: int) -> list[Event]:
    return [shown_event(f"{name} {n}", START) for n in range(count)]


def test_what_waits_is_bounded_and_a_quarter_of_it_is_one_callers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_recorder, "MOST_BYTES", 100)
    recorder = HeldDisk(tmp_path, SetClock(), most=8)

    async def record() -> None:
        kept = [await recorder.begun("first")]
        kept += [asyncio.ensure_future(recorder.record(shown(who, 2), 20, who)) for who in "abcd"]
        await asyncio.sleep(0)
        with pytest.raises(TooMany, match="8 events wait for the disk, as many as may; send them again later"):
            await recorder.record(shown("late", 1), 1, "late")
        recorder.let_go()
        assert [found.new for found in await asyncio.gather(*kept)] == [1, 2, 2, 2, 2]

    asyncio.run(record())
    recorder.close()


@pytest.mark.parametrize(("events", "size", "why"), [
    (1, 1, "2 events wait for the disk of this caller alone"), (0, 6, "20 bytes of events wait for the disk of this")])
def test_one_callers_events_leave_room_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, events: int, size: int, why: str
) -> None:
    """Of what is refused nothing is counted: what fits is taken after it."""
    monkeypatch.setattr(event_recorder, "MOST_BYTES", 100)
    recorder = HeldDisk(tmp_path, SetClock(), most=8)

    async def record() -> None:
        kept = [await recorder.begun("first"),
                asyncio.ensure_future(recorder.record(shown("greedy", 1 + events), 20, "greedy"))]
        await asyncio.sleep(0)
        for _ in range(10):
            with pytest.raises(TooMany, match=why):
                await recorder.record(shown("more", 1), size, "greedy")
        kept.append(asyncio.ensure_future(recorder.record(shown("quiet", 2), 20, "quiet")))
        await asyncio.sleep(0)
        recorder.let_go()
        assert [found.new for found in await asyncio.gather(*kept)] == [1, 1 + events, 2]
        assert (await recorder.record(shown("more", 1), size, "greedy")).new == 1

    asyncio.run(record())
    recorder.close()


def test_what_the_disk_refuses_is_told_to_all_who_wait(tmp_path: Path) -> None:
    clock = SetClock()

    def spoiled():
        store = store_at(tmp_path, clock)
        store.connection.execute("DROP TABLE events")
        store.connection.execute(f"CREATE VIEW events AS SELECT * FROM {'x' * 500}")
        return store

    recorder = EventRecorder(spoiled, clock)

    async def record() -> None:
        found = await asyncio.gather(*[recorder.record([shown_event(str(n), START)]) for n in range(3)],
                                     return_exceptions=True)
        assert [type(one) for one in found] == [NotKept] * 3
        assert all(len(str(one)) < 200 for one in found)

    asyncio.run(record())
    recorder.close()


def test_a_record_ends_when_its_events_are_known(tmp_path: Path) -> None:
    clock = SetClock()
    recorder = EventRecorder(lambda: store_at(tmp_path, clock), clock)

    async def record() -> Recorded:
        return await recorder.record([shown_event("a", START)])

    found = asyncio.run(record())
    recorder.close()
    assert found.known == START + 1


def test_the_log_tells_once_that_the_disk_refuses_and_once_that_it_takes_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = SetClock()
    store = store_at(tmp_path, clock)
    recorder = EventRecorder(lambda: store, lambda: clock.now + 1000)
    columns = store.connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'shown_to_user'").fetchone()[0]

    async def refused() -> None:
        with pytest.raises(NotKept):
            await recorder.record([shown_event("a", START)])

    with caplog.at_level(logging.INFO):
        store.connection.execute("DROP INDEX clicks")  # which recording names
        for _ in range(3):
            asyncio.run(refused())
        store.connection.execute(columns.replace("shown_to_user", "clicks").replace("(user)", "(link, at)").replace(
            "identity IS NOT NULL", "kind = 2"))
        asyncio.run(recorder.record([shown_event("b", START)]))
        asyncio.run(recorder.record([shown_event("c", START)]))
    told = [one.getMessage()[:25] for one in caplog.records if one.name == "sluice.serving"]
    assert told == ["events cannot be stored (", "events are stored again"]
    recorder.close()

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from serving.events.event_recorder import MOST_BYTES, EventRecorder, NotKept, TooMany
from serving.events.event_store import Recorded
from tests.serving.recorded_events import START, SetClock, click_event, shown_event, store_at


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


def test_too_many_that_wait_are_refused_and_those_that_fit_are_kept(tmp_path: Path) -> None:
    clock = SetClock()
    recorder = EventRecorder(lambda: store_at(tmp_path, clock), lambda: clock.now + 1000, most=3)

    async def record() -> None:
        with pytest.raises(TooMany, match="at most 3 may"):
            await recorder.record([shown_event(str(n), START) for n in range(4)])
        with pytest.raises(TooMany, match="bytes wait"):
            await recorder.record([shown_event("large", START)], MOST_BYTES + 1)
        assert (await recorder.record([shown_event(str(n), START) for n in range(3)])).new == 3

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

"""One batch at a time, a bounded line, and in it places for everybody."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from serving.batches.batch_turns import BatchTurns
from serving.batches.places import NoPlace

SECONDS = 20.0


def test_one_at_a_time_and_no_more_wait_than_may() -> None:
    async def drive() -> None:
        turns, may_go, at_once = BatchTurns(most=2), threading.Event(), list[int]()

        def work() -> int:
            at_once.append(1)
            may_go.wait(SECONDS)
            return len(at_once)

        first, second = (asyncio.ensure_future(turns.take(who, work)) for who in "ab")
        async with asyncio.timeout(SECONDS):
            while not at_once:
                await asyncio.sleep(0)
        with pytest.raises(NoPlace, match="2 batches"):
            await turns.take("c", work)
        may_go.set()
        assert (await first, await second) == (1, 2)
        assert await turns.take("a", lambda: 7) == 7
        turns.close()

    asyncio.run(drive())


def test_a_batch_is_read_within_what_is_entered_in_its_thread() -> None:
    async def drive() -> list[str]:
        done = list[str]()

        @contextmanager
        def within() -> Iterator[None]:
            assert threading.current_thread() is not threading.main_thread()
            done.append("begin")
            yield
            done.append("end")

        turns = BatchTurns(within=within)
        for name in ("first", "second"):
            await turns.take("a", lambda name=name: done.append(name))  # type: ignore[misc]
        turns.close()
        return done

    assert asyncio.run(drive()) == ["begin", "first", "end", "begin", "second", "end"]


def test_who_goes_away_leaves_its_batch_in_the_line() -> None:
    """What it holds is held until its turn, so it counts until then."""
    async def drive() -> None:
        turns, may_go = BatchTurns(most=2), threading.Event()
        first, left = (asyncio.ensure_future(turns.take(who, lambda: may_go.wait(SECONDS))) for who in "ab")
        await asyncio.sleep(0)  # both have come
        left.cancel()
        with pytest.raises(asyncio.CancelledError):
            await left
        with pytest.raises(NoPlace, match="2 batches"):
            await turns.take("c", lambda: True)
        may_go.set()
        assert await first
        while turns.waiting:
            await asyncio.sleep(0.001)
        turns.close()

    asyncio.run(asyncio.wait_for(drive(), SECONDS))


def test_a_caller_who_sends_without_a_pause_leaves_places_to_others() -> None:
    async def drive() -> None:
        turns, may_go = BatchTurns(most=8), threading.Event()
        loud = [asyncio.ensure_future(turns.take("loud", lambda: may_go.wait(SECONDS))) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(NoPlace, match="2 batches wait to be read of this caller alone"):
            await turns.take("loud", lambda: True)
        other = asyncio.ensure_future(turns.take("quiet", lambda: 7))
        may_go.set()
        assert await other == 7
        assert await asyncio.gather(*loud) == [True, True]
        turns.close()

    asyncio.run(asyncio.wait_for(drive(), SECONDS))

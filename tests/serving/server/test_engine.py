"""Runs beside an event loop: one at a time, an answer in time though a stage hangs, and no work for who has gone."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine
from functools import partial
from typing import Any

import pytest

from serving.admission.admission import Overloaded
from serving.admission.standing_queue import StandingQueue
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.deadline import Deadline, DeadlineExpired
from serving.request.query import MORE_COMES, Fallback, RankAnswer, RankQuery
from serving.request.work_threads import WorkThread
from serving.server.engine import BRIEF_SECONDS, STOPPING_SECONDS, Engine
from serving.stages.funnel import Funnel
from serving.stages.rank import RankStage

RESERVE, WAIT = 0.01, 20.0


@pytest.fixture
def funnel(loaded: LoadedBundle) -> Funnel:
    made = Funnel(loaded)
    for _ in range(3):
        made.rank(RankQuery("u11", 5), Deadline(None))
    return made


def answers(
    funnel: Funnel, deadlines: list[Deadline], most: int = 64, **asked: Any
) -> list[RankAnswer | BaseException]:
    """Of requests that come together."""

    async def ask() -> list[RankAnswer | BaseException]:
        engine = Engine(funnel, most, 10.0, RESERVE)
        calls = [engine.submit(funnel.begin(RankQuery("u11", 5, **asked), one), "") for one in deadlines]
        found = await asyncio.gather(*calls, return_exceptions=True)
        engine.close()
        return found

    return asyncio.run(ask())


def slowed(monkeypatch: pytest.MonkeyPatch, seconds: float) -> list[float]:
    """Ranking takes longer by so much; returns when it began, each time."""
    work, begun = RankStage.run, list[float]()

    def run(self: RankStage, *arguments: Any) -> Any:
        begun.append(time.monotonic())
        time.sleep(seconds)
        return work(self, *arguments)

    monkeypatch.setattr(RankStage, "run", run)
    return begun


def test_all_are_answered_and_none_differs(funnel: Funnel) -> None:
    alone = funnel.rank(RankQuery("u11", 5), Deadline(None))
    for found in answers(funnel, [Deadline(None) for _ in range(20)]):
        assert isinstance(found, RankAnswer)
        assert [item.item for item in found.items] == [item.item for item in alone.items]


def test_a_hanging_stage_costs_its_result_and_not_the_answer(
    funnel: Funnel, monkeypatch: pytest.MonkeyPatch
) -> None:
    slowed(monkeypatch, 1.0)
    begun = time.monotonic()
    [found] = answers_within(funnel, 0.2)
    assert isinstance(found, RankAnswer)
    assert {stage.name: stage.fallback for stage in found.stages}["rank"] is Fallback.PREVIOUS_ORDER
    assert len(found.items) == 5
    assert time.monotonic() - begun < 3.0


def answers_within(funnel: Funnel, seconds: float, **asked: Any) -> list[RankAnswer | BaseException]:
    return answers(funnel, [Deadline(seconds, watched=True)], **asked)


def test_all_or_nothing_is_an_error_when_a_stage_hangs(funnel: Funnel, monkeypatch: pytest.MonkeyPatch) -> None:
    slowed(monkeypatch, 0.5)
    [found] = answers_within(funnel, 0.1, partial_ok=False)
    assert isinstance(found, DeadlineExpired)


def test_a_spare_goes_on_while_a_stage_hangs(funnel: Funnel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two that come together each would hang for two seconds: both are answered before one is done."""
    begun = slowed(monkeypatch, 2.0)

    async def ask() -> tuple[float, list[RankAnswer]]:
        engine, start = Engine(funnel, 64, 10.0, RESERVE), time.monotonic()
        calls = [engine.submit(funnel.begin(RankQuery("u11", 5), Deadline(0.3 * (n + 1), watched=True)), "")
                 for n in range(2)]
        found = await asyncio.gather(*calls)
        spent = time.monotonic() - start
        engine.close()
        return spent, found

    spent, found = asyncio.run(ask())
    assert all(one.degraded for one in found)
    assert spent < 2.0
    assert len(begun) == 2


class HangingRun:
    """Goes on when it is let."""

    partial_ok, least, brief = True, 0.0, False

    def __init__(self, deadline: Deadline, let: threading.Event) -> None:
        self.deadline, self._let = deadline, let

    def simplify(self, level: int) -> None:
        pass

    def complete(self) -> str:
        self._let.wait(3 * WAIT)
        return "complete"

    def salvage(self) -> str:
        return "salvaged"


class CostlyRun(HangingRun):
    """Takes so many seconds, by a clock of its own."""

    def __init__(self, tenant: str, seconds: float, done: list[tuple[str, float]], let: threading.Event) -> None:
        super().__init__(Deadline(None), let)
        self.tenant, self._seconds, self._done = tenant, seconds, done

    def complete(self) -> str:
        self._done.append((self.tenant, self._seconds))
        return super().complete()


def test_tenants_share_the_seconds_of_the_funnel_not_the_number_of_requests(funnel: Funnel) -> None:
    """Until those of the light one are all answered, the other has had no more time than one request above its."""
    let, done = threading.Event(), list[tuple[str, float]]()

    async def ask() -> None:
        engine = Engine(funnel, 1000, 1e9, RESERVE, clock=lambda: sum(seconds for _, seconds in done))
        runs = [CostlyRun("first", 0.0, done, let), *(CostlyRun("heavy", 8.0, done, let) for _ in range(50)),
                *(CostlyRun("light", 0.5, done, let) for _ in range(200))]
        calls = [asyncio.ensure_future(engine.submit(one, one.tenant)) for one in runs]
        while engine.waiting < len(runs) - 1:
            await asyncio.sleep(0)
        let.set()
        await asyncio.wait_for(asyncio.gather(*calls), WAIT)
        engine.close()

    run(ask())
    last = max(place for place, (tenant, _) in enumerate(done) if tenant == "light")
    spent = {"first": 0.0, "heavy": 0.0, "light": 0.0}
    for tenant, seconds in done[:last]:
        spent[tenant] += seconds
        assert spent["heavy"] <= spent["light"] + 8.0
    assert len([tenant for tenant, _ in done[:last] if tenant == "heavy"]) == 13


def test_without_a_thread_a_request_fails_and_the_next_is_answered(
    funnel: Funnel, monkeypatch: pytest.MonkeyPatch
) -> None:
    let = threading.Event()
    let.set()

    async def ask() -> None:
        engine, request = Engine(funnel, 64, 10.0, RESERVE), HangingRun(Deadline(None), let)
        with monkeypatch.context() as patch:
            patch.setattr(WorkThread, "start", no_thread)
            with pytest.raises(RuntimeError, match="can't start new thread"):
                await engine.submit(request, "")
        assert engine.free
        assert await asyncio.wait_for(engine.submit(request, ""), WAIT) == "complete"
        engine.close()

    run(ask())


def test_without_a_spare_the_queue_waits_for_what_hangs(funnel: Funnel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three, one hangs and one is turned away for want of a thread; the third is answered, and the server free."""
    let, start, started = threading.Event(), WorkThread.start, list[WorkThread]()

    def start_one(thread: WorkThread) -> None:
        if started:
            no_thread(thread)
        started.append(thread)
        start(thread)

    monkeypatch.setattr(WorkThread, "start", start_one)

    async def ask() -> None:
        engine = Engine(funnel, 64, 1000.0, RESERVE)
        calls = [asyncio.ensure_future(engine.submit(HangingRun(deadline, let), ""))
                 for deadline in (Deadline(0.1), Deadline(None), Deadline(None))]
        assert await asyncio.wait_for(calls[0], WAIT) == "salvaged"
        with pytest.raises(Overloaded, match="no thread is free"):
            await asyncio.wait_for(calls[1], WAIT)
        let.set()
        assert await asyncio.wait_for(calls[2], WAIT) == "complete"
        engine.close()
        assert engine.free

    run(ask())


def test_it_is_stuck_while_all_that_rank_hang(funnel: Funnel, monkeypatch: pytest.MonkeyPatch) -> None:
    """And says since when; each answer has come in time all the same."""
    monkeypatch.setattr("serving.server.engine.SPARES", 1)
    let, now = threading.Event(), [100.0]

    async def ask() -> None:
        made = Engine(funnel, 64, 1000.0, RESERVE, clock=lambda: now[0])
        for _ in range(2):
            assert made.stuck == 0.0
            assert await asyncio.wait_for(made.submit(HangingRun(Deadline(0.1), let), ""), WAIT) == "salvaged"
        now[0] += 7.0
        assert made.stuck == 7.0
        let.set()
        while made.stuck:
            await asyncio.sleep(0.01)
        assert made.free
        made.close()

    run(ask())


def test_what_hangs_without_a_spare_is_replaced_by_the_first_that_comes_back(
    funnel: Funnel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though it never ends itself: requests are answered as long as one thread is left."""
    monkeypatch.setattr("serving.server.engine.SPARES", 1)
    first, never, free = threading.Event(), threading.Event(), threading.Event()
    free.set()

    async def ask() -> None:
        made = Engine(funnel, 64, 1000.0, RESERVE)
        for let in (first, never):
            assert await asyncio.wait_for(made.submit(HangingRun(Deadline(0.1), let), ""), WAIT) == "salvaged"
        waiting = asyncio.ensure_future(made.submit(HangingRun(Deadline(None), free), ""))
        await asyncio.sleep(0)
        assert made.waiting == 1
        first.set()
        assert await asyncio.wait_for(waiting, WAIT) == "complete"
        async with asyncio.timeout(WAIT):
            while made.stuck:  # until its thread has told that it is done, too
                await asyncio.sleep(0)
        assert await asyncio.wait_for(made.submit(HangingRun(Deadline(None), free), ""), WAIT) == "complete"
        assert await asyncio.wait_for(made.submit(HangingRun(Deadline(0.1), first), ""), WAIT) == "complete"
        never.set()
        made.close()
        assert made.free

    run(ask())


def test_it_is_stuck_where_the_system_gives_no_thread_in_place_of_one_that_hangs(
    funnel: Funnel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until that one comes back: what waits would wait as long, and so would all that come."""
    let, now = threading.Event(), [100.0]

    async def ask() -> None:
        made = Engine(funnel, 64, 1000.0, RESERVE, clock=lambda: now[0])
        calls = [asyncio.ensure_future(made.submit(HangingRun(deadline, let), ""))
                 for deadline in (Deadline(0.1), Deadline(None), Deadline(None))]
        await asyncio.sleep(0)
        assert made.stuck == 0.0
        with monkeypatch.context() as patch:
            patch.setattr(WorkThread, "start", no_thread)
            assert await asyncio.wait_for(calls[0], WAIT) == "salvaged"
            with pytest.raises(Overloaded, match="no thread is free"):
                await asyncio.wait_for(calls[1], WAIT)
        now[0] += 7.0
        assert made.stuck == 7.0
        let.set()
        assert await asyncio.wait_for(calls[2], WAIT) == "complete"
        assert made.stuck == 0.0
        made.close()

    run(ask())


def test_a_request_without_a_thread_whose_caller_goes_takes_nobodys_place(
    funnel: Funnel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is over when it gets no thread: what hangs is still what runs, and the engine free once that ends."""
    let = threading.Event()

    async def ask() -> None:
        engine = Engine(funnel, 64, 1000.0, RESERVE)
        hanging, refused = [asyncio.ensure_future(engine.submit(HangingRun(deadline, let), ""))
                            for deadline in (Deadline(0.1), Deadline(None))]
        await asyncio.sleep(0)

        def goes(thread: WorkThread) -> None:
            refused.cancel()
            no_thread(thread)

        with monkeypatch.context() as patch:
            patch.setattr(WorkThread, "start", goes)
            assert await asyncio.wait_for(hanging, WAIT) == "salvaged"
            with pytest.raises(asyncio.CancelledError):
                await refused
        await asyncio.sleep(2 * STOPPING_SECONDS)
        assert not engine.free
        let.set()
        assert await asyncio.wait_for(engine.submit(HangingRun(Deadline(None), let), ""), WAIT) == "complete"
        engine.close()
        assert engine.free

    run(ask())


def test_what_hangs_is_not_waited_for_beyond_the_grace(funnel: Funnel) -> None:
    let = threading.Event()

    async def ask() -> None:
        made = Engine(funnel, 64, 1000.0, RESERVE)
        assert await asyncio.wait_for(made.submit(HangingRun(Deadline(0.1), let), ""), WAIT) == "salvaged"
        made.close(0.1)
        let.set()
        made.close()

    run(ask())


class BriefRun:
    """Takes so many seconds by `clock`, and says whether the loop's thread has done it."""

    partial_ok, least, brief = False, 0.0, True

    def __init__(self, clock: Clock, seconds: float = 0.0) -> None:
        self.deadline, self._clock, self._seconds = Deadline(None), clock, seconds

    def simplify(self, level: int) -> None:
        pass

    def complete(self) -> bool:
        self.deadline.checkpoint()
        self._clock.now += self._seconds
        self._clock.done += 1
        return threading.current_thread() is threading.main_thread()

    def salvage(self) -> bool:
        raise DeadlineExpired("nothing is there before it is done")


class Clock:
    """Of brief runs, however busy the machine is; counts those that are done."""

    def __init__(self) -> None:
        self.now, self.done = 0.0, 0

    def engine(self, funnel: Funnel) -> Engine:
        return Engine(funnel, 64, 10.0, RESERVE, clock=lambda: self.now)


def test_brief_runs_are_turns_of_the_loop_which_looks_at_its_callers_between_them(funnel: Funnel) -> None:
    turns, waited, clock = 20, list[int](), Clock()

    async def ask() -> None:
        engine = clock.engine(funnel)
        calls = [asyncio.ensure_future(engine.submit(BriefRun(clock), "")) for _ in range(turns)]
        await asyncio.sleep(0)
        while engine.waiting:
            waited.append(engine.waiting)
            await asyncio.sleep(0)
        assert await asyncio.gather(*calls) == [True] * turns
        assert engine.free
        engine.close()

    run(ask())
    assert set(waited) == set(range(1, turns - 1))  # the first is done as it comes, the second is the next turn


def test_brief_runs_that_are_not_go_to_a_thread_until_they_are_again(funnel: Funnel) -> None:
    """Two hold the loop up at most."""
    quick, slow = [0.0] * 100, [2 * BRIEF_SECONDS] * 20
    clock, by_loop = Clock(), list[bool]()

    async def ask() -> None:
        engine = clock.engine(funnel)
        for seconds in (*quick, *slow, *quick):
            by_loop.append(await asyncio.wait_for(engine.submit(BriefRun(clock, seconds), ""), WAIT))
        engine.close()

    run(ask())
    assert all(by_loop[:100])
    assert by_loop[100:120] == [True] * 2 + [False] * 18
    assert by_loop[-1]


def test_brief_runs_and_others_take_turns_in_their_order(funnel: Funnel) -> None:
    """What comes behind a run of a thread is done there, and a run behind brief ones gets its thread."""
    let, ended, clock = threading.Event(), list[int](), Clock()

    async def ask() -> None:
        engine = clock.engine(funnel)
        runs: list[Any] = [BriefRun(clock), BriefRun(clock), HangingRun(Deadline(None), let), BriefRun(clock)]
        calls = [asyncio.ensure_future(engine.submit(one, "")) for one in runs]
        for place, call in enumerate(calls):
            call.add_done_callback(partial(_append, ended, place))
        assert await asyncio.gather(*calls[:2]) == [True, True]
        let.set()
        assert await asyncio.wait_for(calls[2], WAIT) == "complete"
        assert not await asyncio.wait_for(calls[3], WAIT)
        engine.close()
        assert engine.free

    run(ask())
    assert ended == [0, 1, 2, 3]


def _append(into: list[int], place: int, _: object) -> None:
    into.append(place)


def test_a_brief_run_whose_caller_has_gone_is_not_done(funnel: Funnel) -> None:
    clock = Clock()

    async def ask() -> None:
        engine = clock.engine(funnel)
        calls = [asyncio.ensure_future(engine.submit(BriefRun(clock), "")) for _ in range(10)]
        await asyncio.sleep(0)
        for call in calls[:9]:
            call.cancel()
        assert await asyncio.wait_for(calls[9], WAIT)
        assert engine.free
        engine.close()

    run(ask())
    assert clock.done <= 3


def no_thread(thread: WorkThread) -> None:
    raise RuntimeError("can't start new thread")


def test_who_cannot_be_answered_in_time_is_refused_at_entry(funnel: Funnel, monkeypatch: pytest.MonkeyPatch) -> None:
    slowed(monkeypatch, 0.02)
    answers(funnel, [Deadline(None)])  # the engine below starts from what the stages are known to take
    found = answers(funnel, [Deadline(5.0, watched=True) for _ in range(10)], most=4)
    refused = [one for one in found if isinstance(one, Overloaded)]
    assert len(refused) == 5
    assert all("requests wait" in str(one) for one in refused)


@pytest.mark.parametrize("degrades", [True, False])
def test_what_leaves_a_queue_that_stands_is_answered_by_fewer_stages(
    funnel: Funnel, monkeypatch: pytest.MonkeyPatch, degrades: bool
) -> None:
    """Not the first, which has not waited, nor one that takes no partial answer."""
    monkeypatch.setattr(StandingQueue, "taken", lambda self, *_: setattr(self, "stands", True))

    async def ask() -> list[RankAnswer]:
        engine = Engine(funnel, 64, 10.0, RESERVE, degrades=degrades)
        queries = [RankQuery("u11", 5), RankQuery("u11", 5), RankQuery("u11", 5, partial_ok=False)]
        found = await asyncio.gather(*(engine.submit(funnel.begin(one, Deadline(None)), "") for one in queries))
        engine.close()
        return found

    first, second, whole = asyncio.run(ask())
    assert (first.degraded, second.degraded, whole.degraded) == (False, degrades, False)
    if degrades:
        ranked = next(stage for stage in second.stages if stage.name == "rank")
        assert (ranked.fallback, ranked.cause) == (Fallback.PREVIOUS_ORDER, MORE_COMES)


def test_a_caller_who_goes_is_not_worked_for(funnel: Funnel, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = slowed(monkeypatch, 0.05)

    async def ask() -> None:
        engine = Engine(funnel, 64, 10.0, RESERVE)
        calls = [asyncio.ensure_future(engine.submit(funnel.begin(RankQuery("u11", 5), Deadline(9.0)), ""))
                 for _ in range(10)]
        await asyncio.sleep(0.02)
        for call in calls[:9]:
            call.cancel()
        assert (await calls[9]).items
        assert engine.waiting == 0
        engine.close()

    run(ask())
    assert len(begun) <= 2


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def test_while_a_request_is_computed_there_is_no_lull(funnel: Funnel, monkeypatch: pytest.MonkeyPatch) -> None:
    work, during = RankStage.run, list[bool]()

    async def ask() -> tuple[bool, bool]:
        engine = Engine(funnel, 64, 10.0, RESERVE)

        def run(self: RankStage, *arguments: Any) -> Any:
            during.append(engine.lulls.wait(0.01))
            return work(self, *arguments)

        monkeypatch.setattr(RankStage, "run", run)
        before = engine.lulls.wait(WAIT)
        await asyncio.gather(*(engine.submit(funnel.begin(RankQuery("u11", 5), Deadline(None)), "") for _ in range(3)))
        after = engine.lulls.wait(WAIT)
        engine.close()
        return before, after

    assert asyncio.run(ask()) == (True, True)
    assert during == [False] * 3

"""A real HAProxy with what it is told, before a server that answers when it is let."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest

from serving.balancer.balancer import program
from serving.balancer.configuration import LONGEST, TIMES, BalancerPlan, configuration
from tests.serving.balancer.running_balancer import UNKNOWN, Balanced, balanced, needs_haproxy
from tests.serving.silent_caller import SilentCaller

pytestmark = needs_haproxy
PACE = 0.01


def drive(test: Callable[[Balanced], Coroutine[None, None, None]], pace: float = PACE, gated: bool = False) -> None:
    async def run() -> None:
        async with balanced(pace, gated) as before:
            await test(before)

    asyncio.run(run())


@pytest.mark.parametrize("plan", [
    BalancerPlan("127.0.0.1", 50051, 50052, 1), BalancerPlan("::", 50051, 50052, 2, gated=True),
    BalancerPlan("localhost", 50051, 50052, 128)])
def test_haproxy_takes_every_plan_without_a_warning(tmp_path: Path, plan: BalancerPlan) -> None:
    (tmp_path / TIMES).write_text("pace 2000\ndeadline 100000\n")
    (tmp_path / "told").write_text(configuration(plan))
    done = subprocess.run([program(), "-c", "-f", "told"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr


@pytest.mark.parametrize(("seconds", "let_in"), [(0.1, 6), (0.06, 4), (30.0, 21), (90.0, 21), (7200.0, 21), (None, 21)])
def test_who_would_wait_for_more_than_half_its_time_or_longest_is_refused_at_once(
    seconds: float | None, let_in: int
) -> None:
    """At 10 ms a call: with 0.1 s to spend the seventh has 60 ms ahead of it."""
    async def test(before: Balanced) -> None:
        begun = await before.begin(let_in, 7200.0)
        assert before.held == let_in
        assert not any(one.done() for one in begun)
        assert await before.rank(seconds) == "RESOURCE_EXHAUSTED"
        assert "send it again later" in before.said
        assert before.held == let_in
        before.release.set()
        assert set(await asyncio.gather(*begun)) == {"OK"}
        assert await before.rank(seconds) == "OK"

    assert round(min(LONGEST, (seconds or 1.0) / 2) / PACE) + 1 == let_in
    drive(test)


def test_a_call_finds_one_place_more_where_less_is_ahead_of_it() -> None:
    async def test(before: Balanced) -> None:
        begun = await before.begin(5, 7200.0)
        begun += await before.begin(1, 0.1)
        assert before.held == 6
        assert await begun[-1] == "DEADLINE_EXCEEDED"  # held, not refused

    drive(test)


def test_a_flood_of_one_tenant_leaves_others_their_share() -> None:
    """Twice as much at most is ahead of anybody then."""
    async def test(before: Balanced) -> None:
        flood = await before.begin(6, 7200.0, "flood")
        assert await before.rank(0.1, "flood") == "RESOURCE_EXHAUSTED"
        quiet = await before.begin(2, 5.0, "quiet")
        assert before.held == 8
        assert await before.rank(0.1, "flood") == "RESOURCE_EXHAUSTED"
        more = await before.begin(32, 7200.0, "flood")
        assert before.held == 21
        assert {await one for one in more if one.done()} == {"RESOURCE_EXHAUSTED"}
        begun = await before.begin(1, 7200.0, "third")
        assert not begun[0].done()
        before.release.set()
        assert {await one for one in (*flood, *quiet, *begun)} == {"OK"}

    drive(test)


def test_behind_an_access_file_tenants_are_their_tokens() -> None:
    """Whatever they say of themselves."""
    async def test(before: Balanced) -> None:
        flood = [asyncio.create_task(before.rank(7200.0, f"name {number}", "one")) for number in range(6)]
        while before.held < len(flood):
            await asyncio.sleep(0.005)
        assert await before.rank(0.1, "another name", "one") == "RESOURCE_EXHAUSTED"
        other = asyncio.create_task(before.rank(0.1, "name 0", "two"))
        assert await other == "DEADLINE_EXCEEDED"  # held

    drive(test, gated=True)


def test_tokens_that_nobody_knows_do_not_count_as_tenants() -> None:
    async def test(before: Balanced) -> None:
        for number in range(20):
            assert await before.rank(5.0, token=f"{UNKNOWN} {number}") == "UNAUTHENTICATED"
        flood = [asyncio.create_task(before.rank(7200.0, token="one")) for _ in range(6)]
        while before.held < len(flood):
            await asyncio.sleep(0.005)
        assert await before.rank(0.1, token="one") == "RESOURCE_EXHAUSTED"
        assert await before.rank(0.1, token="two") == "DEADLINE_EXCEEDED"  # held

    drive(test, gated=True)


def test_other_services_are_not_refused_and_learn_who_calls() -> None:
    async def test(before: Balanced) -> None:
        await before.begin(25, 7200.0)
        assert await before.record() == "127.0.0.1"
        assert await before.record(("x-forwarded-for", "10.0.0.9")) == "127.0.0.1"

    drive(test)


def test_who_takes_no_answers_or_sends_no_request_has_nobody_refused() -> None:
    async def test(before: Balanced) -> None:
        before.release.set()
        with SilentCaller(before.port) as caller:
            for asked in (lambda: caller.ask("u1", 1), caller.begin):
                for _ in range(50):
                    asked()
                    await asyncio.sleep(0.005)
            assert before.held > 20
            assert await before.rank(0.1) == "OK"

    drive(test)


def test_what_is_too_large_to_be_broken_off_is_left_to_the_workers() -> None:
    """Its caller would hear CANCELLED."""
    async def test(before: Balanced) -> None:
        await before.begin(25, 7200.0)
        assert await before.rank(0.2, size=50_000) == "RESOURCE_EXHAUSTED"
        assert await before.rank(0.2, size=200_000) == "DEADLINE_EXCEEDED"  # held

    drive(test)

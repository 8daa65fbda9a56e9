from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from models.distributed.long_turns import TURN, ask_for


def turn() -> float | None:
    """Of this thread, in seconds; None where Linux does not say."""
    said = Path(f"/proc/self/task/{threading.get_native_id()}/sched")
    lines = said.read_text(encoding="utf-8").splitlines() if said.exists() else []
    return next((int(line.split()[-1]) / 1e9 for line in lines if line.startswith("se.slice")), None)


def of_a_thread(action: Callable[[], Any]) -> Any:
    """What `action` returns in a thread of its own, whose policy and turns nobody else has."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(action).result()


def test_turns_are_long_until_the_usual_are_asked_for() -> None:
    def run() -> list[float | None]:
        found = [turn()]
        for seconds in (TURN, 0):
            ask_for(seconds)
            found.append(turn())
        return found

    usual, long, back = of_a_thread(run)
    if usual is None or long == usual:
        pytest.skip("this Linux gives every thread the same turns")
    assert (long, back) == (TURN, usual)


def test_policy_and_priority_stay() -> None:
    def run() -> tuple[int, int]:
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
        os.setpriority(os.PRIO_PROCESS, 0, 3)
        ask_for(TURN)
        return os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0)

    assert of_a_thread(run) == (os.SCHED_BATCH, 3)


def test_a_policy_of_its_own_is_left_alone() -> None:
    def run() -> tuple[bool, int]:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        return ask_for(TURN), os.sched_getscheduler(0)

    assert of_a_thread(run) == (False, os.SCHED_IDLE)

from __future__ import annotations

import os
import threading

from models.distributed.yielding_threads import yielding


def policy_of_a_thread() -> int:
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(os.sched_getscheduler(0)))
    thread.start()
    thread.join()
    return found[0]


def test_threads_started_inside_do_not_preempt() -> None:
    with yielding():
        assert policy_of_a_thread() == os.SCHED_BATCH
    assert os.sched_getscheduler(0) == os.SCHED_OTHER
    assert policy_of_a_thread() == os.SCHED_OTHER


def test_a_process_with_a_policy_of_its_own_keeps_it() -> None:
    """Who may take a policy may not always give it back: tried in a thread that ends."""
    found: list[int] = []

    def run() -> None:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        with yielding():
            found.append(os.sched_getscheduler(0))
        found.append(os.sched_getscheduler(0))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [os.SCHED_IDLE, os.SCHED_IDLE]

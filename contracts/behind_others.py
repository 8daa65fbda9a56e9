"""Work of a process that is coming up, beside those that serve already.

Where the system lets a thread come back from it, the work has what others leave idle and nothing else (Linux's
SCHED_IDLE): a request that wakes up takes its core at once, where it waits 3 to 9 ms for one of nice 10. Whoever serves
without a pause would starve it, so that after IDLE_SECONDS it goes on with a share, at nice 10, as elsewhere from the
beginning.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from typing import TypeVar

LOADING_PRIORITY = 10  # Linux's nice value, while others serve
IDLE_SECONDS = 10.0

Made = TypeVar("Made")


def step_back() -> None:
    """Gives the thread that calls a low priority, for good: raising it needs a right that processes seldom have."""
    own = threading.get_native_id()
    with suppress(OSError):  # where a thread has no priority of its own
        os.setpriority(os.PRIO_PROCESS, own, max(LOADING_PRIORITY, os.getpriority(os.PRIO_PROCESS, own)))


def behind_others(work: Callable[[], Made]) -> Made:
    """What the work returns, or raises. It has a thread of low priority, which takes no time from processes that serve
    meanwhile; this one's own requests are not its."""
    with ThreadPoolExecutor(1, thread_name_prefix="loading", initializer=step_back) as thread:
        if not _comes_back():
            return thread.submit(work).result()
        thread.submit(_idle).result()
        done = thread.submit(work)
        wait([done], IDLE_SECONDS)
        _share()
        return done.result()


def _idle() -> None:
    """From now on this thread has what others leave. Raises OSError."""
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def _share() -> None:
    """This process's threads have a share again, those too that idle work has begun: they are as it was. Raises
    PermissionError where this process may not give them one."""
    for thread in map(int, os.listdir("/proc/self/task")):
        with suppress(ProcessLookupError):
            if os.sched_getscheduler(thread) == os.SCHED_IDLE:
                os.sched_setscheduler(thread, os.SCHED_OTHER, os.sched_param(0))


@functools.cache
def _comes_back() -> bool:
    """Whether threads may, tried with one that ends: it takes CAP_SYS_NICE, or a limit on nice values that allows
    LOADING_PRIORITY (RLIMIT_NICE)."""
    with ThreadPoolExecutor(1, initializer=step_back) as thread:
        try:
            thread.submit(_idle).result()
            _share()
        except (AttributeError, OSError):
            return False
    return True

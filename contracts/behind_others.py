"""Work beside those that serve: of a process that is coming up, and of fetching what it is to load.

It has a share of the cores, at nice 10; a request that wakes up may wait 3 to 9 ms for its core then. A process that
says so (`leave_cores`), and may, takes for a while what others leave idle and nothing else (Linux's SCHED_IDLE), where
a request has its core at once. Who serves without a pause would starve it for good: hence for a while.

Long work gives way besides (`give_way`). Where the cores are busy, with whatever class, Linux no longer looks for a
free one when it wakes a thread (SIS_UTIL, which counts idle work as well), so that a request waits behind another one
while the core beside does nothing but idle work; and what that touches takes the place of what requests need in the
caches.
"""

from __future__ import annotations

import functools
import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from typing import TypeVar

LOADING_PRIORITY = 10  # Linux's nice value, while others serve
RESTS = 3.0  # times as long as a piece of work has taken
SHORTEST_PIECE, LONGEST_PIECE = 0.001, 0.05  # seconds of a core
LONGEST_IDLE = 20.0  # seconds: where cores are full, what takes what is idle stands still

Made = TypeVar("Made")
_idle_until = -math.inf  # by the monotonic clock
_own = threading.local()  # `worked`: this thread's processor time when it last gave way; `until` when it does so


def leave_cores(seconds: float) -> None:
    """For so long from now on, `behind_others` of this process takes nothing but what others leave, where threads may
    come back from that."""
    global _idle_until
    _idle_until = time.monotonic() + seconds


def step_back() -> None:
    """Gives the thread that calls a low priority, for good: raising it needs a right that processes seldom have."""
    own = threading.get_native_id()
    with suppress(OSError):  # where a thread has no priority of its own
        os.setpriority(os.PRIO_PROCESS, own, max(LOADING_PRIORITY, os.getpriority(os.PRIO_PROCESS, own)))


def behind_others(work: Callable[[], Made]) -> Made:
    """What the work returns, or raises. It has a thread of low priority, which takes no time from processes that serve
    meanwhile; this one's own requests are not its."""
    with ThreadPoolExecutor(1, thread_name_prefix="loading", initializer=step_back) as thread:
        left = _idle_until - time.monotonic()
        thread.submit(_give_way_until, _idle_until)
        if left <= 0 or not _comes_back():
            return thread.submit(work).result()
        thread.submit(_idle).result()
        done = thread.submit(work)
        try:
            wait([done], left)
        finally:  # who is told to stop meanwhile waits for the work's end as well
            _share()
        return done.result()


@contextmanager
def what_others_leave(seconds: float) -> Iterator[None]:
    """This thread takes nothing else, for LONGEST_IDLE at most, where it may come back from that and there is a thread
    to be had that sees to it; in any case it gives way for so many seconds."""
    _give_way_until(time.monotonic() + seconds)
    over = threading.Timer(min(seconds, LONGEST_IDLE), _share)
    over.daemon = True
    with suppress(OSError, RuntimeError):
        if _comes_back():
            over.start()  # before: a thread is begun with what the one that begins it has
            _idle()
    try:
        yield
    finally:
        _give_way_until(-math.inf)
        over.cancel()
        _share()


def give_way() -> None:
    """Between two pieces of long work, which rests where it is to take what others leave: it has a core for a quarter
    of the time."""
    spent = time.thread_time()
    worked = spent - getattr(_own, "worked", 0.0)
    if worked < SHORTEST_PIECE:
        return
    _own.worked = spent
    if time.monotonic() < getattr(_own, "until", -math.inf):
        time.sleep(RESTS * min(worked, LONGEST_PIECE))


def _give_way_until(moment: float) -> None:
    _own.until = moment


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

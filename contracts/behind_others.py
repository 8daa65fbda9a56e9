"""Work of a process that is coming up, beside those that serve already."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

LOADING_PRIORITY = 10  # Linux's nice value, while others serve

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
        return thread.submit(work).result()

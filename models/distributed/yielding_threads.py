"""Threads that do not preempt: those that are started inside `yielding` wait until whoever computes has had its turn.

Several processes a core, or one and its helpers, exchange by gloo two to fifteen times sooner so: the thread that
watches its connections, woken by data, would preempt the thread that holds the lock of that connection, and ask for
the lock again and again until its time is up.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator


@contextlib.contextmanager
def yielding() -> Iterator[None]:
    """New threads inherit SCHED_BATCH (sched(7)); this one has it meanwhile. Nothing happens where there is no such
    policy, where this process has been given another, or may not choose."""
    if not hasattr(os, "SCHED_BATCH") or os.sched_getscheduler(0) != os.SCHED_OTHER or not _set(os.SCHED_BATCH):
        yield
        return
    try:
        yield
    finally:
        _set(os.SCHED_OTHER)


def _set(policy: int) -> bool:
    """Of this thread; False where that is not allowed."""
    try:
        os.sched_setscheduler(0, policy, os.sched_param(0))
    except OSError:
        return False
    return True

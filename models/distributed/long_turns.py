"""Long turns for threads that compute: one runs until it waits for something, and not until the next has waited enough.

Of two processes on a core Linux gives each a few milliseconds at a time, and each finds the core's caches full of what
the other computes: a tenth of the processor time of training in four processes on two cores. Since 6.12 (EEVDF) a
thread may ask for longer turns; it gets no more time in all, and others that ask for short ones come before it.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct

TURN = 0.1  # seconds, the most that Linux gives
SET_ATTRIBUTES = {"x86_64": 314, "aarch64": 274}  # system call sched_setattr by machine
ATTRIBUTES = struct.Struct("IIQiIQQQII")  # size, policy, flags, nice, priority, runtime, and what is not set here


def ask_for(seconds: float) -> bool:
    """Turns of this thread and of those it starts, 0 for the usual; whether they were asked for. Nothing changes where
    Linux, or the policy that this process was given, knows no such turns."""
    call = SET_ATTRIBUTES.get(platform.machine()) if platform.system() == "Linux" else None
    if call is None or os.sched_getscheduler(0) not in (os.SCHED_OTHER, os.SCHED_BATCH):
        return False
    policy, nice = os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0)
    asked = ATTRIBUTES.pack(ATTRIBUTES.size, policy, 0, nice, 0, round(1e9 * seconds), 0, 0, 0, 0)
    return int(ctypes.CDLL(None).syscall(call, 0, asked, 0)) == 0

"""A program as a child that ends when its parent has: also one that was killed and could ask for nothing.

    python -m serving.balancer.ends_with_parent PARENT SIGNAL PROGRAM WORDS...        PARENT is a process id

Linux sends it the signal, by number (prctl(2), PR_SET_PDEATHSIG), once the thread that has started it ends, whatever it
runs by then.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def end_with(parent: int, told: int = signal.SIGTERM) -> bool:
    """Asks for the signal once the parent has ended. False where it has already."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, told)
    return os.getppid() == parent


if __name__ == "__main__" and end_with(int(sys.argv[1]), int(sys.argv[2])):
    os.execvp(sys.argv[3], sys.argv[3:])

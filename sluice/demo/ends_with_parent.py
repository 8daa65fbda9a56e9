"""`sluice` as a child that is asked to end when its parent has: also one that was killed and could ask for nothing.

    python -m sluice.demo.ends_with_parent PARENT WORDS...        PARENT is a process id, WORDS are those of `sluice`

Linux tells it (prctl(2), PR_SET_PDEATHSIG), once the thread that has started it ends.
"""

from __future__ import annotations

import ctypes
import os
import runpy
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    parent, *words = sys.argv[1:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != int(parent):  # it has ended before it could be told
        return
    sys.argv[1:] = words
    runpy.run_module("sluice.cli", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()

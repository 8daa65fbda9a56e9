"""Threads by their names in `top -H` and /proc, where Linux shows 15 bytes of them."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path

OWN = Path("/proc/thread-self/comm")


def name_thread() -> None:
    """The calling thread is named there as Python names it; nothing happens on another system."""
    with suppress(OSError):
        OWN.write_bytes(threading.current_thread().name.encode())

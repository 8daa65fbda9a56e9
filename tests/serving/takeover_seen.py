"""What tests of a takeover under load ask, and wait for."""

from __future__ import annotations

import time
from collections.abc import Callable

USERS = [f"u{number:02d}" for number in range(60)]
GONE = "is left by its callers and gone"


def until(condition: Callable[[], bool], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)

"""The time one request has left. Stages ask it between chunks of work; nothing else can stop a running stage."""

from __future__ import annotations

import time

from contracts.errors import SluiceError


class DeadlineExpired(SluiceError):
    """Nothing could be answered in time; a request with candidates in hand is answered from what it has instead."""


class Deadline:
    """`seconds` from now, by the monotonic clock; None never expires."""

    def __init__(self, seconds: float | None) -> None:
        self._end = None if seconds is None else time.monotonic() + seconds

    def remaining(self) -> float:
        return float("inf") if self._end is None else self._end - time.monotonic()

    @property
    def expired(self) -> bool:
        return self.remaining() <= 0.0

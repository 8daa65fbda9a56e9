"""A line of the log a call, once it has ended: SLUICE_LOG_CALLS is `failed` (with JSON lines the default), `all` or
`none`. At most MOST a second of a process; how many were left out is said by the next. No token, no user and nothing
of what was asked is in them.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable

from contracts import logs
from contracts.errors import ConfigError
from contracts.logs import fields

CALLS = "SLUICE_LOG_CALLS"
KINDS = ("failed", "all", "none")
MOST = 100
log = logging.getLogger("sluice.calls")


class CallLog:
    """Of one process; `everything`, or what failed alone."""

    def __init__(self, everything: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._everything, self._clock = everything, clock
        self._second, self._told, self._left_out = -1, 0, 0

    def ended(self, method: str, status: str, seconds: float, request_id: str, trace_id: str) -> None:
        """`status` is gRPC's; over HTTP the number, of which 200 is good."""
        good = status in ("OK", "200")
        if (good and not self._everything) or self._full():
            return
        left_out, self._left_out = self._left_out, 0
        log.log(logging.INFO if good else logging.WARNING, "%s %s", method, status, extra=fields(
            method=method, status=status, seconds=round(seconds, 6), request_id=request_id, trace_id=trace_id,
            left_out=left_out or ""))

    def _full(self) -> bool:
        second = int(self._clock())
        if second != self._second:
            self._second, self._told = second, 0
        self._told += 1
        self._left_out += self._told > MOST
        return self._told > MOST


def call_log_of_process() -> CallLog | None:
    """As the environment says; None for no lines. Raises ConfigError where it says what cannot be."""
    kind = os.environ.get(CALLS) or ("failed" if logs.are_json() else "none")
    if kind not in KINDS:
        raise ConfigError(f"{CALLS} is {kind!r}; it may be {', '.join(KINDS)}")
    return None if kind == "none" else CallLog(kind == "all")

"""What the console shows of past days: the output of a command that reads the records, kept for a while.

The command may wait long for a registry, and ends with this process, however that ends.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from contracts.shown import short, without_passwords

KEPT_SECONDS, MOST_SECONDS = 30.0, 120.0
NONE: dict[str, list[object]] = {"sections": []}


class Records:
    """`command` prints {"sections": [...]} or {"error": why}; without one there is nothing to show."""

    def __init__(self, command: Sequence[str] = ()) -> None:
        self._command, self._lock = tuple(command), threading.Lock()
        self._known: object = NONE
        self._until = 0.0

    async def show(self, request: Request) -> Response:
        """GET; made anew at most twice a minute, however many ask."""
        return JSONResponse(await run_in_threadpool(self.read))

    def read(self) -> object:
        """Never raises, and waits for nobody: while they are made, others are shown those of before."""
        if not self._lock.acquire(blocking=False):
            return self._known
        try:
            if self._command and time.monotonic() > self._until:
                self._known = self._made()
                self._until = time.monotonic() + KEPT_SECONDS
            return self._known
        finally:
            self._lock.release()

    def _made(self) -> object:
        try:
            done = subprocess.run((*_with_us(), *self._command), capture_output=True, text=True, timeout=MOST_SECONDS)
            return json.loads(done.stdout.strip().splitlines()[-1]) if done.stdout.strip() else {
                "error": _told((done.stderr.strip().splitlines() or ["it printed nothing"])[-1])}
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            return {"error": _told(str(error))}


def _with_us() -> tuple[str, ...]:
    """What a command is run by so that it ends with the thread that waits for it."""
    return (sys.executable, "-m", "serving.balancer.ends_with_parent", str(os.getpid()), str(int(signal.SIGTERM)))


def _told(why: str) -> str:
    return short(without_passwords(why), 300)

"""Keeps the port served with the bundle that a source names, and changes bundles without a failed request.

    poll ▶ fetch ▶ a fresh process loads, checks parity, warms up ▶ it takes over new connections ▶ the old one is left
    by its callers, whose connections are asked to come again, and ends

Loading inside the serving process would stall it. A bundle that cannot be fetched, loaded or verified is refused and
the old one keeps serving. One change at a time: two processes at most, and one again after it. A process that dies is
replaced by a new one with the same bundle.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from contracts.errors import BundleError
from serving.server.port_takeover import DRAIN_GRACE_SECONDS, reserved
from serving.workers.worker_messages import WorkerSettings
from serving.workers.worker_process import WorkerProcess

STOP_SECONDS = 15.0
RETRY_SECONDS = 300.0
TICK_SECONDS = 0.1
log = logging.getLogger("sluice.serving")


class BundleSource(Protocol):
    """`latest` names the bundle that should be served; `fetch` returns its folder, or raises BundleError."""

    def latest(self) -> str | None: ...
    def fetch(self, version: str) -> Path: ...


@dataclass(frozen=True)
class SupervisorSettings:
    """`connection_seconds`: how long a caller's connection lives before it is asked to come again; a change of bundles
    takes about so long.
    """

    host: str = "127.0.0.1"
    port: int = 0
    answers: Path | None = None
    poll_seconds: float = 5.0
    connection_seconds: float = 30.0

    @property
    def drain_seconds(self) -> float:
        """How long a worker may take to be left by its callers before it is stopped."""
        return 1.1 * self.connection_seconds + DRAIN_GRACE_SECONDS + STOP_SECONDS


class Supervisor:
    """Serves what `source` names until it is told to stop; one port, one worker, two while bundles change."""

    def __init__(self, source: BundleSource, settings: SupervisorSettings) -> None:
        self._source, self._settings = source, settings
        self._stop = threading.Event()
        self._current: WorkerProcess | None = None
        self._draining: WorkerProcess | None = None
        self._refused, self._retry_at = "", 0.0

    def run(self, on_ready: Callable[[str, int], None]) -> None:
        """Until SIGTERM or SIGINT. Raises SluiceError when the port is taken, or the first bundle cannot be served."""
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, lambda *_: self._stop.set())
        with reserved(self._settings.host, self._settings.port) as port, contextlib.closing(self):
            version = self._source.latest()
            if version is None:
                raise BundleError("the registry names no such bundle; register and promote one first")
            self._current = self._started(self._source.fetch(version), version, port)
            if self._current is None:
                return
            on_ready(version, port)
            self._watch(port)

    def close(self) -> None:
        """Stops every worker."""
        for worker in (self._draining, self._current):
            if worker is not None:
                worker.stop(STOP_SECONDS)

    def _watch(self, port: int) -> None:
        next_poll = 0.0
        while not self._stop.wait(TICK_SECONDS):
            self._revive(port)
            self._reap()
            if time.monotonic() >= next_poll:
                self._poll(port)
                next_poll = time.monotonic() + self._settings.poll_seconds

    def _revive(self, port: int) -> None:
        old = self._current
        if old is None or old.alive:
            return
        log.error("the process that serves %s has died; another one is started", old.version)
        try:
            self._current = self._started(old.folder, old.version, port)
        except BundleError as error:
            log.error("%s cannot be served again: %s", old.version, error)
            self._stop.wait(self._settings.poll_seconds)

    def _reap(self) -> None:
        """Forgets a process that has been drained; ends one that callers do not leave."""
        old = self._draining
        if old is None:
            return
        if old.alive and time.monotonic() < old.drain_began + self._settings.drain_seconds:
            return
        if old.alive:
            log.warning("%s still has callers after %.0f s and is stopped", old.version, self._settings.drain_seconds)
        old.stop(STOP_SECONDS)
        self._draining = None
        if self._current is None or old.folder != self._current.folder:
            shutil.rmtree(old.folder, ignore_errors=True)
        log.info("%s is left by its callers and gone", old.version)

    def _poll(self, port: int) -> None:
        try:
            version = self._source.latest()
        except Exception as error:  # a registry that is down for a while stops no server
            log.warning("the registry cannot be asked: %s", str(error).splitlines()[0])
            return
        if version is None or self._current is None or self._draining is not None or version == self._current.version:
            return
        if version == self._refused and time.monotonic() < self._retry_at:
            return
        try:
            self._change(version, port)
        except BundleError as error:
            log.error("refused %s, %s is served on: %s", version, self._current.version, error)
            self._refused, self._retry_at = version, time.monotonic() + RETRY_SECONDS

    def _change(self, version: str, port: int) -> None:
        old, folder = self._current, self._source.fetch(version)
        log.info("loading %s beside %s", version, old.version if old else "none")
        try:
            fresh = self._started(folder, version, port)
        except BundleError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        if fresh is None or old is None:
            return
        self._current, self._draining = fresh, old
        if old.alive:
            old.drain()

    def _started(self, folder: Path, version: str, port: int) -> WorkerProcess | None:
        """A process that listens, or None when the supervisor was stopped meanwhile. Raises BundleError."""
        settings = self._settings
        worker = WorkerProcess(version, WorkerSettings(
            folder=folder, host=settings.host, port=port, connection_seconds=settings.connection_seconds,
            answers=settings.answers,
        ))
        if worker.wait_ready(self._stop):
            return worker
        worker.stop(STOP_SECONDS)
        return None

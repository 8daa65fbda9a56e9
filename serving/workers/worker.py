"""One server process under a supervisor: its argument is a `WorkerSettings`, its standard input `WorkerOrder`s and its
standard output `WorkerReport`s, one a line. It begins as a fork (serving/workers/worker_forks.py), or in
serving/workers/worker_start.py.

    {"loaded": true}         parity holds, it is warm and waits for the order to listen
    {"ready": VERSION}       it listens
    {"refused": SENTENCE}    the bundle cannot be served; the process ends
    {"pong": N, ...}         its event loop turns, and what ranks is not stuck

What else this process prints goes to standard error. It stops when its standard input closes, so that no worker
outlives its supervisor.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from importlib import import_module

from pydantic import ValidationError

from contracts.behind_others import behind_others, leave_cores
from contracts.logs import log_to_stderr
from contracts.thread_name import name_thread
from serving.workers.worker_messages import WorkerOrder, WorkerReport, WorkerSettings

STUCK_SECONDS = 1.0  # longer than any run that goes on beside hanging ones
COUNTING = 0.01  # of a core, for counting connections: some 30 microseconds each
IDLE_SECONDS = 20.0  # beside others that serve; loading a million items takes about one of a core, four with its rests
COUNT_SECONDS = 5.0  # between two counts at most, however many there are
log = logging.getLogger("sluice.serving")


class Reports:
    """The supervisor's end of standard output; everybody else's `print` is led to standard error."""

    def __init__(self) -> None:
        sys.stdout.flush()
        self._out = os.fdopen(os.dup(1), "w")
        self._lock = threading.Lock()
        os.dup2(2, 1)

    def send(self, message: WorkerReport) -> None:
        with self._lock:
            print(message.line, file=self._out, flush=True)


class Orders:
    """Follows the supervisor's orders in a thread, and asks the process to stop once no more can come."""

    def __init__(self, reports: Reports, port: int) -> None:
        self._reports, self._port = reports, port
        self._listen = threading.Event()
        self._connections, self._count_next = 0, 0.0
        self.loop: asyncio.AbstractEventLoop | None = None
        self.stuck: Callable[[], float] = float
        self.service: Callable[[], float] = float

    def start(self) -> None:
        threading.Thread(target=self._follow, args=(_lines(),), name="supervisor", daemon=True).start()

    def wait_to_listen(self) -> None:
        """Says that it has loaded, and waits for the order."""
        self._reports.send(WorkerReport(loaded=True))
        self._listen.wait()

    def _follow(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            try:
                self._obey(WorkerOrder.model_validate_json(line))
            except (ValidationError, OSError) as error:
                log.error("an order could not be followed: %s", error)
        os.kill(os.getpid(), signal.SIGTERM)
        self._listen.set()

    def _obey(self, order: WorkerOrder) -> None:
        from serving.server.port_takeover import select

        if order.listen:
            self._listen.set()
        if order.select is not None:
            select(self._port, order.select, order.first)
        if order.ping and self.loop is not None:
            with contextlib.suppress(RuntimeError):  # a closed loop: this process is about to end
                self.loop.call_soon_threadsafe(self._pong, order.ping, self._counted())

    def _pong(self, number: int, connections: int) -> None:
        if self.stuck() < STUCK_SECONDS:  # one in which every thread hangs answers nobody, and is as good as dead
            self._reports.send(WorkerReport(pong=number, connections=connections, service=self.service()))

    def _counted(self) -> int:
        """Connections: of now where they are few, else of some seconds ago."""
        from serving.server.port_takeover import connections

        if time.monotonic() >= self._count_next:
            begun = time.thread_time()
            self._connections = connections(self._port)
            self._count_next = time.monotonic() + min((time.thread_time() - begun) / COUNTING, COUNT_SECONDS)
        return self._connections


def _lines() -> Iterable[bytes]:
    """Of standard input, read without `sys.stdin`: its lock would be held when the process ends."""
    rest = b""
    while piece := os.read(0, 65_536):
        *whole, rest = (rest + piece).split(b"\n")
        yield from whole


def main(argument: str) -> int:
    """Serves until it is stopped. Returns the exit code."""
    told = WorkerSettings.model_validate_json(argument)
    os.environ["OMP_NUM_THREADS"] = "1"  # read when numpy, torch and FAISS load, so set before them
    log_to_stderr()
    threading.current_thread().name = f"worker {told.folder.name[-8:]}"
    name_thread()
    reports = Reports()
    orders = Orders(reports, told.port)
    orders.start()
    if told.beside:
        leave_cores(IDLE_SECONDS)
    behind_others(lambda: import_module("serving.server.server"))  # two seconds of a core, which others need
    from contracts.errors import SluiceError
    from serving.server.server import ServerSettings, Signs, run

    def ready(version: str, _: int, signs: Signs) -> None:
        orders.loop, orders.stuck, orders.service = asyncio.get_running_loop(), signs.stuck, signs.service
        reports.send(WorkerReport(ready=version, service=signs.service(), deadline=signs.deadline))

    settings = ServerSettings(told.host, told.port, told.answers, told.connection_seconds, told.doors,
                              told.fresh, told.user_store, told.event_stream, told.balanced, compared=told.compared)
    try:
        run(told.folder, settings, ready, orders.wait_to_listen)
    except SluiceError as error:
        reports.send(WorkerReport(refused=str(error)))
        return error.exit_code
    return 0

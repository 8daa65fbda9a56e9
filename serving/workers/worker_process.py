"""A worker as its supervisor sees it: started, asked, told, stopped, by its process id. Nothing here waits for it but
`stop` and `kill`."""

from __future__ import annotations

import contextlib
import math
import os
import subprocess
import sys
import threading
import time

from pydantic import ValidationError

from serving.workers.worker_forks import ForkedWorker, WorkerForks
from serving.workers.worker_messages import WorkerOrder, WorkerReport, WorkerSettings


class WorkerProcess:
    """Loading begins at once, in a fork where `forks` has one, else in a process of its own. `loaded`, `ready`,
    `deadline`, `refused`, `connections` and `service` are what it has last said; `heard` when, by the monotonic clock,
    `ready_at` since when it has been ready. Raises OSError or RuntimeError where the system gives no process, or no
    thread to listen to one."""

    def __init__(self, settings: WorkerSettings, forks: WorkerForks | None = None) -> None:
        self.began = self.heard = time.monotonic()
        self.ready_at = math.inf
        self.loaded, self.ready, self.refused, self.connections, self.service = False, False, "", 0, 0.0
        self.told_to_listen, self.deadline, self._pings = False, 0.0, 0
        forked = None if forks is None else forks.begin(settings)
        self._process = _process(settings) if forked is None else forked
        self._listener = threading.Thread(target=self._listen, daemon=True)
        try:
            self._listener.start()
        except RuntimeError:
            self._process.kill()
            self._process.wait()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def end(self) -> str:
        """Why it ended, in its own words where it said any."""
        self._listener.join(5)
        return self.refused or f"its process ended with {self._process.returncode}; see the log above"

    def listen(self) -> None:
        """Until then a loaded one has nothing to say, so that its silence counts from here."""
        self.told_to_listen, self.heard = True, time.monotonic()
        self._tell(WorkerOrder(listen=True))

    def select(self, numbers: tuple[int, ...], first: tuple[int, ...] = ()) -> None:
        """Which of the port's listeners get its new connections, and which of them the next ones, by their numbers."""
        self._tell(WorkerOrder(select=numbers, first=first))

    def ping(self) -> None:
        """Its event loop will say how many callers are connected."""
        self._pings += 1
        self._tell(WorkerOrder(ping=self._pings))

    def terminate(self) -> None:
        """Asks it to finish its requests and end."""
        if self.alive:
            self._process.terminate()

    def stop(self, seconds: float) -> int:
        """Asks it to end and waits; kills it when that takes too long. Returns its exit code."""
        self.terminate()
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return self.kill()
        return self._close()

    def kill(self) -> int:
        """Returns its exit code, the negated number of a signal."""
        self._process.kill()
        self._process.wait()
        return self._close()

    def _tell(self, order: WorkerOrder) -> None:
        """A worker that has just died hears nothing; who looks at it next will see that."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            self._process.stdin.write(order.line + "\n")
            self._process.stdin.flush()

    def _close(self) -> int:
        """Both pipes, once the process has ended."""
        self._listener.join(5)
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()
        return self._process.wait()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                report = WorkerReport.model_validate_json(line)
            except ValidationError:  # whatever it is, it is no word for us
                sys.stderr.write(line)
                continue
            self.heard = time.monotonic()
            self.loaded = self.loaded or report.loaded
            if report.ready is not None and not self.ready:
                self.ready, self.ready_at = True, self.heard
            self.deadline = report.deadline or self.deadline
            self.refused = report.refused or self.refused
            self.connections = report.connections if report.pong else self.connections
            self.service = report.service or self.service


def _process(settings: WorkerSettings) -> subprocess.Popen[str] | ForkedWorker:
    return subprocess.Popen(
        [sys.executable, "-m", "serving.workers.worker_start", settings.model_dump_json()],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"}, start_new_session=True,
    )

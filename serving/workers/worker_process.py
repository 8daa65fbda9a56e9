"""A worker as its supervisor sees it: started, waited for, asked to drain or to stop, by its process id."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

from contracts.errors import BundleError
from serving.server.port_takeover import DRAIN
from serving.workers.worker_messages import WorkerReport, WorkerSettings

START_SECONDS = 600.0
POLL = 0.05


class WorkerProcess:
    """`version` names the bundle in `settings.folder`. Loading begins at once, in a process of its own."""

    def __init__(self, version: str, settings: WorkerSettings) -> None:
        self.folder, self.version, self.drain_began = settings.folder, version, 0.0
        self._process = subprocess.Popen(
            [sys.executable, "-m", "serving.workers.worker", settings.model_dump_json()],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"}, start_new_session=True,
        )
        self._ready, self._refused = False, ""
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def wait_ready(self, stop: threading.Event) -> bool:
        """False when `stop` was set first. Raises BundleError with the worker's own sentence when it does not serve."""
        end = time.monotonic() + START_SECONDS
        while not self._ready:
            if stop.is_set():
                return False
            if not self.alive:
                self._listener.join(5)
                raise BundleError(self._refused or f"its process ended with {self._process.returncode}; "
                                  "see the log above")
            if time.monotonic() > end:
                self.kill()
                raise BundleError(f"it was not ready after {START_SECONDS:.0f} s")
            time.sleep(POLL)
        return True

    def drain(self) -> None:
        """Its callers go over to its successor, then it ends."""
        self.drain_began = time.monotonic()
        self._process.send_signal(DRAIN)

    def stop(self, seconds: float) -> int:
        """Asks it to finish its requests and waits; kills it when that takes too long. Returns its exit code."""
        if self.alive:
            self._process.terminate()
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

    def _close(self) -> int:
        """Both pipes, once the process has ended."""
        self._listener.join(5)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        return self._process.returncode

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            report = WorkerReport.model_validate_json(line)
            self._ready = self._ready or report.ready is not None
            self._refused = report.refused or self._refused

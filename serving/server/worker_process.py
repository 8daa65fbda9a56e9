"""A worker as its supervisor sees it: started, waited for, asked to drain or to stop, by its process id."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from contracts.errors import BundleError

START_SECONDS = 600.0
DRAIN = signal.SIGUSR1
DRAIN_GRACE_SECONDS = 30.0  # longest that requests under way may keep a connection beyond its age
POLL = 0.05


class WorkerProcess:
    """`settings` are those of serving/server/worker.py; loading begins at once."""

    def __init__(self, folder: Path, version: str, settings: dict[str, object]) -> None:
        self.folder, self.version, self.drain_began = folder, version, 0.0
        told = json.dumps({"folder": str(folder), **settings})
        self._process = subprocess.Popen(
            [sys.executable, "-m", "serving.server.worker", told], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, start_new_session=True,
        )
        self._words: dict[str, str] = {}
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
        while "ready" not in self._words:
            if stop.is_set():
                return False
            if not self.alive:
                self._listener.join(5)
                raise BundleError(self._words.get("refused") or f"its process ended with {self._process.returncode}; "
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
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return self.kill()

    def kill(self) -> int:
        self._process.kill()
        return self._process.wait()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._words |= json.loads(line)

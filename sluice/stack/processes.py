"""Processes that are started together, waited for, and stopped together; what each prints is kept in a file."""

from __future__ import annotations

import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from contracts.errors import SluiceError

STOP_SECONDS = 15.0
EVERY_SECONDS = 0.1


class Processes:
    """`with Processes(folder) as stack: stack.start("server", [...]); stack.wait("http://...", 60)`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Processes:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def log(self, name: str) -> Path:
        return self._folder / f"{name}.log"

    def start(self, name: str, command: Sequence[str], environment: dict[str, str] | None = None) -> None:
        with self.log(name).open("wb") as sink:
            self._running[name] = subprocess.Popen(
                command, stdout=sink, stderr=subprocess.STDOUT, env=environment, start_new_session=True)

    def wait(self, name: str, address: str, seconds: float) -> None:
        """Until a GET is answered with 200. Raises SluiceError with the last line of the process's log otherwise."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self._running[name].poll() is None:
            if _answers(address):
                return
            time.sleep(EVERY_SECONDS)
        last = (self.log(name).read_text(errors="replace").strip().splitlines() or ["it printed nothing"])[-1]
        raise SluiceError(f"{name} does not answer at {address}: {last} (whole log: {self.log(name)})")

    def ended(self) -> str:
        """The name of one that has ended by itself, "" where none has."""
        return next((name for name, process in self._running.items() if process.poll() is not None), "")

    def stop(self) -> None:
        """The last one first."""
        for process in reversed(self._running.values()):
            if process.poll() is None:
                process.terminate()
        for process in reversed(self._running.values()):
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._running.clear()


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False

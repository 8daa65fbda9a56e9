"""A `sluice serve` of one's own: started as a process, waited for, stopped by its process id."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from functools import cached_property
from pathlib import Path

from contracts.errors import SluiceError

START_SECONDS = 180.0
SETTINGS = frozenset({"SLUICE_TLS_CERTIFICATE", "SLUICE_TLS_KEY", "SLUICE_TLS_CLIENT_CA", "SLUICE_ACCESS",
                      "SLUICE_USER_STORE", "SLUICE_EVENT_STREAM"})  # of a server


class ServerProcess:
    """Serves `bundle` on a free port of the loopback; `log` keeps what it prints, `options` go to `sluice serve`, and
    say all that it is told: what the environment tells servers is meant for another one, such as this process. One that
    `ends_with_us` ends with the thread that has started it, even where this process is killed. Without `wait` it is
    waited for when its target is first asked for.

    Raises SluiceError with the log's last line when the server ends or stays silent for three minutes.
    """

    def __init__(
        self, bundle: Path | str, log: Path, port: int = 0, options: tuple[str, ...] = (), ends_with_us: bool = False,
        wait: bool = True,
    ) -> None:
        self._log = log
        module = ("sluice.demo.ends_with_parent", str(os.getpid())) if ends_with_us else ("sluice.cli",)
        with log.open("w") as sink:
            command = [sys.executable, "-m", *module, "serve", str(bundle), "--port", str(port), *options]
            self.process = subprocess.Popen(command, stdout=sink, stderr=subprocess.STDOUT, start_new_session=True,
                                            env={key: os.environ[key] for key in os.environ.keys() - SETTINGS})
        if wait:
            self.target = self._wait()

    @cached_property
    def target(self) -> str:
        """HOST:PORT."""
        return self._wait()

    @property
    def port(self) -> int:
        return int(self.target.rpartition(":")[2])

    def _wait(self) -> str:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            text = self._log.read_text()
            ready = re.search(r"^serving \S+ on (\S+:\d+)$", text, re.MULTILINE)
            if ready:
                return ready[1]
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        self.stop()
        lines = self._log.read_text().strip().splitlines() or ["it printed nothing"]
        raise SluiceError(f"the server did not start: {lines[-1]} (whole log: {self._log})")

    def stop(self) -> int:
        """Asks it to finish its requests and waits; kills it after 15 s. Returns its exit code."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            return self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()

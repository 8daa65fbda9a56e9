"""Starts `sluice` commands from a process that has imported what they import: a fork each, not seconds of imports.

    python -m sluice.forked.warm_process SOCKET MODULES...     until its standard input ends

Six days are some eighty commands. What a command does is no other than in a process of its own: nothing but imports has
been done before the fork, and no thread runs. sluice/forked/forward.py is the other side.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from contracts.atomic_write import aside
from contracts.errors import SluiceError
from sluice.forked import forward

IMPORTED = (
    "mlflow", "matplotlib.pyplot", "scipy.stats", "sklearn.isotonic", "torch._dynamo", "pyspark.sql",
    "pipelines.jobs.feature_job", "pipelines.jobs.pair_job", "pipelines.jobs.quality_job", "models.cross_search.job",
    "models.jobs.train_job", "models.leakage.leak_check", "models.pair_rates.job", "serving.assembly.verify",
    "sluice.commands.rank_command", "sluice.commands.run_commands", "sluice.commands.version_commands",
    "sluice.release.gate", "sluice.release.registration", "sluice.release.warm_parent", "sluice.release.watch",
    "sluice.report.tables", "sluice.run.bundle_job", "sluice.run.jobs", "sluice.run.prerank_job",
    "sluice.run.quality_gate",
)
START_SECONDS = 180.0
BROKEN = 1


class WarmProcess:
    """`with WarmProcess(folder) as warm: ...`; `warm.command` is a file that is started as `sluice` would be.

    Raises SluiceError when the process does not come up.
    """

    def __init__(self, folder: Path, imported: Sequence[str] = IMPORTED) -> None:
        self.command = (folder / "sluice").resolve()
        self._place = tempfile.TemporaryDirectory(prefix="sluice-")  # a socket's path has room for 107 bytes
        self._socket = Path(self._place.name) / "commands"
        self._log = folder / "warm.log"
        sleeping = {"OMP_WAIT_POLICY": "PASSIVE"}  # what sluice/cli.py asks for is read when libraries load, here
        with self._log.open("w") as sink:
            self.process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(self._socket), *imported], stdin=subprocess.PIPE, stdout=sink,
                stderr=subprocess.STDOUT, start_new_session=True, env={**sleeping, **os.environ})

    def __enter__(self) -> WarmProcess:
        end = time.monotonic() + START_SECONDS
        while not self._socket.exists():
            if self.process.poll() is not None or time.monotonic() > end:
                self.stop()
                raise SluiceError(f"the process that starts commands did not come up; {self._log} says why")
            time.sleep(0.05)
        with aside(self.command) as draft:
            draft.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "{forward.__file__}" "{self._socket}" "$@"\n')
            draft.chmod(0o755)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """No further commands; those under way end with whoever started them."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
        self._place.cleanup()


def serve(address: str, imported: Sequence[str]) -> None:
    """Forks for each who connects, until standard input ends."""
    for name in imported:
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    with socket.socket(socket.AF_UNIX) as listener:
        draft = f"{address}.draft"
        listener.bind(draft)
        listener.listen(64)
        os.rename(draft, address)  # from here on it answers
        while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
            line, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                run(line)
            line.close()


def run(line: socket.socket) -> None:
    """The command that comes over the line, as a process of its own; never returns."""
    code = BROKEN
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        words = take_over(line)
        threading.Thread(target=end_with, args=(line,), daemon=True).start()
        code = ended(words)
        atexit._run_exitfuncs()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        line.sendall(bytes([code]))
        os._exit(code)


def take_over(line: socket.socket) -> list[str]:
    """The caller's environment, folder and output become this process's; returns its words."""
    length, outputs, _, _ = socket.recv_fds(line, forward.LENGTH, 2)
    with line.makefile("rb") as reader:
        asked = json.loads(reader.read(int.from_bytes(length, "big")))
    for number, output in enumerate(outputs, start=1):
        os.dup2(output, number)
        os.close(output)
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["folder"])
    return list(asked["words"])


def ended(words: list[str]) -> int:
    """The exit code of `sluice WORDS`."""
    sys.argv = ["sluice", *words]
    try:
        runpy.run_module("sluice.cli", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def end_with(line: socket.socket) -> None:
    """Nothing comes over the line any more but its end, with the caller's: then this process ends too."""
    line.recv(1)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2:])

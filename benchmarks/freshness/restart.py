"""A server of changed items that is killed with its workers and started again on the same folder."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.freshness.kills import lost
from benchmarks.serving.process_figures import family
from serving.server.catalog_client import CatalogClient
from serving.server.client import RankingClient
from sluice.demo.server_process import ServerProcess

DEADLINE = 5.0
LONGEST = 30.0  # seconds until a process that was killed is gone


class RestartFigures(NamedTuple):
    """Seconds from starting it until its first answer; withdrawn items that it shows again, and acknowledged changes
    that it does not know of."""

    seconds: float
    shown_again: int
    forgotten: int


def processes(server: ServerProcess) -> list[int]:
    """Of the supervisor and its workers."""
    return family(server.process.pid)


def kill(server: ServerProcess) -> None:
    """All of its processes, at once; returns when none is there. Raises TimeoutError where one stays."""
    pids, end = processes(server), time.monotonic() + LONGEST
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    server.process.wait()
    while any(Path(f"/proc/{pid}/exe").exists() for pid in pids):
        if time.monotonic() > end:
            raise TimeoutError(f"a process of {pids} is there {LONGEST:.0f} s after it was killed")
        time.sleep(0.001)


def measure(
    bundle: Path, log: Path, options: tuple[str, ...], withdrawn: Sequence[str], sequence: int
) -> RestartFigures:
    """Of a server that was killed after it had acknowledged `sequence` changes, the last of them that items are
    `withdrawn`."""
    begun = time.monotonic()
    server = ServerProcess(bundle, log, options=options)
    try:
        with RankingClient(server.target) as client:
            client.rank("u0", seconds=DEADLINE)
        seconds = time.monotonic() - begun
        with CatalogClient(server.target) as client:
            known = client.status().applied_sequence
        return RestartFigures(seconds, lost(server.target, list(withdrawn)), max(sequence - known, 0))
    finally:
        server.stop()

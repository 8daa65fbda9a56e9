"""The process that a supervisor starts, by what it prints, what it takes from others, and how it ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from contracts.bundle.bundle import read_manifest
from serving.workers.worker_messages import WorkerOrder, WorkerReport, WorkerSettings

ROOT = Path(__file__).parents[3]


def core_seconds(folder: Path) -> float:
    """Of a process, or of one of its threads."""
    user, system = (folder / "stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@pytest.mark.slow
def test_it_follows_orders_says_which_bundle_is_served_and_ends_with_its_supervisor(bundle_folder: Path) -> None:
    settings = WorkerSettings(folder=bundle_folder, host="127.0.0.1", port=0, connection_seconds=1)
    worker = subprocess.Popen([sys.executable, "-m", "serving.workers.worker_start", settings.model_dump_json()],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert worker.stdout is not None
    assert worker.stdin is not None
    said, asked = worker.stdout, worker.stdin

    def told(order: WorkerOrder) -> WorkerReport:
        asked.write(order.line + "\n")
        asked.flush()
        return WorkerReport.model_validate_json(said.readline())

    assert WorkerReport.model_validate_json(worker.stdout.readline()) == WorkerReport(loaded=True)
    own, all_ = (core_seconds(Path(f"/proc/{worker.pid}/{part}")) for part in (f"task/{worker.pid}", ""))
    assert own < all_ / 4  # of those that have loaded it, the thread that will serve
    assert os.getpriority(os.PRIO_PROCESS, worker.pid) == os.getpriority(os.PRIO_PROCESS, 0)
    worker.stdin.write("no order at all\n")
    ready, pong = told(WorkerOrder(listen=True)), told(WorkerOrder(ping=7))
    assert ready == WorkerReport(ready=read_manifest(bundle_folder).version, service=ready.service, deadline=5.0)
    assert pong == WorkerReport(pong=7, service=ready.service)  # as measured before the first request
    assert 0 < ready.service < 10
    worker.stdin.close()  # what the end of the supervisor does
    assert worker.wait(60) == 0
    worker.stdout.close()

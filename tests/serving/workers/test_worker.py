"""The process that a supervisor starts, by what it prints and how it ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from contracts.bundle.bundle import read_manifest
from serving.workers.worker_messages import WorkerOrder, WorkerReport, WorkerSettings

ROOT = Path(__file__).parents[3]
PRINTS = "import serving.workers.worker as w, sys; r = w.Reports(); print('noise'); r.send(w.WorkerReport(pong=1))"


def test_it_follows_orders_says_which_bundle_is_served_and_ends_with_its_supervisor(bundle_folder: Path) -> None:
    settings = WorkerSettings(folder=bundle_folder, host="127.0.0.1", port=0, connection_seconds=1)
    worker = subprocess.Popen([sys.executable, "-m", "serving.workers.worker", settings.model_dump_json()],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert worker.stdout is not None
    assert worker.stdin is not None
    said, asked = worker.stdout, worker.stdin

    def told(order: WorkerOrder) -> WorkerReport:
        asked.write(order.line + "\n")
        asked.flush()
        return WorkerReport.model_validate_json(said.readline())

    assert WorkerReport.model_validate_json(worker.stdout.readline()) == WorkerReport(loaded=True)
    worker.stdin.write("no order at all\n")
    assert told(WorkerOrder(listen=True)) == WorkerReport(ready=read_manifest(bundle_folder).version)
    assert told(WorkerOrder(ping=7)) == WorkerReport(pong=7)
    worker.stdin.close()  # what the end of the supervisor does
    assert worker.wait(60) == 0
    worker.stdout.close()


def test_what_others_print_is_no_word_to_the_supervisor() -> None:
    done = subprocess.run([sys.executable, "-c", PRINTS], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == '{"pong":1}\n'
    assert "noise" in done.stderr

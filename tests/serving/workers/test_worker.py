"""The process that a supervisor starts, by what it prints and how it ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from contracts.bundle.bundle import read_manifest
from serving.workers.worker import report
from serving.workers.worker_messages import WorkerReport, WorkerSettings

ROOT = Path(__file__).parents[3]


def test_a_report_is_a_line_on_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    report(WorkerReport(ready="shop-1"))
    assert capsys.readouterr().out == '{"ready":"shop-1"}\n'


def test_it_says_which_bundle_is_served_and_ends_with_its_supervisor(bundle_folder: Path) -> None:
    settings = WorkerSettings(folder=bundle_folder, host="127.0.0.1", port=0, connection_seconds=1)
    worker = subprocess.Popen([sys.executable, "-m", "serving.workers.worker", settings.model_dump_json()],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert worker.stdout is not None
    assert worker.stdin is not None
    said = WorkerReport.model_validate_json(worker.stdout.readline())
    assert said == WorkerReport(ready=read_manifest(bundle_folder).version)
    worker.stdin.close()  # what the end of the supervisor does
    assert worker.wait(60) == 0
    worker.stdout.close()

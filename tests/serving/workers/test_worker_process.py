"""A worker seen from its supervisor: refused in its own words, stopped while it still loads."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from contracts.errors import BundleError
from serving.workers.worker_messages import WorkerSettings
from serving.workers.worker_process import WorkerProcess


def started(folder: Path) -> WorkerProcess:
    return WorkerProcess("shop-1", WorkerSettings(folder=folder, host="127.0.0.1", port=0, connection_seconds=1))


def test_a_folder_that_is_no_bundle_is_refused_in_the_workers_words(tmp_path: Path) -> None:
    worker = started(tmp_path)
    with pytest.raises(BundleError, match="is no bundle"):
        worker.wait_ready(threading.Event())
    assert worker.stop(20) == 1
    assert not worker.alive


def test_nobody_waits_for_a_worker_once_the_supervisor_stops(bundle_folder: Path) -> None:
    stop, worker = threading.Event(), started(bundle_folder)
    stop.set()
    assert not worker.wait_ready(stop)
    assert worker.alive
    assert worker.kill() < 0
    assert not worker.alive

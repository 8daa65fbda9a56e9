"""A worker seen from its supervisor: refused in its own words, stopped while it still loads."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from serving.workers.worker_messages import WorkerSettings
from serving.workers.worker_process import WorkerProcess


def started(folder: Path, compared: bool = False) -> WorkerProcess:
    return WorkerProcess(WorkerSettings(folder=folder, host="127.0.0.1", port=0, connection_seconds=1,
                                        compared=compared))


@pytest.mark.slow
def test_a_folder_that_is_no_bundle_is_refused_in_the_workers_words(tmp_path: Path) -> None:
    worker = started(tmp_path)
    end = time.monotonic() + 60
    while worker.alive and time.monotonic() < end:
        time.sleep(0.05)
    assert "is no bundle" in worker.end
    worker.ping()  # nobody hears it, and nothing breaks
    assert worker.stop(20) == 1


@pytest.mark.slow
@pytest.mark.parametrize("compared", [False, True])
def test_files_are_compared_with_their_checksums_unless_one_before_it_has(
    bundle_folder: Path, tmp_path: Path, compared: bool
) -> None:
    folder = shutil.copytree(bundle_folder, tmp_path / bundle_folder.name)
    with (folder / "settings.json").open("a") as file:
        file.write(" ")
    worker = started(folder, compared)
    end = time.monotonic() + 60
    while worker.alive and not worker.loaded and time.monotonic() < end:
        time.sleep(0.05)
    assert worker.loaded == compared
    assert compared or "settings.json differs from its checksum" in worker.end
    worker.kill()


def test_one_that_loads_can_be_killed(bundle_folder: Path) -> None:
    worker = started(bundle_folder)
    assert worker.alive
    assert not worker.ready
    assert worker.kill() < 0
    assert not worker.alive


@pytest.mark.slow
def test_while_it_waited_to_listen_it_was_not_silent(bundle_folder: Path) -> None:
    worker = started(bundle_folder)
    end = time.monotonic() + 60
    while not worker.loaded and time.monotonic() < end:
        time.sleep(0.05)
    told = time.monotonic()
    assert worker.heard < told
    worker.listen()
    assert worker.heard >= told
    worker.kill()

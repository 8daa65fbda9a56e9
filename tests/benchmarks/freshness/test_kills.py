"""What was acknowledged by a real server is known to it after its end, and was not where the folder has gone."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest

from benchmarks.freshness.kills import KINDS, Changes
from benchmarks.serving.funnel import VALUES, world
from benchmarks.serving.synthetic_bundle import publish
from sluice.demo.server_process import ServerProcess
from tests.serving.read_log import until


def test_nothing_is_acknowledged_by_a_server_that_is_not_there() -> None:
    told = Changes(100)
    told.send("127.0.0.1:1")
    assert len(told) == 0


@pytest.mark.slow
def test_what_was_acknowledged_is_remembered_and_what_a_folder_has_lost_is_counted(tmp_path: Path) -> None:
    bundle, fresh, told = publish(world(500, "dnn"), tmp_path, VALUES), tmp_path / "fresh", Changes(40)

    def served() -> ServerProcess:
        return ServerProcess(bundle, tmp_path / "log", options=("--workers", "1", "--fresh", str(fresh)))

    server = served()
    sender = threading.Thread(target=told.send, args=(server.target,))
    sender.start()
    until(lambda: len(told) > 3 * 40)
    assert sender.is_alive()
    server.process.kill()
    server.process.wait()
    sender.join()
    assert all(max(one.version for one in told.acknowledged[kind]) >= 3 for kind in KINDS)
    assert min(len(told.acknowledged[kind]) for kind in KINDS) >= 30
    server = served()
    assert told.forgotten(server.target) == 0
    server.process.kill()
    server.process.wait()
    shutil.rmtree(fresh)
    server = served()
    assert told.forgotten(server.target) >= len(told)
    server.stop()

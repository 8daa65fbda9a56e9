"""A real server, killed with its workers."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.freshness.restart import kill, measure, processes
from benchmarks.serving.funnel import VALUES, world
from benchmarks.serving.synthetic_bundle import publish
from serving.server.catalog_client import CatalogClient, ItemChange
from sluice.demo.server_process import ServerProcess


@pytest.mark.slow
def test_what_was_acknowledged_is_known_and_what_was_not_is_missed(tmp_path: Path) -> None:
    bundle = publish(world(300, "dnn"), tmp_path / "world", VALUES)
    options = ("--fresh", str(tmp_path / "fresh"), "--workers", "2")
    server = ServerProcess(bundle, tmp_path / "server.log", options=options)
    with CatalogClient(server.target) as client:
        sequence = client.withdraw([ItemChange(item="i1", version=1)]).sequence
    pids = processes(server)
    kill(server)
    assert len(pids) == 4  # what forks the two workers is one
    assert not any(Path(f"/proc/{pid}/exe").exists() for pid in pids)
    found = measure(bundle, tmp_path / "again.log", options, ["i1", "i2"], sequence + 1)
    assert found.seconds > 0
    assert found.shown_again == 1  # nobody has withdrawn i2
    assert found.forgotten == 1

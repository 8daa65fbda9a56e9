"""Users of a later day in the folder of `--fresh`, which two workers of a real server read."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from contracts.artifacts import Artifacts
from serving.proto import sluice_pb2 as pb
from serving.server.client import RankingClient
from serving.users.embedded_tables import FILE
from serving.users.user_publisher import publish_users
from sluice.demo.server_process import ServerProcess

PATIENCE, CONNECTIONS = 60.0, 8  # to two workers


def user_stage(client: RankingClient) -> pb.StageReport:
    [found] = (stage for stage in client.rank("u01", seconds=5.0).stages if stage.name == "user")
    return found


def until_all(clients: list[RankingClient], holds: Callable[[pb.StageReport], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not all(holds(user_stage(client)) for client in clients):
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.slow
def test_workers_read_what_is_published_and_go_on_without_it(
    bundle_folder: Path, trained: Artifacts, tmp_path: Path
) -> None:
    fresh = tmp_path / "fresh"
    server = ServerProcess(bundle_folder, tmp_path / "server.log", options=("--workers", "2", "--fresh", str(fresh)))
    try:
        with ExitStack() as open_:
            clients = [open_.enter_context(RankingClient(server.target)) for _ in range(CONNECTIONS)]
            for client in clients:
                stage = user_stage(client)
                assert (stage.cause, stage.HasField("age_seconds")) == ("", False)
            publish_users(trained, str(fresh))
            until_all(clients, lambda stage: stage.HasField("age_seconds"))
            assert all(user_stage(client).status == pb.StageReport.COMPLETE for client in clients)
            (tmp_path / "other").write_bytes(b"no data base" * 1000)
            (tmp_path / "other").replace(fresh / FILE)
            until_all(clients, lambda stage: "not a database" in stage.cause)
            assert all(user_stage(client).fallback == pb.StageReport.BUNDLE_ROW for client in clients)
            (fresh / FILE).unlink()
            until_all(clients, lambda stage: not stage.cause)
            publish_users(trained, str(fresh))
            until_all(clients, lambda stage: stage.HasField("age_seconds") and not stage.cause)
    finally:
        assert server.stop() == 0

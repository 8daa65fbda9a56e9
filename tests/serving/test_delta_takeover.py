"""A delta that is applied to a folder while it is served: a real server, real workers, callers that never stop."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from contracts.bundle import delta
from contracts.bundle.bundle import verify
from serving.server.client import RankingClient
from sluice.airflow_demo.steady_load import SteadyLoad
from sluice.demo.server_process import ServerProcess
from tests.serving.bundle_variants import variant, with_other_logits
from tests.serving.takeover_seen import GONE, USERS, until

PER_SECOND = 8.0


def answers(server: ServerProcess) -> list[bytes]:
    """Who is asked, items, probabilities and scores, to the bit; not what a request is called or takes."""
    with RankingClient(server.target) as client:
        found = [client.rank(user, seconds=20) for user in USERS[:10]]
    return [b"".join(item.SerializeToString(deterministic=True) for item in answer.items) for answer in found]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_delta_is_taken_over_under_load_a_bad_one_is_not_and_the_way_back_is_the_same(
    bundle_folder: Path, tmp_path: Path, workers: int
) -> None:
    folder = Path(shutil.copytree(bundle_folder, tmp_path / "served"))
    good, bad = variant(folder, tmp_path, "good"), with_other_logits(folder, tmp_path)
    delta.make(folder, good, tmp_path / "delta")
    delta.make(good, bad, tmp_path / "bad_delta")
    before, log = verify(folder).version, tmp_path / "server.log"
    options = ("--workers", str(workers), "--follow", "--poll-seconds", "0.2", "--connection-seconds", "1")
    server = ServerProcess(folder, log, options=options)
    try:
        answered = answers(server)
        with SteadyLoad(server.target, USERS, PER_SECOND) as load:
            until(lambda: len(load.outcomes) > 5)
            delta.apply(folder, tmp_path / "delta", folder)
            until(lambda: f"{before} {GONE}" in log.read_text())
            delta.apply(folder, tmp_path / "bad_delta", folder)
            until(lambda: f"refused {verify(bad).version}" in log.read_text())
            delta.apply(folder, tmp_path / "bad_delta", folder, revert=True)
            delta.apply(folder, tmp_path / "delta", folder, revert=True)
            until(lambda: f"{verify(good).version} {GONE}" in log.read_text())
            seen = len(load.outcomes)
            until(lambda: len(load.outcomes) > seen + 5)
        assert load.failed == []
        assert {outcome.version for outcome in load.outcomes} == {before, verify(good).version}
        assert "parity rows differ" in log.read_text()
        assert answers(server) == answered
    finally:
        assert server.stop() == 0
    assert not list(tmp_path.glob(".served.*"))

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchmarks.serving.witness import figures, witness
from serving.proto import sluice_pb2 as pb
from serving.server.servicer import RankingServicer
from serving.stages.funnel import Funnel
from tests.serving.in_process_server import InProcessServer

ASKED = pb.RankRequest(user_id="u1", limit=2)


def test_times_are_of_what_was_answered() -> None:
    found = figures("1795355000000000\t200\t1000\n1795355000100000\t200\t3000\n1795355000200000\t503\t90000\n")
    assert (found.requests, found.failed, found.p50_ms) == (3, 1, 2.0)
    assert found.p99_ms < 3.01


def test_without_the_program_there_is_no_witness(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert witness("127.0.0.1:1", ASKED, 10.0, 1.0) is None


@pytest.mark.skipif(shutil.which("h2load") is None, reason="h2load (Debian: nghttp2-client) is not installed")
def test_a_server_is_asked_at_the_rate_that_was_named() -> None:
    from benchmarks.serving.funnel import world

    bundle = world(500, "dnn")
    made = RankingServicer(Funnel(bundle), bundle.manifest, bundle.settings.serve)
    with InProcessServer(made) as server:
        found = witness(server.target, ASKED, 40.0, 2.0)
    made.close()
    assert found is not None
    assert found.failed == 0
    assert found.requests > 0
    assert made.taken >= found.requests

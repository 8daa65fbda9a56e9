from __future__ import annotations

import itertools
import threading
from datetime import UTC, datetime

from benchmarks.serving.queue_watch import QueueWatch
from contracts.bundle.bundle import SCHEMA_VERSION, Manifest
from serving.proto import sluice_pb2_grpc
from serving.server.bundle_health import BundleHealth
from tests.serving.in_process_server import InProcessServer

MANIFEST = Manifest(schema_version=SCHEMA_VERSION, name="market", content_hash="0" * 64, created=datetime.now(UTC),
                    files={})


def test_the_longest_and_the_oldest_queue_that_health_told_of() -> None:
    asked, seen = itertools.count(), threading.Event()

    def load() -> dict[str, str]:
        number = next(asked)
        if number > 3:
            seen.set()
        return {"sluice-waiting": "7" if number == 1 else "2", "sluice-queue-ms": "12.5" if number == 2 else "0.00"}

    health = BundleHealth(MANIFEST, None, load)
    with InProcessServer(sluice_pb2_grpc.RankingServicer(), health) as server, QueueWatch(server.target) as watch:
        assert seen.wait(20)
    assert (watch.waiting, watch.milliseconds) == (7, 12.5)


def test_a_server_that_does_not_answer_has_no_queue() -> None:
    with QueueWatch("127.0.0.1:1") as watch:
        pass
    assert (watch.waiting, watch.milliseconds) == (0, 0.0)

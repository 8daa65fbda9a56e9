"""Calls with short deadlines to a server whose ranking is slow: which are answered in time, and how.

    sluice bench deadlines BUNDLE [--slow-ms 100] [--deadlines-ms 6 8 10 15 20 30 60] [--calls 300] [--json]

The server is the product's own, in a process of its own on the loop and at the switch interval of `sluice serve`, with
a ranker that sleeps before it scores; its floor (the deadline from which on every call gets a search of the items) is
what its health check says. Calls follow one another.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import grpc
import torch
import uvloop
from grpc_health.v1 import health_pb2, health_pb2_grpc
from pydantic import BaseModel, ConfigDict
from torch import Tensor, nn

from models.examples.batches import FeatureBlock
from serving.bundle.feature_store import FeatureStore
from serving.bundle.loaded_bundle import LoadedBundle
from serving.server.client import RankingClient
from serving.server.connection import RankingFailed
from serving.server.server import SWITCH_SECONDS, Server, ServerSettings

USERS, WARM_UP = 500, 100


class Slow(nn.Module):
    """A ranker that takes so many seconds more."""

    def __init__(self, ranker: nn.Module, seconds: float) -> None:
        super().__init__()
        self.ranker, self.seconds = ranker, seconds

    def forward(self, request: FeatureBlock, candidate: FeatureBlock) -> Tensor:
        time.sleep(self.seconds)
        return self.ranker(request, candidate)


class DeadlineFigures(BaseModel):
    """Of calls with one deadline: how many were answered in time, and how many of those were degraded."""

    model_config = ConfigDict(frozen=True)

    deadline_ms: float
    calls: int
    in_time: int
    degraded: int


def serve(folder: Path, seconds: float) -> None:
    """Prints the port, then serves until it is ended."""
    torch.set_num_threads(1)
    sys.setswitchinterval(SWITCH_SECONDS)
    bundle = LoadedBundle.load(folder)

    async def run() -> None:
        slow = replace(bundle, ranker=Slow(bundle.ranker, seconds))
        await Server(slow, ServerSettings(), None).run(lambda port: print(port, flush=True))

    uvloop.run(run())


def measure(target: str, users: Sequence[str], milliseconds: float, calls: int) -> DeadlineFigures:
    in_time = degraded = 0
    with RankingClient(target) as client:
        for number in range(calls):
            try:
                answer = client.rank(users[number % len(users)], seconds=milliseconds / 1000)
            except RankingFailed:
                continue
            in_time += 1
            degraded += answer.degraded
    return DeadlineFigures(deadline_ms=milliseconds, calls=calls, in_time=in_time, degraded=degraded)


def floor_of(target: str) -> float:
    """Milliseconds, as the health check says."""
    with grpc.insecure_channel(target) as channel:
        _, call = health_pb2_grpc.HealthStub(channel).Check.with_call(health_pb2.HealthCheckRequest(), timeout=5)
        return float(dict(call.trailing_metadata())["sluice-floor-ms"])


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--slow-ms", type=float, default=100.0)
    parser.add_argument("--deadlines-ms", type=float, nargs="+", default=[6, 8, 10, 15, 20, 30, 60])
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(argv)
    if chosen.serve:
        serve(chosen.bundle, chosen.slow_ms / 1000)
        return
    store = FeatureStore.load(chosen.bundle / "tables", "users")
    users = [store.key(row) for row in range(min(len(store), USERS))]
    command = [sys.executable, "-m", "benchmarks.serving.deadlines", str(chosen.bundle), "--serve",
               f"--slow-ms={chosen.slow_ms}"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stdout is not None
        target = f"127.0.0.1:{int(server.stdout.readline())}"
        measure(target, users, 60.0, WARM_UP)
        found = [measure(target, users, one, chosen.calls) for one in chosen.deadlines_ms]
        floor = floor_of(target)
        server.terminate()
    print(f"ranking slowed by {chosen.slow_ms:.0f} ms; the floor is {floor:.1f} ms")
    for one in found:
        print(f"{one.deadline_ms:6.0f} ms  in time {one.in_time} of {one.calls}, degraded {one.degraded}")
    if chosen.json:
        print(json.dumps({"deadlines": [one.model_dump() for one in found], "floor_ms": floor,
                          "slow_ms": chosen.slow_ms}))


if __name__ == "__main__":
    main()

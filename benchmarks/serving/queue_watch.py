"""What a server's health check says of its queue while something else keeps it busy."""

from __future__ import annotations

from contextlib import suppress

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from sluice.demo.background import Background

EVERY_SECONDS = 0.05


class QueueWatch(Background):
    """`with QueueWatch(target) as watch: ...`; `waiting` requests at most and the oldest of them `milliseconds` old, as
    seen by one connection, so in one of a server's processes."""

    def __init__(self, target: str) -> None:
        super().__init__()
        self.waiting, self.milliseconds, self._target = 0, 0.0, target

    def work(self) -> None:
        with grpc.insecure_channel(self._target) as channel:
            check = health_pb2_grpc.HealthStub(channel).Check
            while not self.stop.wait(EVERY_SECONDS):
                with suppress(grpc.RpcError):
                    _, call = check.with_call(health_pb2.HealthCheckRequest(), timeout=1)
                    told = dict(call.trailing_metadata())
                    self.waiting = max(self.waiting, int(told["sluice-waiting"]))
                    self.milliseconds = max(self.milliseconds, float(told["sluice-queue-ms"]))

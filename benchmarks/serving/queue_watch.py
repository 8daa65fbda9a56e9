"""What a server's health check says of its queue while something else keeps it busy."""

from __future__ import annotations

import threading
from contextlib import suppress
from types import TracebackType

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

EVERY_SECONDS = 0.05


class QueueWatch:
    """`with QueueWatch(target) as watch: ...`; `waiting` requests at most and the oldest of them `milliseconds` old, as
    seen by one connection, so in one of a server's processes."""

    def __init__(self, target: str) -> None:
        self.waiting, self.milliseconds = 0, 0.0
        self._target, self._stop = target, threading.Event()
        self._thread = threading.Thread(target=self._look, name="queue-watch")

    def __enter__(self) -> QueueWatch:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        with grpc.insecure_channel(self._target) as channel:
            check = health_pb2_grpc.HealthStub(channel).Check
            while not self._stop.wait(EVERY_SECONDS):
                with suppress(grpc.RpcError):
                    _, call = check.with_call(health_pb2.HealthCheckRequest(), timeout=1)
                    told = dict(call.trailing_metadata())
                    self.waiting = max(self.waiting, int(told["sluice-waiting"]))
                    self.milliseconds = max(self.milliseconds, float(told["sluice-queue-ms"]))

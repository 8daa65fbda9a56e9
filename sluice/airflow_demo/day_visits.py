"""The visits of one simulated day that its log holds: as many, by the same users and in the same order on any machine.

They are sent one after the other, as fast as the server answers. What is drawn hangs on seed and day alone, what is
shown on the bundle that answers: who sends first waits until the server answers by the bundle that is meant.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from contracts.errors import SluiceError
from sluice.airflow_demo.steady_load import DEADLINE_SECONDS
from sluice.airflow_demo.visitors import Visitors, World

FOLLOW_SECONDS = 300.0
ASKS = "demo"  # the user of a request that is no visit


class DayVisits(Visitors):
    """`asked` are the ids of the visits so far, in their order."""

    def __init__(self, target: str, world: World, clicks: Path, seed: int, day: int) -> None:
        super().__init__(world, clicks, np.random.default_rng([seed, 2, day]))
        self._target, self._day = target, day
        self.asked: list[str] = []

    def name(self) -> str:
        """As in day-07-00012."""
        self.asked.append(f"day-{self._day:02d}-{len(self.asked):05d}")
        return self.asked[-1]

    def send(self, count: int) -> None:
        """Raises SluiceError where a visit gets no answer."""
        with self._connected() as rank:
            for _ in range(count):
                request = self.request()
                self.answered(request, rank(request))
        self.flush()

    def follow(self, version: str, seconds: float = FOLLOW_SECONDS) -> None:
        """Waits until the server answers by bundle `version`. Raises SluiceError where it does not in time."""
        from serving.proto import sluice_pb2 as pb

        end, answered = time.monotonic() + seconds, ""
        with self._connected() as rank:
            while answered != version:
                if answered:
                    time.sleep(0.2)
                if time.monotonic() > end:
                    raise SluiceError(f"{self._target} answers by {answered} and not by {version} after {seconds:g} s")
                answered = rank(pb.RankRequest(user_id=ASKS, limit=1)).bundle_version

    @contextmanager
    def _connected(self) -> Iterator[Callable[[Any], Any]]:
        """Answers requests, one after the other. Raises SluiceError on any that fails."""
        import grpc

        from serving.proto.sluice_pb2_grpc import RankingStub

        with grpc.insecure_channel(self._target) as channel:
            stub = RankingStub(channel)
            try:
                yield lambda request: stub.Rank(request, timeout=DEADLINE_SECONDS)
            except grpc.RpcError as error:
                raise SluiceError(f"a visit of day {self._day} failed: {error}") from None

"""Callers that never stop: Poisson arrivals of varied users, half on channels kept open, half each on one of its own.

Arrivals do not wait for answers (an open loop), and a request's time counts from the moment it was due, so that a
server that stalls is seen to stall. Every status but OK that the caller sees is a failure; nothing is sent twice here.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from sluice.demo.background import Background

KEPT_CHANNELS = 4
DEADLINE_SECONDS = 20.0
Channel = Literal["kept", "new"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """`due` by the monotonic clock; `seconds` from then to the answer."""

    due: float
    channel: Channel
    code: str
    seconds: float
    version: str


class SteadyLoad(Background):
    """`with SteadyLoad(target, users, 50) as load: ...`; afterwards, or meanwhile, `load.outcomes`.

    What callers ask and what they do with an answer is a subclass's to say.
    """

    def __init__(self, target: str, users: Sequence[str], per_second: float, seed: int = 0) -> None:
        super().__init__()
        self.outcomes: list[Outcome] = []
        self._target, self._users, self._rate = target, list(users), per_second
        self._draw = np.random.default_rng(seed)

    @property
    def failed(self) -> list[Outcome]:
        """Requests that ended in any status but OK."""
        return [outcome for outcome in self.outcomes if outcome.code != "OK"]

    def request(self, user: str) -> Any:
        """The RankRequest that a caller sends for this user."""
        from serving.proto import sluice_pb2 as pb

        return pb.RankRequest(user_id=user)

    def answered(self, request: Any, answer: Any) -> None:
        """Called with each answer, in the thread of the callers."""

    def work(self) -> None:
        """Until the answers under way have come."""
        asyncio.run(self._arrivals())

    async def _arrivals(self) -> None:
        kept = [_channel(self._target) for _ in range(KEPT_CHANNELS)]
        tasks: set[asyncio.Task[None]] = set()
        due = time.monotonic()
        for number in itertools.count():
            due += self._draw.exponential(1 / self._rate)
            await asyncio.sleep(max(due - time.monotonic(), 0))
            if self.stop.is_set():
                break
            old = kept[number % KEPT_CHANNELS] if self._draw.random() < 0.5 else None
            task = asyncio.create_task(self._ask(str(self._draw.choice(self._users)), old, due))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        await asyncio.gather(*tasks)
        for channel in kept:
            await channel.close()

    async def _ask(self, user: str, kept: Any, due: float) -> None:
        import grpc

        from serving.proto.sluice_pb2_grpc import RankingStub

        channel, version, request = kept or _channel(self._target), "", self.request(user)
        try:
            answer = await RankingStub(channel).Rank(request, timeout=DEADLINE_SECONDS)
            code, version = "OK", answer.bundle_version
        except grpc.aio.AioRpcError as error:
            code = f"{error.code().name}: {error.details()}"
        finally:
            if kept is None:
                await channel.close()
        self.outcomes.append(
            Outcome(due, "kept" if kept else "new", code, time.monotonic() - due, version))
        if code == "OK":
            self.answered(request, answer)


def _channel(target: str) -> Any:
    """With a connection of its own: gRPC would otherwise share one among all channels of a process."""
    import grpc

    return grpc.aio.insecure_channel(target, options=[("grpc.use_local_subchannel_pool", 1)])

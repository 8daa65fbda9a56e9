"""Events by the thousand a second through a Redis stream, and how old what a request reads then is.

A user of whom nothing is known is shown an item; the same moment on, requests of that user are sent until one says that
it knows. What passes from adding the event to sending that request is the age at which it is read.
"""

from __future__ import annotations

import itertools
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import redis

from benchmarks.freshness.recorded_world import recorded_world
from benchmarks.freshness.redis_process import RedisProcess
from benchmarks.serving.funnel import USERS
from benchmarks.serving.open_loop import LoadFigures, offered
from serving.events.event_stream import STREAM
from serving.proto import sluice_pb2 as pb
from serving.server.client import RankingClient
from serving.server.connection import RankingFailed
from sluice.demo.background import Background
from sluice.demo.server_process import ServerProcess

ITEMS, RATE, DEADLINE = 20_000, 100.0, 2.0
TICK_SECONDS, CLICKED = 0.05, 5  # every fifth impression
PROBE_SECONDS, LOOK_SECONDS, LOST_SECONDS = 0.1, 0.005, 30.0
KEPT = 1_000_000  # entries of the stream


class EventFigures(NamedTuple):
    """Events `per_second` that were added, and seconds until each probe was known, of which `lost` never were."""

    per_second: float
    ages: list[float]
    lost: int
    beside: LoadFigures


class Sender(Background):
    """While it is open, `per_second` impressions and clicks of the world's users are added."""

    def __init__(self, store: RedisProcess, per_second: float, seed: int = 0) -> None:
        super().__init__()
        self._store, self._size = store, round(per_second * TICK_SECONDS)
        self._draw, self.sent, self._began, self._ended = np.random.default_rng(seed), 0, 0.0, 0.0

    def work(self) -> None:
        due = self._began = time.monotonic()
        with self._store.client() as client:
            while not self.stop.wait(max(due - time.monotonic(), 0.0)):
                add(client, self._drawn())
                self.sent += self._size
                due += TICK_SECONDS
        self._ended = time.monotonic()

    @property
    def rate(self) -> float:
        """Events a second, once it is closed."""
        return self.sent / (self._ended - self._began)

    def _drawn(self) -> list[pb.Event]:
        users = self._draw.integers(0, USERS, self._size).tolist()
        found = list[pb.Event]()
        for place, user in enumerate(users):
            if place % CLICKED == CLICKED - 1:  # a click on the last impression
                shown = found[-1]
                found.append(pb.Event(event_id=f"c{shown.request_id}", kind=pb.Event.CLICK, user_id=shown.user_id,
                                      item_id=shown.item_id, request_id=shown.request_id))
            else:
                found.append(impression(f"u{user}", f"i{user}", f"r{self.sent + place}"))
        return found


def impression(user: str, item: str, request: str) -> pb.Event:
    return pb.Event(event_id=f"s{request}", kind=pb.Event.IMPRESSION, user_id=user, item_id=item, request_id=request)


def add(client: redis.Redis, events: list[pb.Event]) -> None:
    with client.pipeline(transaction=False) as pipe:
        for event in events:
            pipe.xadd(STREAM, {"event": event.SerializeToString()}, maxlen=KEPT)
        pipe.execute()


class Probes(Background):
    """While it is open, one probe after the other."""

    def __init__(self, store: RedisProcess, target: str) -> None:
        super().__init__()
        self._store, self._target, self.ages, self.lost = store, target, list[float](), 0

    def work(self) -> None:
        with self._store.client() as client, RankingClient(self._target) as asking:
            for number in itertools.count():
                if self.stop.wait(PROBE_SECONDS):
                    return
                user = f"probe{number}"
                added = time.monotonic()
                add(client, [impression(user, "i0", user)])
                age = self._until_known(asking, user, added)
                if age is None:
                    self.lost += 1
                else:
                    self.ages.append(age)

    def _until_known(self, asking: RankingClient, user: str, added: float) -> float | None:
        while time.monotonic() < added + LOST_SECONDS:
            asked = time.monotonic()
            with suppress(RankingFailed):  # a server with too much to do is asked again
                found = asking.rank(user, seconds=DEADLINE)
                if any(stage.HasField("age_seconds") for stage in found.stages):
                    return asked - added
            time.sleep(LOOK_SECONDS)
        return None


def measure(folder: Path, seconds: float, per_second: float) -> EventFigures:
    """Beside RATE requests a second."""
    bundle = recorded_world(ITEMS, folder / "recorded")
    with RedisProcess(folder) as store:
        server = ServerProcess(bundle, folder / "events.log", options=(
            "--fresh", str(folder / "fresh-events"), "--event-stream", store.address, "--workers", "2"))
        try:
            offered(server.target, RATE, min(5.0, seconds), DEADLINE)
            with Sender(store, per_second) as sender, Probes(store, server.target) as probes:
                beside = offered(server.target, RATE, seconds, DEADLINE)
        finally:
            server.stop()
    return EventFigures(sender.rate, probes.ages, probes.lost, beside)

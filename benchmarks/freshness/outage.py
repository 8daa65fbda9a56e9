"""A shared store of users that is stopped under load: who fails, who is told, and how soon all is well again."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.freshness.redis_process import RedisProcess
from benchmarks.serving.funnel import RECENT, USERS, VALUES
from benchmarks.serving.open_loop import LoadFigures, offered
from serving.server.client import RankingClient
from serving.users.published_users import CURRENT, UserRow, Version, key_of, write_row
from sluice.demo.background import Background
from sluice.demo.server_process import ServerProcess

RATE, DEADLINE, BEFORE, AFTER = 100.0, 2.0, 5.0, 10.0
LOOK_SECONDS, CONNECTIONS = 0.05, 4


class OutageFigures(NamedTuple):
    """`failed` requests, `degraded` answers that said so, and seconds from the store's going on until every connection
    was answered from it; None: not before the end."""

    failed: int
    degraded: int
    healed_seconds: float | None
    load: LoadFigures


def drawn_row(draw: np.random.Generator) -> UserRow:
    """Of a user of the world."""
    values = {f"user{field}": f"v{draw.integers(0, VALUES)}" for field in range(8)}
    numbers = {f"user_count{field}": float(draw.normal(4, 3)) for field in range(3)}
    history = [f"v{value}" for value in draw.integers(0, VALUES, RECENT)]
    recent = [f"i{item}" for item in draw.integers(0, 1000, RECENT)]
    return UserRow({**values, **numbers, "history": history}, recent)


def put_users(store: RedisProcess) -> None:
    """A row for every user of the world, later than its bundle's."""
    draw, version = np.random.default_rng(3), Version(name="bench", buckets=8, rows=USERS, published=datetime.now(UTC))
    with store.client() as client, client.pipeline(transaction=False) as pipe:
        for number in range(USERS):
            pipe.hset(version.bucket(key_of(f"u{number}")), f"u{number}", write_row(drawn_row(draw)))
        pipe.set(CURRENT, version.model_dump_json())
        pipe.execute()


class Healing(Background):
    """Looks, over connections of its own, when the store's rows are answered from again."""

    def __init__(self, target: str) -> None:
        super().__init__()
        self._target, self.healed = target, 0.0

    def work(self) -> None:
        with ExitStack() as open_:
            clients = [open_.enter_context(RankingClient(self._target)) for _ in range(CONNECTIONS)]
            while not self.stop.wait(LOOK_SECONDS):
                causes = [stage.cause for client in clients for stage in client.rank("u1", seconds=DEADLINE).stages
                          if stage.name == "user"]
                if not any(causes):
                    self.healed = time.monotonic()
                    return


def measure(folder: Path, bundle: Path, seconds: float) -> OutageFigures:
    """The store says nothing for `seconds`."""
    with RedisProcess(folder) as store:
        put_users(store)
        server = ServerProcess(bundle, folder / "outage.log", options=("--user-store", store.address, "--workers", "2"))
        try:
            begun = time.monotonic()
            offered(server.target, RATE, BEFORE, DEADLINE)
            starting = time.monotonic() - begun - BEFORE  # seconds until a generator sends
            found = list[LoadFigures]()
            load = threading.Thread(target=lambda: found.append(
                offered(server.target, RATE, BEFORE + seconds + AFTER, DEADLINE)))
            load.start()
            time.sleep(starting + BEFORE)
            store.stop()
            time.sleep(seconds)
            went_on = time.monotonic()
            store.go_on()
            with Healing(server.target) as healing:
                load.join()
        finally:
            server.stop()
    healed = healing.healed - went_on if healing.healed else None
    return OutageFigures(found[0].requests - found[0].codes.get("OK", 0), found[0].degraded, healed, found[0])

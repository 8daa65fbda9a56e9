"""SIGKILL at random moments while changes are sent: is everything there that was acknowledged?"""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np

from serving.proto import sluice_pb2 as pb
from serving.server.catalog_client import CatalogClient, ItemChange
from serving.server.client import RankingClient
from serving.server.connection import RankingFailed
from sluice.demo.server_process import ServerProcess

LONGEST_SECONDS = 0.5  # before a kill
ASKED_AT_ONCE = 1000  # candidates


class Withdrawals:
    """Withdraws one item of the world after the other, until the server is gone. `acknowledged` are those answered."""

    def __init__(self, items: int) -> None:
        self._items, self._next = items, 0
        self.acknowledged: list[str] = []

    def send(self, target: str, size: int = 5) -> None:
        with CatalogClient(target) as client:
            while self._next + size <= self._items:
                wanted = [f"i{number}" for number in range(self._next, self._next + size)]
                self._next += size
                try:
                    answer = client.withdraw([ItemChange(item=item, version=1) for item in wanted], seconds=5.0)
                except RankingFailed:
                    return
                self.acknowledged += [one.item_id for one in answer.results if one.outcome == pb.ChangeResult.APPLIED]


def lost(target: str, items: list[str]) -> int:
    """How many of the withdrawn items the server still shows where they are asked for by name."""
    with RankingClient(target) as client:
        return sum(len(client.rank("u0", limit=100, candidates=items[start : start + ASKED_AT_ONCE], seconds=5.0).items)
                   for start in range(0, len(items), ASKED_AT_ONCE))


def measure(bundle: Path, folder: Path, items: int, kills: int, seed: int = 0) -> dict[str, float]:
    """Kills, how many acknowledged changes were lost over all of them, and the slowest start in between."""
    draw, told, starts = np.random.default_rng(seed), Withdrawals(items), [0.0]
    missing, options = 0, ("--fresh", str(folder / "killed"), "--workers", "1")
    server = ServerProcess(bundle, folder / "killed.log", options=options)
    try:
        for _ in range(kills):
            sender = threading.Thread(target=told.send, args=(server.target,))
            sender.start()
            time.sleep(float(draw.uniform(0.05, LONGEST_SECONDS)))
            server.process.kill()
            server.process.wait()
            sender.join()
            begun = time.monotonic()
            server = ServerProcess(bundle, folder / "killed.log", options=options)
            starts.append(time.monotonic() - begun)
            missing += lost(server.target, told.acknowledged)
    finally:
        server.stop()
    return {"kills": kills, "acknowledged": len(told.acknowledged), "acknowledged_lost": missing,
            "slowest_start_s": max(starts)}

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
ASKED_AT_ONCE = 1000  # candidates, or changes
KINDS = ("withdraw", "set_bids", "set_stock", "upsert")  # methods of the client


class Changes:
    """Sends changes of four kinds in turn, each of items of its own, until the server is gone: withdrawals, bids,
    stock, and items that the world has not; after the last item again from the first, in a later version.
    `acknowledged` are those answered, by kind."""

    def __init__(self, items: int) -> None:
        self._items, self._next = items, 0
        self.acknowledged: dict[str, list[ItemChange]] = {kind: [] for kind in KINDS}

    @property
    def withdrawn(self) -> list[str]:
        return [one.item for one in self.acknowledged["withdraw"]]

    def __len__(self) -> int:
        return sum(map(len, self.acknowledged.values()))

    def send(self, target: str, size: int = 5) -> None:
        with CatalogClient(target) as client:
            while True:
                lap, first = divmod(self._next, self._items)
                kind = KINDS[first // size % len(KINDS)]
                name = "new" if kind == "upsert" else "i"
                numbers = range(first, min(first + size, self._items))
                wanted = [change(f"{name}{number}", kind, lap + 1) for number in numbers]
                self._next += len(numbers)
                try:
                    answer = getattr(client, kind)(wanted, seconds=5.0)
                except RankingFailed:
                    return
                self.acknowledged[kind] += [one for one, told in zip(wanted, answer.results, strict=True)
                                            if told.outcome == pb.ChangeResult.APPLIED]

    def forgotten(self, target: str) -> int:
        """How many of those acknowledged change something when they are sent again: the server has lost them. Those
        withdrawn it must not show either."""
        found = lost(target, self.withdrawn)
        with CatalogClient(target) as client:
            for kind, told in self.acknowledged.items():
                for start in range(0, len(told), ASKED_AT_ONCE):
                    answer = getattr(client, kind)(told[start : start + ASKED_AT_ONCE], seconds=5.0)
                    found += sum(one.outcome != pb.ChangeResult.SUPERSEDED for one in answer.results)
        return found


def change(item: str, kind: str, version: int = 1) -> ItemChange:
    """Of the kind, with what it needs."""
    return ItemChange(item=item, version=version, bid=0.5 if kind in ("upsert", "set_bids") else None,
                      stock=3.0 if kind == "set_stock" else None, values={} if kind == "upsert" else None)


def lost(target: str, items: list[str]) -> int:
    """How many of the withdrawn items the server still shows where they are asked for by name."""
    with RankingClient(target) as client:
        return sum(len(client.rank("u0", limit=100, candidates=items[start : start + ASKED_AT_ONCE], seconds=5.0).items)
                   for start in range(0, len(items), ASKED_AT_ONCE))


def measure(bundle: Path, folder: Path, items: int, kills: int, seed: int = 0) -> dict[str, float]:
    """Kills, in how many of them changes were being sent, how many acknowledged ones were lost over all of them, and
    the slowest start in between."""
    draw, told, starts = np.random.default_rng(seed), Changes(items), [0.0]
    missing, amid, options = 0, 0, ("--fresh", str(folder / "killed"), "--workers", "1")
    server = ServerProcess(bundle, folder / "killed.log", options=options)
    try:
        for _ in range(kills):
            sender = threading.Thread(target=told.send, args=(server.target,))
            sender.start()
            time.sleep(float(draw.uniform(0.05, LONGEST_SECONDS)))
            amid += sender.is_alive()
            server.process.kill()
            server.process.wait()
            sender.join()
            begun = time.monotonic()
            server = ServerProcess(bundle, folder / "killed.log", options=options)
            starts.append(time.monotonic() - begun)
            missing += told.forgotten(server.target)
    finally:
        server.stop()
    return {"kills": kills, "amid_changes": amid, "acknowledged": len(told), "acknowledged_lost": missing,
            "slowest_start_s": max(starts)}

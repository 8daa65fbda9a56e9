"""Changes of the synthetic world's items, drawn: mostly bids; stock, withdrawals, items new or described anew."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np

from benchmarks.serving.funnel import VALUES
from serving.proto import sluice_pb2 as pb
from serving.server.catalog_client import CatalogClient, ItemChange
from serving.server.connection import RankingFailed
from serving.server.delivery import Delivery

KINDS = ("bid", "stock", "withdraw", "upsert")
SHARES = (0.75, 0.15, 0.05, 0.05)
NEW = 0.5  # of the upserts
LOOK_SECONDS = 0.1  # looking takes the server's time, too


class DrawnChanges:
    """Endless batches for `items` items of the world; versions rise with every change."""

    def __init__(self, items: int, seed: int = 0) -> None:
        self._items, self._draw, self._version = items, np.random.default_rng(seed), time.time_ns() // 1000
        self._new = 0

    def batch(self, size: int) -> tuple[str, list[ItemChange]]:
        """A kind, and changes of that kind."""
        kind = str(self._draw.choice(KINDS, p=SHARES))
        return kind, [self._change(kind) for _ in range(size)]

    def _change(self, kind: str) -> ItemChange:
        self._version += 1
        item = f"i{self._draw.integers(0, self._items)}"
        if kind == "bid":
            return ItemChange(item=item, version=self._version, bid=float(self._draw.lognormal()))
        if kind == "stock":
            return ItemChange(item=item, version=self._version, stock=float(self._draw.integers(0, 20)))
        if kind == "withdraw":
            return ItemChange(item=item, version=self._version)
        if self._draw.random() < NEW:
            self._new += 1
            item = f"new{self._version}"
        values = {f"item{field}": f"v{self._draw.integers(0, VALUES)}" for field in range(16)}
        rates = {f"item_rate{field}": float(self._draw.normal(4, 3)) for field in range(6)}
        return ItemChange(item=item, version=self._version, values={**values, **rates},
                          bid=float(self._draw.lognormal()))


def send(client: CatalogClient, kind: str, changes: list[ItemChange]) -> pb.ChangeResponse:
    method = {"bid": client.set_bids, "stock": client.set_stock, "withdraw": client.withdraw,
              "upsert": client.upsert}[kind]
    return method(changes)


@dataclass(frozen=True)
class OwnConnection(Delivery):
    """Clients of one process that share none, and so may meet different workers."""

    def options(self, target: str) -> list[tuple[str, Any]]:
        return [*super().options(target), ("grpc.use_local_subchannel_pool", 1)]


@contextmanager
def connected(target: str, count: int) -> Iterator[list[CatalogClient]]:
    """So many clients with connections of their own, one after the other."""
    with ExitStack() as stack:
        clients = list[CatalogClient]()
        for _ in range(count):
            clients.append(stack.enter_context(CatalogClient(target, delivery=OwnConnection())))
            clients[-1].status()
        yield clients


class Updater:
    """While it is open, `sender` gets `per_second` changes in batches of `size`, at their times whatever the server
    does. `visible` are seconds from sending a batch until every one of `watchers` shows it, of one batch at a time.
    `withdrawn` are items of which the last that was sent is an acknowledged withdrawal, `sequence` is the highest
    number acknowledged."""

    def __init__(
        self, sender: CatalogClient, watchers: Sequence[CatalogClient], drawn: DrawnChanges, per_second: float,
        size: int,
    ) -> None:
        self._sender, self._drawn, self._gap, self._size = sender, drawn, size / per_second, size
        self._watchers = watchers
        self.sent, self.outcomes = 0, Counter[str]()
        self.visible: list[float] = []
        self.recalls: list[float] = []
        self.status: list[pb.CatalogStatus] = []
        self.withdrawn: set[str] = set()
        self._last = (0, 0.0)
        self._began = self._ended = 0.0
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._send), threading.Thread(target=self._watch)]

    @property
    def sequence(self) -> int:
        return self._last[0]

    @property
    def rate(self) -> float:
        """Changes a second that were acknowledged, once it is closed."""
        return self.sent / (self._ended - self._began)

    def __enter__(self) -> Updater:
        self._began = time.monotonic()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended = time.monotonic()
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _send(self) -> None:
        for due in self._times():
            if self._stop.wait(max(due - time.monotonic(), 0.0)):
                return
            kind, changes = self._drawn.batch(self._size)
            begun = time.monotonic()
            self.withdrawn -= {change.item for change in changes if kind == "upsert"}
            try:
                answer = send(self._sender, kind, changes)
            except RankingFailed as error:
                self.outcomes[error.code] += len(changes)
                continue
            self.sent += len(changes)
            if kind == "withdraw":
                self.withdrawn |= {one.item_id for one in answer.results if one.outcome == pb.ChangeResult.APPLIED}
            self.outcomes.update(pb.ChangeResult.Outcome.Name(one.outcome) for one in answer.results)
            self._last = (answer.sequence, begun)

    def _times(self) -> Iterator[float]:
        due = time.monotonic()
        while True:
            yield due
            due += self._gap

    def _watch(self) -> None:
        while not self._stop.wait(LOOK_SECONDS):
            sequence, begun = self._last
            waiting = set(range(len(self._watchers))) if sequence else set[int]()
            while waiting and not self._stop.wait(LOOK_SECONDS):
                self.status = [watcher.status() for watcher in self._watchers]
                waiting = {place for place in waiting if self.status[place].applied_sequence < sequence}
            if sequence and not waiting:
                self.visible.append(time.monotonic() - begun)
                self.recalls += [one.recall for one in self.status if one.HasField("recall")]

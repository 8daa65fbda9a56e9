"""Who visits the simulated site, what they ask for and what they click of what is shown: all by one generator.

Clicks are appended to a folder of Parquet files, as a web page would report them: this and the server's answer log are
all that the platform learns of a visit.
"""

from __future__ import annotations

import threading
import time
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from contracts.atomic_write import aside
from pipelines.marketplace.click_stream import Policy
from pipelines.marketplace.truth import Truth
from pipelines.marketplace.world import HOUR_WEIGHTS, Population

FLUSH_SECONDS = 1.0
SHOWN_ITEMS = 8
CLICKS = pa.schema([
    ("request_id", pa.string()), ("user_id", pa.string()), ("item_id", pa.string()),
    ("event_time", pa.timestamp("us", "UTC")), ("known_time", pa.timestamp("us", "UTC")),
])
World = tuple[Population, Policy, Truth]


class Visitors:
    """`click_dropoff` maps bundle versions to the share of their clicks that users no longer make; 0 for any other.

    `clicks` is the folder that clicks are appended to; `weekday` (0 Monday) that of the simulated day. Visits that are
    drawn and answered in the same order by the same generator bring the same clicks.
    """

    def __init__(self, world: World, clicks: Path, draw: np.random.Generator) -> None:
        self._population, self._policy, self._truth = world
        self._rng, self.clicks = draw, clicks
        self._codes = {name: {value: code for code, value in enumerate(self._truth.values[name])}
                       for name in ("user", "item", "device", "placement", "hour")}
        self._context: dict[str, dict[str, int]] = {}
        self._waiting: list[dict[str, str | datetime]] = []
        self._lock, self._flushed = threading.Lock(), time.monotonic()
        self.click_dropoff: dict[str, float] = {}
        self.weekday = 0
        clicks.mkdir(parents=True, exist_ok=True)

    def request(self, user: str = "") -> Any:
        """A visit of somebody, the busy more often, at an hour of the simulated day."""
        from serving.proto import sluice_pb2 as pb
        from serving.request.wire_values import to_value

        who = int(self._policy.draw_users(self._rng, 1)[0])
        habit = int(self._population.device_habit[who])
        device = habit if self._rng.random() < 0.8 else int(self._rng.integers(0, 3))
        codes = {"device": device, "placement": int(self._rng.choice(4, p=[0.3, 0.4, 0.2, 0.1])),
                 "hour": int(self._rng.choice(24, p=HOUR_WEIGHTS / HOUR_WEIGHTS.sum()))}
        context = {name: to_value(self._truth.values[name][code]) for name, code in codes.items() if name != "hour"}
        context |= {"hour": to_value(codes["hour"]), "weekday": to_value(self.weekday)}
        request_id = self.name()
        self._context[request_id] = codes
        return pb.RankRequest(user_id=self._truth.values["user"][who], context=context, limit=SHOWN_ITEMS,
                              request_id=request_id)

    def name(self) -> str:
        """Of the next visit: its request id."""
        return uuid.uuid4().hex

    def answered(self, request: Any, answer: Any) -> None:
        """Clicks on each shown item with its true probability at its position, less what drops off."""
        codes = self._context.pop(request.request_id)
        items = np.array([self._codes["item"][item.item_id] for item in answer.items], dtype=np.int64)
        users = np.full(len(items), self._codes["user"][request.user_id])
        context = {name: np.full(len(items), code) for name, code in codes.items()}
        logit = self._truth.logit(self._truth.codes(users, items, context, np.arange(1, len(items) + 1)))
        noisy = logit + self._truth.noise_std * self._rng.normal(0, 1, len(items))
        probability = (1 - self.click_dropoff.get(answer.bundle_version, 0.0)) / (1 + np.exp(-noisy))
        now = datetime.now(UTC)
        hits = np.flatnonzero(self._rng.random(len(items)) < probability)
        with self._lock:
            self._waiting += [
                {"request_id": request.request_id, "user_id": request.user_id, "item_id": answer.items[hit].item_id,
                 "event_time": now, "known_time": now} for hit in hits]
        if time.monotonic() - self._flushed > FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Writes the clicks that wait."""
        with self._lock:
            rows, self._waiting, self._flushed = self._waiting, [], time.monotonic()
        if rows:
            with aside(self.clicks / f"clicks-{uuid.uuid4().hex}.parquet") as draft:
                pq.write_table(pa.Table.from_pylist(rows, CLICKS), draft)

"""The marketplace's log as it is delivered day by day: the page's old rule fills some slots, the server the others.

    RAW/impressions/part-DDD.parquet, RAW/clicks/part-DDD.parquet     as pipelines/marketplace writes them

What the server answered in real time lies on the simulated day at the hour that the visit named.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from contracts.atomic_write import aside
from contracts.config.simulation import Simulation
from pipelines.marketplace.marketplace import build_world, simulate
from pipelines.marketplace.truth import Truth
from serving.replay import response_history
from sluice.demo.slates import Market

TABLES = ("impressions", "clicks")
READ_SECONDS, CLICK_SECONDS = 2, 40
EVALUATED_ANSWERS = 400


class MarketDays:
    """`undelivered` holds what the old rule showed on all days; `raw` is what the platform reads."""

    def __init__(self, settings: Simulation, seed: int, folder: Path) -> None:
        self.settings, self.raw, self._seed = settings, folder / "raw", seed
        self._undelivered = folder / "undelivered"
        simulate(settings, seed, self._undelivered, folder / "truth")
        self.world = build_world(settings, seed)
        for name in ("users", "items"):
            self.raw.mkdir(parents=True, exist_ok=True)
            (self._undelivered / name).rename(self.raw / name)

    def date(self, number: int) -> str:
        """Of day `number`, as in 2026-01-18."""
        return (self.settings.start + timedelta(days=number)).date().isoformat()

    def deliver(self, number: int, answers: pa.Table | None = None, clicks: pa.Table | None = None) -> int:
        """Day `number` of the log, with the server's answers and the clicks on them where there are any. Returns
        the number of its impressions."""
        shown = {name: pq.read_table(self._undelivered / name / f"part-{number:03d}.parquet") for name in TABLES}
        if answers is not None and clicks is not None:
            served = self._served(number, answers, clicks)
            shown = {name: pa.concat_tables([shown[name], served[name].select(shown[name].column_names)
                                             .cast(shown[name].schema)]) for name in TABLES}
        for name, table in shown.items():
            self._write(table, name, number)
        return int(shown["impressions"].num_rows)

    def poison(self, number: int) -> None:
        """Delivers the day as a broken exporter would: most devices are lost."""
        path = self.raw / "impressions" / f"part-{number:03d}.parquet"
        table = pq.read_table(path)
        lost = np.random.default_rng([self._seed, number]).random(table.num_rows) < 0.7
        column = table.column_names.index("device")
        broken = pc.if_else(pa.array(lost), pa.scalar(None, pa.string()), table["device"])
        self._write(table.set_column(column, "device", broken), "impressions", number)

    def share_of_oracle(self, answers: pa.Table) -> float:
        """Expected bid x click of what was shown, over that of the best items by the truth, for the same visits."""
        truth, bids = self.world[2], self.world[0].bid
        code = {item: number for number, item in enumerate(truth.values["item"])}
        reached = possible = 0.0
        for row in _spread(answers, EVALUATED_ANSWERS).to_pylist():
            market = _market(truth, bids, row["user"], dict(row["context"]), len(row["items"]))
            reached += market.total("value", np.array([code[item] for item in row["items"]]))
            possible += market.total("value", market.best("value"))
        return reached / possible if possible else 0.0

    def _write(self, table: pa.Table, name: str, number: int) -> None:
        with aside(self.raw / name / f"part-{number:03d}.parquet") as draft:
            pq.write_table(table, draft, coerce_timestamps="us")

    def _served(self, number: int, answers: pa.Table, clicks: pa.Table) -> dict[str, pa.Table]:
        rng = np.random.default_rng([self._seed, 1, number])
        items = pq.read_table(self.raw / "items", columns=["item_id", "bid"])
        bid = dict(zip(items["item_id"].to_pylist(), items["bid"].to_pylist(), strict=True))
        clicked = set(zip(clicks["request_id"].to_pylist(), clicks["item_id"].to_pylist(), strict=True))
        shown, hits = [], []
        start = self.settings.start + timedelta(days=number)
        for row in answers.to_pylist():
            context = dict(row["context"])
            at = start + timedelta(hours=int(context["hour"]), seconds=float(rng.uniform(0, 3600)))
            for item, position in zip(row["items"], row["positions"], strict=True):
                hit = (row["request_id"], item) in clicked
                key = {"request_id": row["request_id"], "user_id": row["user"], "item_id": item}
                shown.append(key | _impression(at, context, position, bid[item], hit))
                if hit:
                    hits.append(key | {"event_time": at + timedelta(seconds=CLICK_SECONDS),
                                       "known_time": at + timedelta(seconds=2 * CLICK_SECONDS)})
        return {"impressions": pa.Table.from_pylist(shown), "clicks": pa.Table.from_pylist(hits)}


def _impression(at: datetime, context: dict[str, str], position: int, bid: float, hit: bool) -> dict[str, object]:
    return {"event_time": at, "known_time": at + timedelta(seconds=READ_SECONDS), "position": position, "bid": bid,
            "device": context["device"], "placement": context["placement"], "dwell_seconds": 20.0 if hit else None}


def _market(truth: Truth, bids: np.ndarray, user: str, context: dict[str, str], length: int) -> Market:
    return Market(truth.slate(user, context), bids, np.ones(len(bids), dtype=bool), 0.0, length)


def _spread(table: pa.Table, count: int) -> pa.Table:
    """At most `count` rows, evenly over the table."""
    return table.take(np.unique(np.linspace(0, max(table.num_rows - 1, 0), min(count, table.num_rows)).astype(int)))


def read_answers(folder: Path, since: datetime, until: datetime, requests: Collection[str]) -> pa.Table:
    """What the log between two instants holds of these requests, by their ids."""
    columns = ["request_id", "time", "user", "context", "items", "positions", "bundle_version"]
    log = response_history.read(folder, since, until).table
    found = log.filter((pc.field("status") == "OK") & pc.field("request_id").isin(list(requests)))
    return found.select(columns).sort_by("request_id")

"""A log of ten days with every kind of field, and its configuration."""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from contracts.config.config import Config

START = datetime(2026, 1, 5, tzinfo=UTC)
DAYS, ROWS = 10, 1500
FIELDS: list[dict[str, Any]] = [
    {"name": "user", "kind": "categorical", "side": "user", "column": "user_id"},
    {"name": "item", "kind": "categorical", "side": "item", "column": "item_id", "min_count": 1},
    {"name": "place", "kind": "categorical", "side": "context", "min_count": 1},
    {"name": "price", "kind": "numeric", "side": "item", "granularities": [4]},
    {"name": "recent", "kind": "sequence", "side": "user", "of": "item", "length": 3},
    {"name": "of_item", "kind": "counter", "side": "item", "by": ["item_id"], "windows": ["2d"]},
    {"name": "pair", "kind": "cross", "side": "cross", "parts": ["place", "price#4"]},
]


def config(fields=FIELDS, **features):
    return Config.model_validate({
        "name": "small", "fields": fields, "features": {"also_fresh": True} | features, "serve": {"parity_rows": 40},
        "log": {"path": "{data}/log.parquet", "user_id": "user_id", "item_id": "item_id", "event_time": "time",
                "position": "position", "key": ["id"]},
        "label": {"clicks": {"path": "{data}/clicks.parquet", "on": ["id"], "event_time": "time", "window": "6h"}},
    })


def wider(**features):
    """With twice the fields of every kind but the sequence, and five times the windows, of the same keys."""
    again = [deepcopy(field) | {"name": f"{field['name']}_again", "column": field.get("column", field["name"])}
             for field in FIELDS if field["kind"] in ("categorical", "numeric")]
    counter, cross = (next(field for field in FIELDS if field["kind"] == kind) for kind in ("counter", "cross"))
    more = [counter | {"name": "of_item_again", "windows": ["7h", "12h", "1d", "3d", "5d"], "statistics": ["rate"]},
            cross | {"name": "pair_again", "parts": ["place", "item"]}, cross | {"name": "hashed", "buckets": 50}]
    return config([*FIELDS, *again, *more], **features)


def bad_row(data, folder):
    """The log of `data` with one more row, shown at no position."""
    log = pq.read_table(data / "log.parquet")
    row = log.slice(0, 1).to_pylist()[0] | {"id": ROWS, "position": 0}
    pq.write_table(pa.concat_tables([log, pa.Table.from_pylist([row], log.schema)]), folder / "log.parquet")
    (folder / "clicks.parquet").write_bytes((data / "clicks.parquet").read_bytes())
    return folder


def write_log(folder, click_rate=0.3):
    """The last day alone knows the place "late"."""
    random = np.random.default_rng(7)
    hours = np.sort(random.uniform(0, 24 * DAYS, ROWS))
    times = [START + timedelta(hours=float(hour)) for hour in hours]
    item = random.integers(0, 12, ROWS)
    place = np.where(hours > 24 * (DAYS - 2), "late", random.choice(["x", "y"], ROWS))
    folder.mkdir(parents=True, exist_ok=True)
    log = {"id": np.arange(ROWS), "user_id": [f"u{u}" for u in random.integers(0, 20, ROWS)],
           "item_id": [f"i{i}" for i in item], "time": times, "position": random.integers(1, 6, ROWS), "place": place,
           "price": item * 1.5}
    pq.write_table(pa.table(log), folder / "log.parquet")
    clicked = np.flatnonzero(random.random(ROWS) < click_rate)
    moments = pa.array([times[i] + timedelta(minutes=5) for i in clicked], pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"id": clicked, "time": moments}), folder / "clicks.parquet")
    return folder

"""A log of six days, the last two of them the test window, beside what was trained on it."""

from __future__ import annotations

import shutil
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from contracts.artifacts import ITEM, LABEL, LABEL_TIME, ROW, TIME, USER, Artifacts
from contracts.windows import TimedWindows
from tests.serving.conftest import Market, encode_events
from tests.serving.replay.log_times import HOURS, START, TEST


def write_log(market: Market, trained: Artifacts, folder: Path) -> Artifacts:
    """The market's events as the pipelines leave them: six days, the last two of them the test window.

    `folder` gets a copy of what training left beside them.
    """
    out = Artifacts(Path(shutil.copytree(trained.out, folder)))
    draw, count = np.random.default_rng(8), len(market.labels)
    times = [START + timedelta(hours=float(hour)) for hour in np.sort(draw.uniform(0, HOURS, count))]
    users = draw.integers(0, len(market.users[USER]), count)
    reserved = {
        ROW: np.arange(count), USER: [market.users[USER][u] for u in users], ITEM: market.events["item_id"],
        TIME: times, LABEL: market.labels, LABEL_TIME: [time + timedelta(hours=1) for time in times],
    }
    raw = pa.table(reserved | market.events)
    stamp = pa.timestamp("us", tz="UTC")
    for name in (TIME, LABEL_TIME):
        raw = raw.set_column(raw.schema.get_field_index(name), name, raw[name].cast(stamp))
    write_days(out.features, raw, times)
    request, candidate = encode_events(market)
    columns: dict[str, Any] = {ROW: np.arange(count), USER: users.astype(np.int64), LABEL: market.labels}
    for slots, part in ((market.spec.block_ids("request"), request), (market.spec.block_ids("candidate"), candidate)):
        for slot in slots:
            values = part.ids[:, slot.start : slot.start + slot.width]
            columns[slot.name] = values[:, 0] if slot.width == 1 else list(values)
    for dense in (*market.spec.block_dense("request"), *market.spec.block_dense("candidate")):
        raw_values = market.events[dense.field]
        columns[dense.name] = np.array([np.nan if v is None else v for v in raw_values], dtype=np.float64)
    encoded = pa.table(columns)
    late = np.array([time >= TEST for time in times])
    for name, rows in (("train", ~late), ("test", late)):
        chosen = np.flatnonzero(rows)
        write_days(out.examples(name), encoded.take(pa.array(chosen)), [times[row] for row in chosen])
    spans = {"train": (START, TEST), "test": (TEST, START + timedelta(hours=HOURS))}
    TimedWindows(spans=spans).write(out.windows)
    return out


def write_days(folder: Path, table: pa.Table, times: list[datetime]) -> None:
    days = np.array([f"{time:%Y-%m-%d}" for time in times])
    for day in np.unique(days):
        target = folder / f"day={day}"
        target.mkdir(parents=True)
        pq.write_table(table.take(pa.array(np.flatnonzero(days == day))), target / "part-0.parquet")

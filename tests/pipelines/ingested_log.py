"""Writes small ingested logs for the feature tests: the files ingestion would leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from contracts.artifacts import Artifacts
from contracts.windows import TimedWindows

START = datetime(2026, 1, 5, tzinfo=UTC)
HOUR = timedelta(hours=1)
INSTANT = pa.timestamp("us", tz="UTC")
ROLES = {
    "_row": pa.int64(),
    "_user": pa.string(),
    "_item": pa.string(),
    "_time": INSTANT,
    "_known": INSTANT,
    "_label": pa.float32(),
    "_label_time": INSTANT,
    "_bid": pa.float64(),
}


def event(row: int, hours: float, user: str | None = "u", item: str | None = "i", **more: Any) -> dict[str, Any]:
    """An impression `hours` after START, known at once, without a click unless `clicked` (hours) says when one was."""
    time = START + hours * HOUR
    clicked = more.pop("clicked", None)
    known = START + more.pop("known", hours) * HOUR
    label_time = known if clicked is None else START + clicked * HOUR
    label = float(clicked is not None)
    roles = {"_row": row, "_user": user, "_item": item, "_time": time, "_known": known, "_label": label}
    return {**roles, "_label_time": label_time, "_bid": 1.0, **more}


def write_ingested(
    out: Artifacts,
    events: Sequence[Mapping[str, Any]],
    users: Sequence[Mapping[str, Any]] = (),
    items: Sequence[Mapping[str, Any]] = (),
) -> Artifacts:
    """The statistics window is the first day; columns besides the roles get the type of their values."""
    table = pa.Table.from_pylist([dict(e) for e in events])
    roles = {name: table[name].cast(kind) for name, kind in ROLES.items() if name in table.column_names}
    table = pa.table({name: roles.get(name, table[name]) for name in table.column_names})
    for day in sorted({e["_time"].date() for e in events}):
        folder = out.events / f"day={day.isoformat()}"
        folder.mkdir(parents=True, exist_ok=True)
        chosen = [e["_time"].date() == day for e in events]
        pq.write_table(table.filter(pa.array(chosen)), folder / "part.parquet")
    for rows, folder in ((users, out.users), (items, out.items)):
        if rows:
            folder.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.Table.from_pylist([dict(row) for row in rows]), folder / "part.parquet")
    end = START + timedelta(days=1)
    TimedWindows(spans={"statistics": (START, end)}).write(out.windows)
    return out

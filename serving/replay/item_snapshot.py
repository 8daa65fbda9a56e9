"""The online item table as it stood when the test window, or another one, began, from what the log showed before.

The published table knows the whole log: its counters hold the clicks that the window judges by. Here every item
carries its features as last shown before; one never shown has none of its counters.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from contracts.artifacts import CLICKS, DRAWS, ITEM, LABEL, ROW, SHOWN, TIME, Artifacts
from contracts.errors import DataError
from contracts.features.feature_spec import FeatureSpec
from contracts.windows import read_timed


class SnapshotArtifacts(Artifacts):
    """The run's artifacts with the item table of `write`; a bundle assembled from it knows no test label."""

    @property
    def online_items(self) -> Path:
        """Of the snapshot, in place of the published table."""
        return self.candidates / "online" / "items"


def events(
    out: Artifacts, columns: list[str], start: datetime | None, end: datetime, where: pc.Expression | None = None
) -> pa.Table:
    """Rows of OUT/features with start <= time < end, in time order, at one time by their numbers, as the order in
    files is the engine's; those alone of which `where` holds, as they are read."""
    features = ds.dataset(out.features, format="parquet", partitioning="hive", exclude_invalid_files=True)
    missing = [name for name in columns if name not in features.schema.names]
    if missing:
        raise DataError(f"{out.features} has no column {missing[0]!r}; run `sluice features` again")
    chosen = ds.field(TIME) < pa.scalar(end)
    if start is not None:
        chosen &= ds.field(TIME) >= pa.scalar(start)
    if where is not None:
        chosen &= where
    found = features.to_table(columns=[*dict.fromkeys([*columns, TIME, ROW])], filter=chosen)
    return found.sort_by([(TIME, "ascending"), (ROW, "ascending")]).select(columns).combine_chunks()


def window(out: Artifacts, name: str) -> tuple[datetime, datetime]:
    """[start, end) of a window as resolved by the pipelines."""
    return read_timed(out.windows)[name]


def write(out: Artifacts, spec: FeatureSpec, before: str = "test") -> None:
    """Replaces OUT/candidates/online/items by the items as of the start of window `before`."""
    table = pq.read_table(out.online_items).sort_by(ITEM).combine_chunks()
    fields = [field.name for field in spec.of_side("item")]
    shown = events(out, [ITEM, LABEL, TIME, *fields], None, window(out, before)[0])
    keys = pc.index_in(shown[ITEM], value_set=table[ITEM].combine_chunks()).to_numpy(zero_copy_only=False)
    last = np.full(table.num_rows, -1, dtype=np.int64)
    real = np.flatnonzero(~np.isnan(keys.astype(np.float64)))
    at = keys[real].astype(np.int64)
    last[at] = real  # the rows are in time order: the latest stays
    take = pa.array(np.where(last >= 0, last, 0), mask=last < 0)
    for name in fields:
        values = shown[name].take(take).cast(table.schema.field(name).type)
        if spec.by_name[name].kind != "counter":
            values = pc.if_else(pa.array(last >= 0), values, table[name])
        table = table.set_column(table.schema.get_field_index(name), name, values)
    clicks = np.bincount(at, weights=shown[LABEL].to_numpy()[real], minlength=table.num_rows)
    counts = np.bincount(at, minlength=table.num_rows)
    if DRAWS in pq.read_schema(next(out.features.glob("*/*.parquet"))).names:
        counts = np.full(table.num_rows, clicks.sum()).astype(np.int64)  # as in the online table of positives alone
    for name, values in ((SHOWN, counts), (CLICKS, clicks.astype(np.int64))):
        table = table.set_column(table.schema.get_field_index(name), name, pa.array(values, type=pa.int64()))
    target = SnapshotArtifacts(out.out).online_items
    target.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, target / "part-0.parquet")

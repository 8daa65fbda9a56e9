"""Which shown items of the response log were clicked, by the table of clicks that the configuration names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from contracts.config.config import Config
from contracts.errors import ConfigError, SchemaError

TIME = pa.timestamp("us", "UTC")


def read(config: Config, folder: Path) -> pa.Table:
    """request_id and item as text, `clicked` in UTC; rows that lack one are left out.

    Raises ConfigError when clicks are not joined by request and item, or are no Parquet; SchemaError without a column.
    """
    clicks, log = config.label.clicks, config.log
    if clicks is None or clicks.format != "parquet" or set(clicks.on) != {log.request_id, log.item_id}:
        raise ConfigError("the watch joins clicks in Parquet by request and item: label.clicks.on must name "
                          f"log.request_id and log.item_id ({log.request_id!r}, {log.item_id!r}) and no more")
    table = ds.dataset(folder, format="parquet", exclude_invalid_files=True)
    names = [str(log.request_id), str(log.item_id), clicks.event_time]
    for name in names:
        if name not in table.schema.names:
            raise SchemaError(f"{folder} has no column {name!r}; it has {', '.join(table.schema.names)}")
    request, item, clicked = table.to_table(columns=names).columns
    return pa.table({"request_id": request.cast(pa.string()), "item": item.cast(pa.string()),
                     "clicked": clicked.cast(TIME)}).drop_null()


def clicked(shown: pa.Table, clicks: pa.Table, within: int) -> np.ndarray:
    """bool [rows of `shown`]: a click on this item of this request came within so many seconds of the answer."""
    numbered = shown.select(["request_id", "item", "time"]).append_column("row", pa.array(np.arange(shown.num_rows)))
    met = clicks.join(numbered, ["request_id", "item"], join_type="inner").combine_chunks()
    waited = pc.subtract(met["clicked"].cast(pa.int64()), met["time"].cast(pa.int64())).to_numpy()
    hit = np.zeros(shown.num_rows, dtype=bool)
    hit[met["row"].to_numpy()[(waited >= 0) & (waited <= within * 1_000_000)]] = True
    return hit

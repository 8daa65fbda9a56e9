"""Which shown items of the response log were clicked, by the table of clicks that the configuration names."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from contracts.config.config import Config
from contracts.errors import ConfigError, DataError, SchemaError
from contracts.table_files import is_hidden, is_landed_name
from pipelines.reading import column_types

TIME = pa.timestamp("us", "UTC")


def read(config: Config, address: str | Path) -> pa.Table:
    """request_id and item as text, `clicked` in UTC; rows that lack one are left out.

    Raises ConfigError when clicks are not joined by request and item, or are neither Parquet nor landed by a server;
    SchemaError where no file has a column, or one of another kind; DataError where there are no files, or one is
    damaged. Each file is read as it is: a server lands other columns, or other types of them, once another bundle is
    served.
    """
    clicks, log, folder = config.label.clicks, config.log, Path(address)
    if clicks is None or set(clicks.on) != {log.request_id, log.item_id}:
        raise ConfigError("clicks on answers are joined by request and item: label.clicks.on must name log.request_id "
                          f"and log.item_id ({log.request_id!r}, {log.item_id!r}) and no more")
    there = _files(folder)
    if clicks.format.lower() != "parquet" and not all(is_landed_name(path.name) for path in there):
        raise ConfigError(f"clicks on answers are read as Parquet, and those at {folder} are {clicks.format} "
                          "(label.clicks.format); --clicks names the same clicks in Parquet: a copy of them, or the "
                          "folder that `sluice serve --fresh` lands them in")
    files = _parquet(there)
    if not files:
        raise DataError(f"no clicks at {address}; --clicks names a folder of this machine that holds some as Parquet")
    return _joined(files, [str(log.request_id), str(log.item_id), clicks.event_time], folder)


def _files(folder: Path) -> list[Path]:
    files = [path for path in folder.rglob("*") if path.is_file() and not is_hidden(path.relative_to(folder))]
    return [folder] if folder.is_file() else files


def _parquet(files: list[Path]) -> list[Path]:
    """Of those, by their names or by what they hold; a server's are, whatever the table's format."""
    others = [path for path in files if path.suffix != ".parquet"]
    known = ds.dataset(others, format="parquet", exclude_invalid_files=True).files if others else []
    return [path for path in files if path.suffix == ".parquet" or str(path) in known]


def _joined(files: list[Path], names: list[str], folder: Path) -> pa.Table:
    groups = column_types.groups(files, "clicks", names)
    held = {name for group in groups for name in column_types.types_of(group[0], "clicks")}
    for name in names:
        if name not in held:
            raise SchemaError(f"{folder} has no column {name!r}; it has {', '.join(sorted(held))}")
    return pa.concat_tables([_read(group, names) for group in groups]).drop_null()


def _read(files: list[Path], names: list[str]) -> pa.Table:
    """Files that have the columns alike; a column that they lack is null."""
    table = ds.dataset(files, format="parquet")
    found = table.to_table(columns=[name for name in names if name in table.schema.names])
    kinds = {"request_id": pa.string(), "item": pa.string(), "clicked": TIME}
    columns = [found[name] if name in found.column_names else pa.nulls(found.num_rows) for name in names]
    try:
        return pa.table([column.cast(kind, safe=False) for column, kind in zip(columns, kinds.values(), strict=True)],
                        list(kinds))
    except pa.ArrowException as error:
        held = ", ".join(f"{name} {column.type}" for name, column in zip(names, columns, strict=True))
        raise SchemaError(f"clicks: {files[0]} has {held}, which cannot be read as two keys and a time ({error}); "
                          "write keys as text or numbers, and the time as a timestamp") from None


class Unpaid(NamedTuple):
    """Clicks that hit nothing, by why: before the answer, beyond the time allowed, on nothing shown."""

    early: int
    late: int
    unknown: int


def unpaid(shown: pa.Table, clicks: pa.Table, within: int, since: datetime, until: datetime) -> Unpaid:
    """Those for which `clicked` finds no row of `shown`, which holds all of [since, until); `unknown` leaves out those
    on what other stretches may have shown."""
    numbered = clicks.append_column("click", pa.array(np.arange(clicks.num_rows)))
    row, waited = _met(shown, numbered, "click")
    known, hit, early = (np.zeros(clicks.num_rows, dtype=bool) for _ in range(3))
    known[row] = True
    hit[row[_inside(waited, within)]] = True
    early[row[waited < 0]] = True
    ours = pc.and_(pc.greater_equal(clicks["clicked"], pa.scalar(since + timedelta(seconds=within), TIME)),
                   pc.less(clicks["clicked"], pa.scalar(until, TIME))).to_numpy()
    return Unpaid(int((early & ~hit).sum()), int((known & ~early & ~hit).sum()), int((ours & ~known).sum()))


def clicked(shown: pa.Table, clicks: pa.Table, within: int) -> np.ndarray:
    """bool [rows of `shown`]: a click on this item of this request came within so many seconds of the answer."""
    numbered = shown.append_column("row", pa.array(np.arange(shown.num_rows)))
    row, waited = _met(numbered, clicks, "row")
    hit = np.zeros(shown.num_rows, dtype=bool)
    hit[row[_inside(waited, within)]] = True
    return hit


def _met(shown: pa.Table, clicks: pa.Table, number: str) -> tuple[np.ndarray, np.ndarray]:
    """Of each pair of an item shown and a click on it: the column `number`, and microseconds between the two."""
    names = ["request_id", "item", "time", *([number] if number in shown.column_names else [])]
    met = clicks.join(shown.select(names), ["request_id", "item"], join_type="inner").combine_chunks()
    waited = pc.subtract(met["clicked"].cast(pa.int64()), met["time"].cast(pa.int64()))
    return met[number].to_numpy(), waited.to_numpy()


def _inside(waited: np.ndarray, within: int) -> np.ndarray:
    return np.asarray((waited >= 0) & (waited <= within * 1_000_000))

"""What a bundle knows of the log that its events are recorded in."""

from __future__ import annotations

import json
import logging
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds

from contracts.artifacts import DAY, PUBLISHED_AT, READ_UNTIL, Artifacts
from contracts.config.config import Config
from contracts.errors import ConfigError
from contracts.features.event_features import ColumnType, EventFeatures, SharedFolderError, TimedKeyError

log = logging.getLogger("sluice.serving")


def write_event_features(config: Config, out: Artifacts, folder: Path) -> None:
    """Nothing where the log could not be recorded event by event; then the log of this process says why, as a warning
    where only the names of folders, or a key that tells the time, are in the way."""
    try:
        EventFeatures.of(config, _prior(out), _read_until(out), _columns(out), _item_columns(out)).write(folder)
    except (SharedFolderError, TimedKeyError) as error:
        log.warning("the bundle will record no events: %s", error)
    except ConfigError as error:
        log.info("the bundle will record no events: %s", error)


def _prior(out: Artifacts) -> float:
    """0 where no counter asks for a rate."""
    return float(json.loads(out.prior.read_text("utf-8"))["prior_rate"]) if out.prior.exists() else 0.0


def _read_until(out: Artifacts) -> datetime | None:
    """Of tables of an earlier release the publish."""
    table = ds.dataset(out.online_users, format="parquet") if out.online_users.exists() else None
    names = [name for name in (READ_UNTIL, PUBLISHED_AT) if table is not None and name in table.schema.names]
    if table is None or not names:
        return None
    found = table.head(1, columns=names[:1]).column(0).to_pylist()
    return found[0] if found else None


def _columns(out: Artifacts) -> dict[str, ColumnType]:
    """Of the ingested events, but for reserved ones."""
    if not out.events.exists():
        return {}
    schema = ds.dataset(out.events, format="parquet", partitioning="hive", exclude_invalid_files=True).schema
    return {field.name: _type(field.type) for field in schema
            if not field.name.startswith("_") and field.name != DAY}


def _item_columns(out: Artifacts) -> list[str]:
    """Of the ingested items' table, but for its key."""
    if not out.items.exists():
        return []
    return [name for name in ds.dataset(out.items, format="parquet").schema.names if not name.startswith("_")]


def _type(kind: pa.DataType) -> ColumnType:
    if pa.types.is_boolean(kind):
        return "flag"
    if pa.types.is_integer(kind):
        return "integer"
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    return "list" if pa.types.is_list(kind) or pa.types.is_large_list(kind) else "text"

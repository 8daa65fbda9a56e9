"""A run's online table of users -> one version in a store, read by all servers from one moment on."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
from pydantic import BaseModel, ConfigDict

from contracts.artifacts import PUBLISHED_AT, READ_UNTIL, RECENT_ITEMS, RECENT_TIMES, RECENT_VALUES, USER, Artifacts
from contracts.errors import DataError
from contracts.features.event_features import ToldEvents
from contracts.features.feature_spec import FeatureSpec
from serving.users import embedded_publisher, redis_publisher
from serving.users.published_users import ROWS_OF_A_BUCKET, Rows, UserRow, Version, key_of, write_row
from serving.users.user_store import place_of

BATCH_ROWS = 2_000
KEEP_SECONDS = 3600


class PublishedUsers(BaseModel):
    """What a run of `sluice publish-features` has done; `replaces` is the version that was read before."""

    model_config = ConfigDict(frozen=True)

    version: str
    published: datetime
    rows: int
    replaces: str | None
    seconds: float


def publish_users(out: Artifacts, store: str, keep: int = KEEP_SECONDS, older: bool = False) -> PublishedUsers:
    """Into a Redis, which `keep`s the version before for so many seconds, or a folder. Raises ConfigError where `store`
    is neither, DataError without an online table of users, while another one publishes, where the store fails, and
    where it has later users, unless `older`: then what was read before is still read."""
    begun, place = time.monotonic(), place_of(store)
    table, columns = _table(out), _columns(out)
    version = _version(table)
    rows = _rows(table, columns)
    if isinstance(place, Path):
        replaced = embedded_publisher.publish(place, version, rows, older)
    else:
        replaced = redis_publisher.publish(place, version, rows, keep, older)
    return PublishedUsers(version=version.name, published=version.published, rows=version.rows, replaces=replaced,
                          seconds=time.monotonic() - begun)


def _table(out: Artifacts) -> ds.Dataset:
    if not out.online_users.exists():
        raise DataError(f"{out.online_users} is not there; run `sluice features` first")
    return ds.dataset(out.online_users, format="parquet")


def _columns(out: Artifacts) -> list[str]:
    """The raw features of users, as the run's models read them."""
    return [field.name for field in FeatureSpec.read(out.encoding).of_side("user")]


def _version(table: ds.Dataset) -> Version:
    rows, now = table.count_rows(), datetime.now(UTC)
    told = [name for name in (READ_UNTIL, PUBLISHED_AT) if name in table.schema.names]  # the latter of earlier releases
    first = table.head(1, columns=told[:1]).to_pylist() if told else []
    published = first[0][told[0]] if first else now
    published = published if published.tzinfo else published.replace(tzinfo=UTC)
    return Version(name=f"{published:%Y%m%dT%H%M%S}-{secrets.token_hex(4)}", rows=rows, published=published,
                   buckets=max(1, -(-rows // ROWS_OF_A_BUCKET)))


def _rows(table: ds.Dataset, columns: list[str]) -> Iterator[Rows]:
    recent = [name for name in table.schema.names
              if name in (RECENT_ITEMS, RECENT_TIMES) or name.startswith(RECENT_VALUES)]
    for batch in table.to_batches(columns=[USER, *columns, *recent], batch_size=BATCH_ROWS):
        yield [(key_of(row[USER]), write_row(UserRow({name: row[name] for name in columns}, row.get(RECENT_ITEMS) or [],
                                                     _told(row)))) for row in batch.to_pylist()]


def _told(row: dict[str, Any]) -> ToldEvents:
    return ToldEvents(row.get(RECENT_TIMES) or [], {name.removeprefix(RECENT_VALUES): row[name] or [] for name in row
                                                   if name.startswith(RECENT_VALUES)})

"""A run's online table of users -> one version in a Redis or Valkey, read by all servers from one moment on.

Rows are written beside those that are read, and expire by themselves should the writer die. Then, in one transaction,
the new version becomes the one that is read, and the old one gets `keep` seconds for who still reads it.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.dataset as ds
import redis
from pydantic import BaseModel, ConfigDict
from redis.exceptions import LockError, LockNotOwnedError, RedisError

from contracts.artifacts import PUBLISHED_AT, RECENT_ITEMS, USER, Artifacts
from contracts.errors import DataError
from contracts.features.feature_spec import FeatureSpec
from contracts.shown import short
from serving.redis_store.address import waiting_client
from serving.users.published_users import (
    CURRENT,
    LOCK,
    ROWS_OF_A_BUCKET,
    UserRow,
    Version,
    key_of,
    read_version,
    write_row,
)

BATCH_ROWS = 2_000
KEEP_SECONDS = 3600
DRAFT_SECONDS = 86_400  # that the rows of a writer that died stay
LOCK_SECONDS = 60.0


class PublishedUsers(BaseModel):
    """What a run of `sluice publish-features` has done; `replaces` is the version that was read before."""

    model_config = ConfigDict(frozen=True)

    version: str
    published: datetime
    rows: int
    replaces: str | None
    seconds: float


def publish_users(out: Artifacts, address: str, keep: int = KEEP_SECONDS) -> PublishedUsers:
    """Raises DataError without an online table of users, while another one publishes, and where the store fails: then
    what was read before is still read."""
    begun, table, columns = time.monotonic(), _table(out), _columns(out)
    client = waiting_client(address)
    try:
        with client.lock(LOCK, timeout=LOCK_SECONDS, blocking=False) as lock:
            version = _version(table)
            for rows in _batches(table, columns, version):
                _write(client, rows)
                lock.reacquire()
            replaced = _switch(client, version, keep)
    except LockNotOwnedError:
        raise DataError(f"the store forgot whose turn it is: it was emptied, evicts keys, or this run stood still for "
                        f"{LOCK_SECONDS:g} s; give it memory, and publish again") from None
    except LockError as error:
        raise DataError(f"another `sluice publish-features` writes to this store ({error}); wait for its end") from None
    except RedisError as error:
        raise DataError(f"the store failed ({short(str(error))}); what was read before is still read: publish "
                        "again") from None
    finally:
        client.close()
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
    told = [PUBLISHED_AT] if PUBLISHED_AT in table.schema.names else []
    first = table.head(1, columns=told).to_pylist() if told else []
    published = first[0][PUBLISHED_AT] if first else now
    published = published if published.tzinfo else published.replace(tzinfo=UTC)
    return Version(name=f"{published:%Y%m%dT%H%M%S}-{secrets.token_hex(4)}", rows=rows, published=published,
                   buckets=max(1, -(-rows // ROWS_OF_A_BUCKET)))


Rows = dict[str, dict[bytes, str]]  # by hash and user


def _batches(table: ds.Dataset, columns: list[str], version: Version) -> Iterator[Rows]:
    recent = [RECENT_ITEMS] if RECENT_ITEMS in table.schema.names else []
    for batch in table.to_batches(columns=[USER, *columns, *recent], batch_size=BATCH_ROWS):
        yield _rows(batch, columns, version)


def _rows(batch: pa.RecordBatch, columns: list[str], version: Version) -> Rows:
    found: Rows = {}
    for row in batch.to_pylist():
        key = key_of(row[USER])
        told = write_row(UserRow({name: row[name] for name in columns}, row.get(RECENT_ITEMS) or []))
        found.setdefault(version.bucket(key), {})[key] = told
    return found


def _write(client: redis.Redis, rows: Rows) -> None:
    with client.pipeline(transaction=False) as pipe:
        for bucket, told in rows.items():
            pipe.hset(bucket, mapping=told)  # type: ignore[arg-type]
            pipe.expire(bucket, DRAFT_SECONDS)
        pipe.execute()


def _switch(client: redis.Redis, version: Version, keep: int) -> str | None:
    """The name of the version before. Raises DataError where rows are missing."""
    with client.pipeline(transaction=False) as pipe:
        for key in version.hashes():
            pipe.hlen(key)
        written = sum(pipe.execute())
    if written != version.rows:
        raise DataError(f"the store holds {written} users of {version.rows} (evicted, or a key twice); what was read "
                        "before is still read: give it memory, and publish again")
    before = _before(client)
    with client.pipeline(transaction=True) as pipe:
        for key in version.hashes():
            pipe.persist(key)
        for key in before.hashes() if before else ():
            pipe.expire(key, keep)
        pipe.set(CURRENT, version.model_dump_json())
        pipe.execute()
    return before.name if before else None


def _before(client: redis.Redis) -> Version | None:
    told = client.get(CURRENT)
    if told is None:
        return None
    try:
        return read_version(told)  # type: ignore[arg-type]
    except DataError:  # of another release: it stays until somebody removes it
        return None

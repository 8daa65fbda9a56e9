"""One version of users into a Redis or Valkey.

Rows are written beside those that are read. They are removed should the writer fail, and by the next one should it die:
which version is being written, the store says. Without a next one they expire by themselves, a while after the last row
was written. Then, in one transaction, the new version becomes the one that is read, and the old one gets `keep` seconds
for who still reads it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import redis
from redis.client import Pipeline
from redis.exceptions import LockError, LockNotOwnedError, OutOfMemoryError, RedisError

from contracts.errors import DataError
from contracts.shown import short
from serving.redis_store.address import waiting_client
from serving.users.published_users import CURRENT, DRAFT, LOCK, Rows, Version, check_order, read_version

DRAFT_SECONDS = 600  # that the rows of a writer that died stay where nobody publishes
RENEWED_SECONDS = 60.0  # after which a writer says of all its rows that it lives
LOCK_SECONDS = 60.0


def publish(address: str, version: Version, rows: Iterator[Rows], keep: int, older: bool = False) -> str | None:
    """The name of the version before. Raises DataError while another one publishes, where the store fails, and where
    the version before is later, unless `older`."""
    client = waiting_client(address)
    try:
        with client.lock(LOCK, timeout=LOCK_SECONDS, blocking=False) as lock:
            _remove_left(client)
            if not older:
                check_order(_read(client, CURRENT), version)
            with _draft(client, version):
                renewed = time.monotonic()
                for some in rows:
                    _write(client, version, some)
                    lock.reacquire()
                    if time.monotonic() >= renewed + RENEWED_SECONDS:
                        _renew(client, version)
                        renewed = time.monotonic()
                _check(client, version)
            return _switch(client, version, keep, older)
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


@contextlib.contextmanager
def _draft(client: redis.Redis, version: Version) -> Iterator[None]:
    """What was written of the version is removed where the block fails, so that a full store has room for others."""
    client.set(DRAFT, version.model_dump_json())
    try:
        yield
    except BaseException:
        _remove(client, version)
        raise


def _remove_left(client: redis.Redis) -> None:
    """What a writer that died has left: its turn is over, so that nobody writes it any more."""
    left, current = _read(client, DRAFT), _read(client, CURRENT)
    if left is not None and (current is None or left.name != current.name):
        _remove(client, left)


def _remove(client: redis.Redis, version: Version) -> None:
    """Of a version that nobody reads, as far as the store answers."""
    with contextlib.suppress(RedisError), client.pipeline(transaction=False) as pipe:
        for key in version.hashes():
            pipe.unlink(key)
        pipe.execute()


def _write(client: redis.Redis, version: Version, rows: Rows) -> None:
    hashes: dict[str, dict[bytes, str]] = {}
    for user, told in rows:
        hashes.setdefault(version.bucket(user), {})[user] = told
    with client.pipeline(transaction=False) as pipe:
        for bucket, of_bucket in hashes.items():
            pipe.hset(bucket, mapping=of_bucket)  # type: ignore[arg-type]
            pipe.expire(bucket, DRAFT_SECONDS)
        pipe.execute()


def _renew(client: redis.Redis, version: Version) -> None:
    with client.pipeline(transaction=False) as pipe:
        pipe.set(DRAFT, version.model_dump_json())
        for key in version.hashes():
            pipe.expire(key, DRAFT_SECONDS)
        pipe.execute()


def _check(client: redis.Redis, version: Version) -> None:
    """Raises DataError where rows are missing."""
    with client.pipeline(transaction=False) as pipe:
        for key in version.hashes():
            pipe.hlen(key)
        written = sum(pipe.execute())
    if written != version.rows:
        raise DataError(f"the store holds {written} users of {version.rows} (evicted, or a key twice); what was read "
                        "before is still read: give it memory, and publish again")


def _switch(client: redis.Redis, version: Version, keep: int, older: bool) -> str | None:
    """The name of the version before. Where the store does not say whether it has switched, it is asked: the connection
    may have ended behind the switch. While it says nothing the rows stay: they may be read."""
    replaced: Version | None = None

    def switch(pipe: Pipeline) -> Version | None:
        nonlocal replaced
        before, draft = _read(pipe, CURRENT), _read(pipe, DRAFT)
        if before == version:
            return replaced
        if draft != version:
            raise DataError("another `sluice publish-features` has begun meanwhile, as this run stood still, or the "
                            "store was emptied, or evicts keys; publish again")
        if not older:
            check_order(before, version)
        replaced = before
        pipe.multi()
        for key in version.hashes():
            pipe.persist(key)
        for key in before.hashes() if before else ():
            pipe.expire(key, keep)
        pipe.set(CURRENT, version.model_dump_json())
        pipe.delete(DRAFT)
        return before

    try:
        before: Version | None = client.transaction(  # type: ignore[assignment]
            switch, CURRENT, DRAFT, value_from_callable=True)  # type: ignore[arg-type]
    except (DataError, OutOfMemoryError):  # then nothing was switched
        _remove(client, version)
        raise
    return before.name if before else None


def _read(client: redis.Redis, name: str) -> Version | None:
    """The version of that name: CURRENT, DRAFT."""
    told = client.get(name)
    if told is None:
        return None
    try:
        return read_version(told)  # type: ignore[arg-type]
    except DataError:  # of another release: it stays until somebody removes it
        return None

"""Where a Redis or Valkey is, and clients of it.

    redis://[USER@]HOST[:PORT][/DB]     rediss:// over TLS

The password is what SLUICE_REDIS_PASSWORD says: everybody on a machine sees the words of its commands.
"""

from __future__ import annotations

import os
from urllib.parse import urlsplit

import redis.asyncio
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.retry import Retry

from contracts.errors import ConfigError

SCHEMES = ("redis", "rediss")
PASSWORD = "SLUICE_REDIS_PASSWORD"
ANSWER_SECONDS = 5.0  # of a client that may wait


def check_address(address: str) -> str:
    """The address. Raises ConfigError for another scheme, no host, or a password in it."""
    parts = urlsplit(address)
    if parts.scheme not in SCHEMES or not parts.hostname:
        raise ConfigError(f"{_without_password(address)!r} is no address of a Redis or Valkey; give "
                          "redis://HOST:PORT/DB, or rediss:// over TLS")
    if parts.password:
        raise ConfigError(f"the address redis://{parts.hostname} holds a password, which everybody on this machine can "
                          f"read; set {PASSWORD} and leave it out")
    return address


def waiting_client(address: str) -> redis.Redis:
    """For a thread that may wait; it connects when it is first asked."""
    return redis.Redis.from_url(
        check_address(address), password=os.environ.get(PASSWORD), socket_timeout=ANSWER_SECONDS,
        socket_connect_timeout=ANSWER_SECONDS, retry=Retry(NoBackoff(), 0))


def loop_client(address: str, connections: int, seconds: float) -> redis.asyncio.Redis:
    """For an event loop; who finds all `connections` busy waits for one, `seconds` at most. Nothing is tried again."""
    pool = redis.asyncio.BlockingConnectionPool.from_url(
        check_address(address), max_connections=connections, timeout=seconds, password=os.environ.get(PASSWORD),
        retry=AsyncRetry(NoBackoff(), 0))
    return redis.asyncio.Redis(connection_pool=pool)


def _without_password(address: str) -> str:
    return address.rpartition("@")[2]

"""Where a Redis or Valkey is, and clients of it.

    redis://[USER@]HOST[:PORT][/DB]     rediss:// over TLS, with options as ?ssl_ca_certs=FILE

The password is what SLUICE_REDIS_PASSWORD says: everybody on a machine sees the words of its commands.
"""

from __future__ import annotations

import os
import re
from urllib.parse import SplitResult, parse_qsl, urlsplit

import redis.asyncio
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.retry import Retry

from contracts.errors import ConfigError

SCHEMES = ("redis", "rediss")
DATABASE = re.compile(r"/?|/\d+")
PASSWORD = "SLUICE_REDIS_PASSWORD"
ANSWER_SECONDS = 5.0  # of a client that may wait


def check_address(address: str) -> str:
    """The address. Raises ConfigError for one that is none, a password in it, an option that is not TLS's."""
    parts = _parts(address)
    options = [name for name, _ in parse_qsl(parts.query, keep_blank_values=True)]
    if parts.password or any("password" in name for name in options):
        raise ConfigError(f"the address redis://{parts.hostname} holds a password, which everybody on this machine can "
                          f"read; set {PASSWORD} and leave it out")
    other = next((name for name in options if not name.startswith("ssl_")), None)
    if other is not None:
        raise ConfigError(f"the address redis://{parts.hostname} has the option {other!r}; leave it out: only those of "
                          "TLS are taken, as ssl_ca_certs")
    return address


def _parts(address: str) -> SplitResult:
    """Raises ConfigError unless there are a scheme, a host, and a port and a data base or neither."""
    try:
        parts = urlsplit(address)
        fits = parts.scheme in SCHEMES and parts.hostname and parts.port != 0 and DATABASE.fullmatch(parts.path)
    except ValueError:  # brackets, a port that is no number
        fits = None
    if not fits:
        raise ConfigError(f"{_without_secrets(address)!r} is no address of a Redis or Valkey; give "
                          "redis://HOST:PORT/DB, or rediss:// over TLS")
    return parts


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


def _without_secrets(address: str) -> str:
    return address.partition("?")[0].rpartition("@")[2]

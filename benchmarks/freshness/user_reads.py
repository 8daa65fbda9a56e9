"""What a request pays for a later day's row of its user: from a file of the host, and from a Redis on the same machine.

    sluice bench user_reads [--users 100000] [--reads 3000] [--json]

Both hold the same rows (eight values, three numbers, a history, recent items; some 0.9 KB), and are asked in turns by
one event loop, each with a user drawn at random; the row is encoded as the server does. Microseconds of a read on the
wall, and seconds to publish the table.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict

from benchmarks.freshness.outage import drawn_row
from benchmarks.freshness.redis_process import RedisProcess
from benchmarks.serving.funnel import world
from contracts.features.encoding import Encoder
from serving.users import embedded_publisher, redis_publisher
from serving.users.embedded_tables import EmbeddedTables
from serving.users.published_users import ROWS_OF_A_BUCKET, Rows, Version, key_of, write_row
from serving.users.redis_tables import RedisTables
from serving.users.user_reader import UserReader
from serving.users.user_tables import UserTables

PATIENCE, KEEP_SECONDS, AT_ONCE, DIFFERENT = 5.0, 60, 2_000, 1_000


class ReadFigures(BaseModel):
    """By store: microseconds of half, and of 99 in 100 of the reads at most; seconds to publish."""

    model_config = ConfigDict(frozen=True)

    p50_us: dict[str, float]
    p99_us: dict[str, float]
    publish_s: dict[str, float]
    users: int


def drawn_rows(users: int) -> Iterator[Rows]:
    """Of DIFFERENT rows, so that drawing them is not what is measured."""
    draw = np.random.default_rng(3)
    told = [write_row(drawn_row(draw)) for _ in range(min(users, DIFFERENT))]
    for first in range(0, users, AT_ONCE):
        yield [(key_of(f"u{user}"), told[user % len(told)]) for user in range(first, min(first + AT_ONCE, users))]


async def read_in_turns(
    tables: dict[str, UserTables], encoder: Encoder, users: int, reads: int
) -> dict[str, list[float]]:
    """Microseconds of each read, by store."""
    readers = {name: UserReader(one, encoder, None, PATIENCE) for name, one in tables.items()}
    spent: dict[str, list[float]] = {name: [] for name in readers}
    for reader in readers.values():
        await reader.look()
    for user in np.random.default_rng(5).integers(0, users, reads):
        for name, reader in readers.items():
            begun = time.perf_counter()
            found = await reader.read(f"u{user}")
            spent[name].append(1e6 * (time.perf_counter() - begun))
            assert found.stored is not None, found.cause
    for reader in readers.values():
        await reader.close()
    return spent


def measure(folder: Path, users: int, reads: int) -> ReadFigures:
    version = Version(name="bench", buckets=max(1, -(-users // ROWS_OF_A_BUCKET)), rows=users,
                      published=datetime.now(UTC))
    with RedisProcess(folder) as store:
        begun = time.perf_counter()
        embedded_publisher.publish(folder, version, drawn_rows(users))
        between = time.perf_counter()
        redis_publisher.publish(store.address, version, drawn_rows(users), KEEP_SECONDS)
        publish = {"embedded": between - begun, "redis": time.perf_counter() - between}
        tables: dict[str, UserTables] = {
            "embedded": EmbeddedTables(folder, PATIENCE), "redis": RedisTables(store.address, PATIENCE)}
        spent = asyncio.run(read_in_turns(tables, world(300, "dnn").encoder, users, reads))
    return ReadFigures(p50_us={name: float(np.median(one)) for name, one in spent.items()},
                       p99_us={name: float(np.quantile(one, 0.99)) for name, one in spent.items()},
                       publish_s=publish, users=users)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=100_000)
    parser.add_argument("--reads", type=int, default=3_000)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="sluice-user-reads-") as place:
        found = measure(Path(place), chosen.users, chosen.reads)
    for name in found.p50_us:
        print(f"{name:9} p50 {found.p50_us[name]:7.1f} us, p99 {found.p99_us[name]:7.1f} us; published in "
              f"{found.publish_s[name]:.1f} s")
    if chosen.json:
        print(json.dumps({"user_reads": found.model_dump()}))


if __name__ == "__main__":
    main()

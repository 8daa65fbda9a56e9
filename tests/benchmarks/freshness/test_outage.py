from __future__ import annotations

import asyncio
from pathlib import Path

from benchmarks.freshness.outage import put_users
from benchmarks.freshness.redis_process import RedisProcess
from benchmarks.serving.funnel import USERS, world
from serving.users.redis_tables import RedisTables
from serving.users.user_reader import UserReader
from tests.serving.running_redis import needs_redis


@needs_redis
def test_every_user_of_the_world_has_a_row_that_fits_it(tmp_path: Path) -> None:
    encoder = world(300, "dnn").encoder

    async def read() -> list[str]:
        users = UserReader(RedisTables(store.address, 5.0), encoder, None, 5.0)
        await users.look()
        found = [await users.read(f"u{number}") for number in (0, USERS - 1)]
        await users.close()
        return [one.cause for one in found if one.cause or one.stored is None]

    with RedisProcess(tmp_path) as store:
        put_users(store)
        assert asyncio.run(read()) == []

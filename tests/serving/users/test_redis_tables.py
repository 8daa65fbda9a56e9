from __future__ import annotations

import asyncio

import pytest

from contracts.errors import ConfigError
from serving.bundle.loaded_bundle import LoadedBundle
from serving.users.redis_tables import RedisTables
from serving.users.user_reader import UserReader


def test_what_answers_and_is_no_store_is_told(loaded: LoadedBundle) -> None:
    async def garbled(asked: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        while await asked.read(1 << 16):
            answer.write(b":one\r\n" * 20)
        answer.close()

    async def run() -> None:
        async with await asyncio.start_server(garbled, "127.0.0.1", 0) as server:
            tables = RedisTables(f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}", 5.0)
            users = UserReader(tables, loaded.encoder, None, 5.0)
            await users.look()
            assert "cannot be read" in (await users.read("u01")).cause
            await users.close()

    asyncio.run(run())


def test_what_is_no_address_is_refused() -> None:
    with pytest.raises(ConfigError, match="no address"):
        RedisTables("out/fresh", 1.0)

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from contracts.errors import ConfigError
from serving.users.embedded_tables import EmbeddedTables
from serving.users.redis_tables import RedisTables
from serving.users.user_store import place_of, tables_of

ADDRESS = "redis://127.0.0.1:1/0"


def test_a_folder_needs_a_slash_or_to_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    assert place_of("here") == Path("here")
    assert place_of("./new") == Path("new")
    assert place_of("out/fresh") == Path("out/fresh")
    assert place_of(ADDRESS) == ADDRESS
    for told in ("localhost", "localhost:6379", ""):
        with pytest.raises(ConfigError, match="no address"):
            place_of(told)
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="is a file, and the store of users is a folder"):
        place_of("./file")


def test_what_was_named_is_read_and_else_the_folder_of_what_is_fresh(tmp_path: Path) -> None:
    async def run() -> None:
        assert tables_of(None, None, 1.0) is None
        named, default = tables_of(str(tmp_path), None, 1.0), tables_of(None, tmp_path, 1.0)
        assert isinstance(named, EmbeddedTables)
        assert isinstance(default, EmbeddedTables)
        assert named.empty  # whoever names a store expects users in it
        assert not default.empty
        shared = tables_of(ADDRESS, tmp_path, 1.0)
        assert isinstance(shared, RedisTables)
        for tables in (named, default, shared):
            await tables.close()

    asyncio.run(run())

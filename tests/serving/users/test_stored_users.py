from __future__ import annotations

from pathlib import Path

import pytest

from contracts.errors import ConfigError
from serving.bundle.loaded_bundle import LoadedBundle
from serving.users.stored_users import stored_users


def test_there_is_a_reader_where_something_is_kept(loaded: LoadedBundle, tmp_path: Path) -> None:
    assert stored_users(None, None, loaded) is None
    assert stored_users(None, tmp_path, loaded) is not None
    assert stored_users("redis://127.0.0.1:1", None, loaded) is not None


def test_a_store_without_an_address_is_refused(loaded: LoadedBundle) -> None:
    with pytest.raises(ConfigError):
        stored_users("redis://", None, loaded)

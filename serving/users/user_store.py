"""Where users of a later day lie: a Redis or Valkey by its address, or a folder of the host."""

from __future__ import annotations

from pathlib import Path

from contracts.errors import ConfigError
from serving.redis_store.address import check_address
from serving.users.embedded_tables import EmbeddedTables
from serving.users.redis_tables import RedisTables
from serving.users.user_tables import UserTables


def place_of(store: str) -> Path | str:
    """A folder, or a checked address. What has a colon is an address; what has no slash either is a folder that is
    there. Raises ConfigError for anything else."""
    if ":" in store:
        return check_address(store)
    if "/" not in store and not Path(store or "/none").is_dir():
        raise ConfigError(f"{store!r} is no folder that is there, and no address of a Redis or Valkey; give "
                          f"./{store or 'FOLDER'} for a new folder, or redis://HOST:PORT/DB")
    if Path(store).exists() and not Path(store).is_dir():
        raise ConfigError(f"{store!r} is a file, and the store of users is a folder, or a Redis or Valkey by its "
                          "address; give another one, or redis://HOST:PORT/DB")
    return Path(store)


def tables_of(store: str | None, fresh: Path | None, seconds: float) -> UserTables | None:
    """Of the `store` that was named, else of the folder of what is `fresh`, which need not have any; None without
    either. A read may take `seconds`. Raises ConfigError where `store` is no address."""
    if store is None:
        return None if fresh is None else EmbeddedTables(fresh, seconds, expected=False)
    place = place_of(store)
    return EmbeddedTables(place, seconds) if isinstance(place, Path) else RedisTables(place, seconds)

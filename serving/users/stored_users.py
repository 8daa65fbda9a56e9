"""The reader of what a store knows of users beyond a bundle, where there is a store."""

from __future__ import annotations

from pathlib import Path

from serving.bundle.loaded_bundle import LoadedBundle
from serving.users.user_reader import UserReader, known_until
from serving.users.user_store import tables_of


def stored_users(store: str | None, fresh: Path | None, bundle: LoadedBundle) -> UserReader | None:
    """Of the address of a Redis, or a folder, else of the folder of what is `fresh`; None where nothing is kept. Raises
    ConfigError where the store has no address."""
    seconds = bundle.settings.serve.user_store_ms / 1000
    tables = tables_of(store, fresh, seconds)
    if tables is None:
        return None
    features, metrics = bundle.event_features, bundle.manifest.metrics
    known = known_until(features.published if features else None, metrics.data_until if metrics else None)
    return UserReader(tables, bundle.encoder, known, seconds)

"""Settings come back as written; damage is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.errors import BundleError
from serving.bundle.bundle_settings import FILE, BundleSettings
from serving.bundle.loaded_bundle import LoadedBundle


def test_round_trip(loaded: LoadedBundle, tmp_path: Path) -> None:
    loaded.settings.write(tmp_path)
    assert BundleSettings.read(tmp_path) == loaded.settings


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"no settings\.json"):
        BundleSettings.read(tmp_path)


def test_damage_is_named(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('{"ranker": 3}')
    with pytest.raises(BundleError, match="ranker"):
        BundleSettings.read(tmp_path)

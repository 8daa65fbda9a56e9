from __future__ import annotations

from pathlib import Path

import pytest

from serving.bundle.loaded_bundle import LoadedBundle
from tests.serving.counted_items import countable


@pytest.fixture(scope="session")
def counted_folder(bundle_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return countable(bundle_folder, tmp_path_factory.mktemp("counted"))


@pytest.fixture(scope="session")
def counted(counted_folder: Path) -> LoadedBundle:
    """A bundle whose items have a counter of a minute; treat as read-only."""
    return LoadedBundle.load(counted_folder)

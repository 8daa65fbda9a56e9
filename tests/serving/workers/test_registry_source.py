"""An alias names the bundle to serve; fetched is only what it names now.

tests/serving/server/test_supervisor.py has the real registry.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from contracts.errors import BundleError
from models.tracking.bundle_registry import BundleRegistry, RegisteredBundle
from models.tracking.registered_model import VERSION
from serving.workers.registry_source import RegistrySource


class Shelf(BundleRegistry):
    """Versions in folders, aliases in memory, instead of MLflow, which takes seconds to begin."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.aliases = folder, dict[str, RegisteredBundle]()

    def put(self, version: str, alias: str) -> None:
        (self.folder / version).mkdir(parents=True)
        (self.folder / version / "content").write_text(version)
        self.aliases[alias] = RegisteredBundle("market", "1", str(self.folder / version), {VERSION: version})

    def by_alias(self, name: str, alias: str) -> RegisteredBundle | None:
        return self.aliases.get(alias) if name == "market" else None

    def fetch(self, version: RegisteredBundle, cache: Path) -> Path:
        return Path(shutil.copytree(version.source, cache / version.version))


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    made = Shelf(tmp_path / "shelf")
    made.put("market-1", "champion")
    return made


def test_the_aliass_bundle_is_fetched_into_the_cache(shelf: Shelf, tmp_path: Path) -> None:
    source = RegistrySource(lambda: shelf, "market", "champion", tmp_path / "cache")
    version = source.latest()
    assert version == "market-1"
    fetched = source.fetch(version)
    assert fetched.parent == tmp_path / "cache"
    assert (fetched / "content").read_text() == "market-1"


def test_a_moved_alias_names_the_other_bundle_and_no_longer_the_first(shelf: Shelf, tmp_path: Path) -> None:
    source = RegistrySource(lambda: shelf, "market", "champion", tmp_path / "cache")
    source.latest()
    shelf.put("market-2", "champion")
    assert source.latest() == "market-2"
    with pytest.raises(BundleError, match="market-1 is not what market@champion names"):
        source.fetch("market-1")


@pytest.mark.parametrize(("name", "alias"), [("market", "shadow"), ("shop", "champion")])
def test_an_alias_that_points_nowhere_names_nothing(shelf: Shelf, tmp_path: Path, name: str, alias: str) -> None:
    assert RegistrySource(lambda: shelf, name, alias, tmp_path).latest() is None

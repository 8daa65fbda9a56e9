"""What a start without the registry finds, and what is removed: bundles that nobody goes back to, nothing else."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from contracts.bundle.bundle import publish
from contracts.errors import ConfigError
from serving.workers.bundle_cache import FILE, BundleCache, ServedBundle, default_folder

VERSION = "shop-0123456789ab"


@pytest.fixture
def cache(tmp_path: Path) -> BundleCache:
    return BundleCache(tmp_path / "cache")


def fetched(cache: BundleCache, content: str) -> ServedBundle:
    build, published = (cache.folder.parent / f"{step}-{content}" for step in ("build", "published"))
    build.mkdir()
    (build / "content").write_text(content)
    version = publish(build, published, "shop").version
    (cache.folder / "shop").mkdir(exist_ok=True)
    return ServedBundle(version=version, folder=published.rename(cache.folder / "shop" / version))


def test_what_was_served_last_is_known_to_the_next_start(cache: BundleCache) -> None:
    assert cache.last_served() is None
    first, second = fetched(cache, "shop-1"), fetched(cache, "shop-2")
    for served in (first, second):
        cache.remember(served)
    assert BundleCache(cache.folder).last_served() == second


def test_that_files_were_compared_is_no_longer_true_at_the_next_start(cache: BundleCache) -> None:
    served = fetched(cache, "shop-1")
    cache.remember(served.model_copy(update={"compared": True}))
    assert cache.last_served() == served
    assert not served.compared


def test_a_folder_is_one_servers_until_it_ends(cache: BundleCache) -> None:
    """However it ends."""
    holds = ("import sys; from pathlib import Path; from serving.workers.bundle_cache import BundleCache; "
             "BundleCache(Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()")
    folder = cache.folder.parent / "other"
    with subprocess.Popen([sys.executable, "-c", holds, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(ConfigError, match=r"another `sluice serve` .* --cache"):
            BundleCache(folder)
        other.kill()
    BundleCache(folder)


def test_a_damaged_memory_or_a_lost_folder_is_none(cache: BundleCache) -> None:
    cache.remember(ServedBundle(version="shop-1", folder=cache.folder / "gone"))
    assert cache.last_served() is None
    (cache.folder / FILE).write_text("{")
    assert cache.last_served() is None


def test_what_lies_elsewhere_or_is_another_bundle_is_not_served(cache: BundleCache, tmp_path: Path) -> None:
    served = fetched(cache, "shop-1")
    cache.remember(served.model_copy(update={"version": "shop-000000000000"}))
    assert cache.last_served() is None
    served.folder.rename(tmp_path / "elsewhere")
    for folder in (tmp_path / "elsewhere", cache.folder / ".." / "elsewhere"):
        cache.remember(served.model_copy(update={"folder": folder}))
        assert cache.last_served() is None


def test_cleaning_follows_no_link(cache: BundleCache, tmp_path: Path) -> None:
    (tmp_path / "victim" / "dear").mkdir(parents=True)
    (cache.folder / "link").symlink_to(tmp_path / "victim")
    (cache.folder / "shop").mkdir()
    (cache.folder / "shop" / VERSION).symlink_to(tmp_path / "victim" / "dear")
    (tmp_path / "victim" / VERSION).mkdir()
    cache.clean()
    assert (tmp_path / "victim" / "dear").is_dir()
    assert (tmp_path / "victim" / VERSION).is_dir()


def test_what_is_no_bundle_stays(cache: BundleCache) -> None:
    """The folder may be one that holds something else, as that of all runs does."""
    kept = [cache.folder / "demo" / name for name in ("bundle", "features", ".git", "shop-1", ".hidden.0123abcd")]
    for folder in kept:
        folder.mkdir(parents=True)
    cache.clean()
    assert all(folder.is_dir() for folder in kept)


def test_a_folder_that_cannot_be_read_stops_no_cleaning(cache: BundleCache, monkeypatch: pytest.MonkeyPatch) -> None:
    """As lost+found of a volume that is mounted there; root reads everything, so it is said of a name."""
    old, listed = fetched(cache, "old"), Path.iterdir
    (cache.folder / "lost+found").mkdir()

    def read(folder: Path) -> Iterator[Path]:
        if folder.name == "lost+found":
            raise PermissionError(13, "Permission denied", str(folder))
        return iter([cache.folder / "lost+found", cache.folder / "shop"]) if folder == cache.folder else listed(folder)

    monkeypatch.setattr(Path, "iterdir", read)
    cache.clean()
    assert not old.folder.exists()


def test_all_but_the_kept_bundles_goes(cache: BundleCache) -> None:
    first, second, third = (fetched(cache, f"shop-{n}") for n in range(3))
    half = cache.folder / "shop" / f".{VERSION}.abcdef01"
    half.mkdir()
    cache.remember(third)
    cache.clean(third.folder, second.folder)
    assert not first.folder.exists()
    assert not half.exists()
    assert second.folder.exists()
    assert cache.last_served() == third


def test_every_server_and_registry_has_a_folder_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = {default_folder(server, uri) for server in ("a", "b") for uri in ("x", "y")}
    assert len(found) == 4
    assert all(tmp_path in folder.parents for folder in found)

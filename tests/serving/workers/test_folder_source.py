"""A folder names the bundle that lies there now; what was fetched of it stays as it was."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from contracts.bundle import bundle
from contracts.bundle.bundle import MANIFEST, put_verified, read_manifest, verify
from contracts.errors import BundleError, ChecksumError, ReplacedError
from serving.workers.folder_source import FolderSource


def made(folder: Path, content: bytes) -> Path:
    """A bundle of two files, one of them like any other's."""
    build = folder.with_name(f"{folder.name}-build")
    (build / "tables").mkdir(parents=True)
    (build / "tables" / "rows").write_bytes(content)
    (build / "same").write_bytes(b"same")
    bundle.publish(build, folder, "shop")
    shutil.rmtree(build)
    return folder


@pytest.fixture
def copies(tmp_path: Path) -> Path:
    place = tmp_path / "copies" / "kept"
    place.mkdir(parents=True)
    return place


def test_without_a_place_for_copies_the_folder_is_served_as_it_was_at_the_start(tmp_path: Path) -> None:
    folder = made(tmp_path / "bundle", b"one")
    source = FolderSource(folder)
    version = read_manifest(folder).version
    made(folder, b"two")
    assert (source.latest(), source.fetch(version)) == (version, folder)


def test_what_is_put_there_is_named_and_what_was_fetched_keeps_its_files(tmp_path: Path, copies: Path) -> None:
    folder = made(tmp_path / "bundle", b"one")
    source = FolderSource(folder, copies)
    one = source.latest()
    assert one is not None
    kept = source.fetch(one)
    assert (kept / "same").samefile(folder / "same")  # no byte is copied
    put_verified(made(tmp_path / "other", b"two"), folder)
    two = source.latest()
    assert two is not None
    assert two != one
    assert verify(source.fetch(two)).version == two
    assert verify(kept).version == one
    assert (kept / "tables" / "rows").read_bytes() == b"one"
    assert sorted(path.name for path in (copies / "bundle").iterdir()) == sorted([one, two])
    assert [path.name for path in copies.parent.iterdir()] == [copies.name]


def test_a_copy_that_workers_load_is_not_touched_and_a_damaged_one_is_made_again(tmp_path: Path, copies: Path) -> None:
    source = FolderSource(made(tmp_path / "bundle", b"one"), copies)
    version = source.latest()
    assert version is not None
    first = source.fetch(version).stat().st_ino
    assert source.fetch(version).stat().st_ino == first
    (copies / "bundle" / version / "same").unlink()
    assert verify(source.fetch(version)).version == version


def test_a_folder_that_cannot_be_read_names_nothing_and_says_so_once(
    tmp_path: Path, copies: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = made(tmp_path / "bundle", b"one")
    source = FolderSource(folder, copies)
    (folder / MANIFEST).rename(tmp_path / "manifest")
    assert [source.latest(), source.latest()] == [None, None]
    assert len(caplog.messages) == 1
    assert "is served on" in caplog.text
    (tmp_path / "manifest").rename(folder / MANIFEST)
    assert source.latest() == read_manifest(folder).version


def test_another_version_than_was_named_is_not_handed_over_under_its_name(tmp_path: Path, copies: Path) -> None:
    folder = made(tmp_path / "bundle", b"one")
    source = FolderSource(folder, copies)
    version = source.latest()
    assert version is not None
    made(folder, b"two")
    with pytest.raises(ReplacedError, match="by now"):
        source.fetch(version)
    assert not list(copies.iterdir()) or not list((copies / "bundle").iterdir())


def test_a_bundle_that_is_replaced_while_it_is_copied_is_none_and_the_next_is_found(
    tmp_path: Path, copies: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also at the start: what is put there later is served without another one."""
    folder = made(tmp_path / "bundle", b"one")
    source = FolderSource(folder, copies)
    link = os.link

    def late(source: Path, target: Path) -> None:
        monkeypatch.setattr(os, "link", link)
        made(folder, b"two")
        link(source, target)

    monkeypatch.setattr(os, "link", late)
    version = source.latest()
    assert version is not None
    with pytest.raises(ReplacedError, match="got another bundle"):
        source.fetch(version)
    for content in (b"two", b"three"):
        made(folder, content)
        version = source.latest()
        assert version == read_manifest(folder).version
        assert (source.fetch(version) / "tables" / "rows").read_bytes() == content


def test_a_bundle_that_lacks_a_file_is_refused_with_its_name(tmp_path: Path, copies: Path) -> None:
    folder = made(tmp_path / "bundle", b"one")
    (folder / "same").unlink()
    with pytest.raises(ChecksumError, match="bundle: same is missing; publish or copy"):
        FolderSource(folder, copies).fetch(read_manifest(folder).version)


def test_a_first_bundle_that_cannot_be_copied_is_served_from_its_folder_for_good(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """And a later one is an error, which its search tells of."""
    folder = made(tmp_path / "bundle", b"one")
    source = FolderSource(folder, tmp_path / "nowhere" / "kept")
    version = source.latest()
    assert version is not None
    assert source.fetch(version) == folder
    assert "at the next start only" in caplog.text
    made(folder, b"two")
    assert source.latest() == version


def test_a_later_bundle_that_cannot_be_copied_is_an_error(tmp_path: Path, copies: Path) -> None:
    folder = made(tmp_path / "bundle", b"one")
    source = FolderSource(folder, copies)
    source.fetch(read_manifest(folder).version)
    made(folder, b"two")
    shutil.rmtree(copies.parent)
    with pytest.raises(OSError, match="No such file"):
        source.fetch(read_manifest(folder).version)


def test_no_bundle_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(BundleError):
        FolderSource(tmp_path)

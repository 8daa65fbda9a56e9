"""A delta makes the other bundle bit for bit, there and back, or nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from contracts.bundle import bundle, delta
from contracts.bundle.bundle import MANIFEST, load_array, save_array, save_weights, verify
from contracts.errors import BundleError, ChecksumError

ROWS = 5_000


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def published(folder: Path, seed: int, changed: int = 0, **more: bytes) -> Path:
    """A table of which `changed` rows are another's, weights, and files of any content."""
    build = folder / f"build{seed}"
    table = np.random.default_rng(1).normal(size=(ROWS, 16)).astype(np.float32)
    table[np.random.default_rng(2).permutation(ROWS)[:changed]] += np.float32(seed)
    save_array(build / "tables" / "table.npy", table)
    save_weights(build / "rank" / "calibration.safetensors", {"a": np.array([float(seed)])})
    for name, content in more.items():
        (build / name).write_bytes(content)
    bundle.publish(build, folder / f"bundle{seed}", "shop")
    return folder / f"bundle{seed}"


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    return (published(tmp_path, 1, same=b"x", gone=b"old", longer=b"a" * 100, empty=b""),
            published(tmp_path, 2, changed=50, same=b"x", new=b"new", longer=b"a" * 101, empty=b"not now"))


def test_what_is_applied_is_the_new_bundle_and_what_is_taken_back_the_old(
    two: tuple[Path, Path], tmp_path: Path
) -> None:
    old, new = two
    made = delta.make(old, new, tmp_path / "delta")
    assert (made.before, made.after) == (verify(old).version, verify(new).version)
    applied = delta.apply(old, tmp_path / "delta", tmp_path / "made")
    assert applied == verify(new)
    assert contents(tmp_path / "made") == contents(new)
    served = Path(shutil.copytree(old, tmp_path / "served"))
    delta.apply(served, tmp_path / "delta", served)
    assert contents(served) == contents(new)
    delta.apply(served, tmp_path / "delta", served, revert=True)
    assert contents(served) == contents(old)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_few_changed_rows_are_a_small_delta(two: tuple[Path, Path], tmp_path: Path) -> None:
    delta.make(*two, tmp_path / "delta")
    shipped = sum(path.stat().st_size for path in (tmp_path / "delta").iterdir())
    whole = sum(path.stat().st_size for path in two[1].rglob("*") if path.is_file())
    assert shipped < whole / 10


def test_a_chain_is_applied_in_its_order_and_no_link_is_left_out(two: tuple[Path, Path], tmp_path: Path) -> None:
    third = published(tmp_path, 3, changed=70)
    delta.make(*two, tmp_path / "first")
    delta.make(two[1], third, tmp_path / "second")
    served = Path(shutil.copytree(two[0], tmp_path / "served"))
    before = contents(served)
    for wrong, revert in (("second", False), ("first", True), ("second", True)):
        with pytest.raises(BundleError, match="the chain is broken"):
            delta.apply(served, tmp_path / wrong, served, revert)
        assert contents(served) == before
    delta.apply(served, tmp_path / "first", served)
    delta.apply(served, tmp_path / "second", served)
    assert contents(served) == contents(third)


def test_what_is_damaged_is_refused_and_changes_nothing(two: tuple[Path, Path], tmp_path: Path) -> None:
    old, _ = two
    made, before = delta.make(*two, tmp_path / "delta"), contents(old)
    place = next(file for file in made.files if file.path == "tables/table.npy")
    payload = tmp_path / "delta" / place.payload
    whole = payload.read_bytes()
    payload.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(ChecksumError, match="copy the delta again"):
        delta.apply(old, tmp_path / "delta", old)
    payload.unlink()
    with pytest.raises(ChecksumError, match="missing or damaged"):
        delta.apply(old, tmp_path / "delta", old)
    payload.write_bytes(whole)
    forged = made.model_copy(update={"files": tuple(file for file in made.files if file is not place)})
    (tmp_path / "delta" / delta.FILE).write_text(forged.model_dump_json())
    with pytest.raises(ChecksumError):
        delta.apply(old, tmp_path / "delta", old)
    (tmp_path / "delta" / delta.FILE).write_text("{")
    with pytest.raises(BundleError, match="is no delta"):
        delta.apply(old, tmp_path / "delta", old)
    assert contents(old) == before


def test_a_base_that_is_damaged_is_refused(two: tuple[Path, Path], tmp_path: Path) -> None:
    delta.make(*two, tmp_path / "delta")
    table = np.array(load_array(two[0] / "tables" / "table.npy"))
    np.save(two[0] / "tables" / "table.npy", table + 1)
    with pytest.raises(ChecksumError):
        delta.apply(two[0], tmp_path / "delta", tmp_path / "made")
    assert not (tmp_path / "made").exists()


def test_one_bundle_is_no_two(two: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="the same bundle"):
        delta.make(two[0], two[0], tmp_path / "delta")
    assert (two[0] / MANIFEST).exists()

"""A delta makes the other bundle bit for bit, there and back, or nothing."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from contracts.bundle import bundle, delta
from contracts.bundle.bundle import load_array, save_array, save_weights, verify
from contracts.bundle.delta import ChangedFile, Delta
from contracts.bundle.seal import UNSEALED, sealed
from contracts.errors import BundleError, ChecksumError, ReplacedError
from tests import small_disk

ROWS, ROOT = 5_000, Path(__file__).resolve().parents[3]


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


def forge(folder: Path, made: Delta, *files: ChangedFile) -> None:
    """A delta of these files, with a seal that is right."""
    forged = made.model_copy(update={"files": files, "seal": UNSEALED})
    (folder / delta.FILE).write_bytes(sealed(forged.model_dump_json(warnings=False).encode()))


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


@pytest.mark.parametrize("revert", [False, True])
def test_what_is_applied_or_taken_back_already_stays_as_it_is(
    two: tuple[Path, Path], tmp_path: Path, revert: bool
) -> None:
    """As by one that was killed once it was done. Elsewhere than in place, a delta begins where it says."""
    delta.make(*two, tmp_path / "delta")
    end = two[0] if revert else two[1]
    before = contents(tmp_path)
    (tmp_path / "link").symlink_to(end)
    assert delta.apply(end, tmp_path / "delta", end, revert) == verify(end)
    assert delta.apply(end, tmp_path / "delta", tmp_path / "link", revert) == verify(end)
    assert (tmp_path / "link").is_symlink()
    with pytest.raises(BundleError, match="the chain is broken"):
        delta.apply(end, tmp_path / "delta", tmp_path / "made", revert)
    assert contents(tmp_path) == before


def test_another_version_than_the_one_to_leave_is_not_left(two: tuple[Path, Path], tmp_path: Path) -> None:
    delta.make(*two, tmp_path / "delta")
    before, (old, new) = contents(tmp_path), (verify(path).version for path in two)
    for base in two:
        with pytest.raises(ReplacedError, match="by now"):
            delta.apply(base, tmp_path / "delta", base, leaving=new if base is two[0] else old)
    assert contents(tmp_path) == before
    delta.apply(two[0], tmp_path / "delta", two[0], leaving=old)
    assert contents(two[0]) == contents(two[1])


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
    for wrong, revert in (("second", False), ("second", True)):
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
    forge(tmp_path / "delta", made, *(file for file in made.files if file is not place))
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


def test_every_byte_of_a_delta_changed_once_is_refused(tmp_path: Path) -> None:
    for name, weight in (("old", 1.0), ("new", 2.0)):
        save_array(tmp_path / f"{name}.build" / "table.npy", np.full(8, weight))
        (tmp_path / f"{name}.build" / "longer").write_bytes(b"x" * int(weight))
        bundle.publish(tmp_path / f"{name}.build", tmp_path / name, "shop")
    delta.make(tmp_path / "old", tmp_path / "new", tmp_path / "delta")
    before = contents(tmp_path)
    generator = np.random.default_rng(3)
    for path in sorted((tmp_path / "delta").iterdir()):
        whole = path.read_bytes()
        for place, other in enumerate(generator.integers(1, 256, len(whole)).tolist()):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ other]) + whole[place + 1 :])
            with pytest.raises(BundleError):
                delta.apply(tmp_path / "old", tmp_path / "delta", tmp_path / "old")
        path.write_bytes(whole)
    assert contents(tmp_path) == before
    delta.apply(tmp_path / "old", tmp_path / "delta", tmp_path / "old")
    assert contents(tmp_path / "old") == contents(tmp_path / "new")


@pytest.fixture
def hostile(two: tuple[Path, Path], tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Applies a whole and sealed delta with one more file; what was there, in the bundle and outside, must stay."""
    old, _ = two
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "victim").write_bytes(b"mine")
    (old / "tables" / "link").symlink_to(tmp_path / "outside")
    made = delta.make(*two, tmp_path / "delta")

    def attack(payload: bytes = b"harm", payload_name: str = "99.zst", **declared: object) -> str:
        packed = pa.compress(payload, codec=delta.CODEC, asbytes=True)
        (tmp_path / "delta" / "99.zst").write_bytes(packed)
        whole: dict[str, Any] = {"path": "tables/more", "kind": "whole", "sizes": (None, len(payload)), "blocks": 0,
                 "payload": payload_name, "digest": hashlib.sha256(packed).hexdigest()}
        forge(tmp_path / "delta", made, *made.files, ChangedFile.model_construct(None, **{**whole, **declared}))
        before = contents(tmp_path)
        with pytest.raises(BundleError) as refused:
            delta.apply(old, tmp_path / "delta", old)
        assert contents(tmp_path) == before
        said = str(refused.value)
        assert len(said) < 2000
        assert "\0" not in said
        return said

    yield attack
    assert (tmp_path / "outside" / "victim").read_bytes() == b"mine"


def test_a_path_that_leads_out_or_nowhere_is_refused(hostile: Callable[..., str], tmp_path: Path) -> None:
    outside = str(tmp_path / "outside")
    for path in (f"{outside}/victim", f"{outside}/new", "../outside/victim", "../new", "tables/../../outside/victim",
                 "..", ".", "", "/", "tables", "tables/table.npy/new", "tables/link/victim", "tables/link",
                 "tables/link/../victim", "a\0b", "\0", "x" * 300, "x/" * 400, "x" * 100_000, "tables/new\n", "~/new"):
        hostile(path=path)
        hostile(path=path, sizes=(4, None))
        hostile(path=path, kind="blocks", sizes=(4, 4))


def test_a_payload_that_is_no_file_of_the_delta_is_refused(hostile: Callable[..., str], tmp_path: Path) -> None:
    for pipe in ("pipe", "98.zst"):
        os.mkfifo(tmp_path / "delta" / pipe)
    for name in ("../outside/victim", str(tmp_path / "outside" / "victim"), "/etc/hostname", "..", ".", "", "99.zst\0",
                 "0.zst/.", "pipe", "98.zst", "9" * 300):
        hostile(payload_name=name)


def test_sizes_that_are_not_so_are_refused_before_anything_is_unpacked(hostile: Callable[..., str]) -> None:
    for sizes in ((None, 1 << 200), (1 << 62, 4), (None, -1), (-5, 4), (None, 3), (None, 5), (3, 1), (None, 0),
                  (None, None), (None, True), (None, 4.5)):
        hostile(sizes=sizes)
        hostile(sizes=sizes, path="tables/table.npy")
    assert "bytes, the disk has" in hostile(sizes=(None, 1 << 62))


def test_blocks_that_the_file_has_not_are_refused(hostile: Callable[..., str], two: tuple[Path, Path]) -> None:
    """The table has 5,000 rows of a block each, and a header of two."""
    size = (two[0] / "tables" / "table.npy").stat().st_size
    for blocks, places in ((1, [5_002]), (1, [-1]), (1, [1 << 62]), (1, [-(1 << 63)]), (2, [0]), (1 << 62, [0]),
                           (-1, [0]), (5_003, [0])):
        payload = np.array(places, dtype=np.int64).tobytes() + b"\1" * 64 * len(places)
        hostile(payload, path="tables/table.npy", kind="blocks", sizes=(size, size), blocks=blocks)


def test_what_unpacks_to_more_than_it_says_is_not_unpacked(hostile: Callable[..., str]) -> None:
    assert "holds more than it says" in hostile(bytes(1 << 24), sizes=(None, 4))


def test_what_links_lead_to_is_read_and_never_written(two: tuple[Path, Path], tmp_path: Path) -> None:
    old, new = two
    (old / "longer").rename(tmp_path / "elsewhere")
    (old / "longer").symlink_to(tmp_path / "elsewhere")
    delta.make(old, new, tmp_path / "delta")
    delta.apply(old, tmp_path / "delta", old)
    assert contents(old) == contents(new)
    assert not (old / "longer").is_symlink()
    assert (tmp_path / "elsewhere").read_bytes() == b"a" * 100


def test_a_folder_that_is_no_bundle_is_not_replaced(two: tuple[Path, Path], tmp_path: Path) -> None:
    delta.make(*two, tmp_path / "delta")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letters").write_bytes(b"mine")
    with pytest.raises(BundleError, match="no bundle"):
        delta.apply(two[0], tmp_path / "delta", tmp_path / "home")
    assert contents(tmp_path / "home") == {"letters": b"mine"}


def test_of_two_at_one_place_the_second_is_refused_and_nothing_is_lost(
    two: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though both begin at the bundle that is there; once the first has ended, what is told is where the chain is."""
    third, put, refused = published(tmp_path, 3, changed=70), delta.put_verified, list[str]()
    for name, other in (("next", two[1]), ("elsewhere", third)):
        delta.make(two[0], other, tmp_path / name)
    served = Path(shutil.copytree(two[0], tmp_path / "served"))

    def meanwhile(staging: Path, destination: Path) -> bundle.Manifest:
        with pytest.raises(BundleError) as error:
            delta.apply(served, tmp_path / "elsewhere", served)
        refused.append(str(error.value))
        delta.apply(served, tmp_path / "elsewhere", tmp_path / "another place")
        return put(staging, destination)

    with monkeypatch.context() as patch:
        patch.setattr(delta, "put_verified", lambda *where: put(*where) if where[1] != served else meanwhile(*where))
        delta.apply(served, tmp_path / "next", served)
    assert [f"process {os.getpid()} is applying a delta at {served};" in one for one in refused] == [True]
    assert (contents(served), contents(tmp_path / "another place")) == (contents(two[1]), contents(third))
    with pytest.raises(BundleError, match="the chain is broken"):
        delta.apply(served, tmp_path / "elsewhere", served)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


DIES = """
    import os, signal, sys
    from pathlib import Path
    from contracts.bundle import delta
    served, folder = (Path(word) for word in sys.argv[1:])
    delta.put_verified = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    delta.apply(served, folder, served)
"""


def test_a_place_is_made_and_the_folder_that_one_stands_in_is_one(
    two: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    delta.make(*two, tmp_path / "delta")
    far = tmp_path / "2026-01-05" / "shop" / "served"
    delta.apply(two[0], tmp_path / "delta", far)
    assert contents(far) == contents(two[1])
    monkeypatch.chdir(far)
    assert delta.apply(Path(), tmp_path / "delta", Path()) == verify(two[1])
    assert [path.name for path in far.parent.iterdir()] == ["served"]


def test_one_that_was_killed_holds_up_nobody(two: tuple[Path, Path], tmp_path: Path) -> None:
    delta.make(*two, tmp_path / "delta")
    served = Path(shutil.copytree(two[0], tmp_path / "served"))
    words = [sys.executable, "-c", textwrap.dedent(DIES), str(served), str(tmp_path / "delta")]
    assert subprocess.run(words, cwd=ROOT).returncode == -signal.SIGKILL
    delta.apply(served, tmp_path / "delta", served)
    assert contents(served) == contents(two[1])


FULL = """
    import shutil, sys
    from pathlib import Path
    from contracts.bundle.delta import apply
    from contracts.bundle.bundle import verify
    from contracts.errors import BundleError
    disk, old, made = (Path(word) for word in sys.argv[1:])
    served = Path(shutil.copytree(old, disk / "served"))
    try:
        apply(served, made, served)
    except BundleError as error:
        print(error)
    print(verify(served) == verify(old), *(path.name for path in disk.iterdir()))
"""


@pytest.mark.parametrize(("size", "told"), [("500k", "No space left"), ("900k", "the disk has")])
def test_a_full_disk_leaves_the_bundle_as_it_was(tmp_path: Path, size: str, told: str) -> None:
    """As the old one is copied; and before a file of a megabyte is unpacked."""
    old, new = published(tmp_path, 1), published(tmp_path, 2, large=bytes(1 << 20))
    delta.make(old, new, tmp_path / "delta")
    first, last = small_disk.run(FULL, tmp_path / "disk", size, old, tmp_path / "delta").splitlines()
    assert told in first
    assert "nothing was changed" in first
    assert last == "True served"


def test_one_bundle_is_no_two_and_the_delta_of_before_stays(two: tuple[Path, Path], tmp_path: Path) -> None:
    delta.make(*two, tmp_path / "delta")
    before = contents(tmp_path)
    with pytest.raises(BundleError, match="the same bundle"):
        delta.make(two[0], two[0], tmp_path / "delta")
    assert contents(tmp_path) == before


KILLED = """
    import os, signal, sys
    from pathlib import Path
    from contracts.bundle import delta
    old, new, folder = (Path(word) for word in sys.argv[1:])

    def killed_after(steps):
        def look(event, arguments):
            nonlocal steps
            if event in ("open", "os.mkdir", "os.rename", "shutil.rmtree") and "delta" in str(arguments[0]):
                steps -= 1
                if steps < 0:
                    os.kill(os.getpid(), signal.SIGKILL)
        return look

    for steps in range(100):
        child = os.fork()
        if child == 0:
            sys.addaudithook(killed_after(steps))
            delta.make(old, new, folder)
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(code, delta.read(folder).after)
        if code == 0:
            break
"""


def test_one_that_is_killed_as_it_is_made_leaves_the_one_before(two: tuple[Path, Path], tmp_path: Path) -> None:
    """Killed at the first thing that it does there, the second, and so on until it is done."""
    third, folder = published(tmp_path, 3, changed=70), tmp_path / "delta"
    first = delta.make(*two, folder).after
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(KILLED), two[1], third, folder], cwd=ROOT,
                          capture_output=True, text=True, check=True)
    *killed, (code, last) = (line.split() for line in done.stdout.splitlines())
    assert {code for code, _ in killed} == {str(-signal.SIGKILL)}
    found = [version for _, version in killed]
    assert found == sorted(found, key=lambda version: version != first)  # once there, the new one stays
    assert found.count(first) > 5
    assert (code, last) == ("0", verify(third).version)

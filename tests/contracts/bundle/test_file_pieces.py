from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from contracts.bundle.file_pieces import PIECE_BYTES, copy_folder, pieces


@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES, 2 * PIECE_BYTES + 7])
def test_pieces_make_the_file(tmp_path: Path, size: int) -> None:
    content = bytes(place % 251 for place in range(size))
    (tmp_path / "file").write_bytes(content)
    found = [bytes(piece) for piece in pieces(tmp_path / "file")]
    assert b"".join(found) == content
    assert all(0 < len(piece) <= PIECE_BYTES for piece in found)


def test_a_folder_is_copied_with_all_that_lies_below_it(tmp_path: Path) -> None:
    source = tmp_path / "one"
    (source / "within" / "empty").mkdir(parents=True)
    (source / "within" / "file").write_bytes(b"x" * (PIECE_BYTES + 1))
    copy_folder(source, tmp_path / "two")
    assert (tmp_path / "two" / "within" / "file").read_bytes() == (source / "within" / "file").read_bytes()
    assert (tmp_path / "two" / "within" / "empty").is_dir()


def test_of_what_nobody_may_change_the_copy_may_be_changed(tmp_path: Path) -> None:
    (tmp_path / "one" / "within").mkdir(parents=True)
    (tmp_path / "one" / "within" / "file").write_text("x")
    for path in (tmp_path / "one" / "within" / "file", tmp_path / "one" / "within", tmp_path / "one"):
        path.chmod(path.stat().st_mode & ~0o222)
    try:
        copy_folder(tmp_path / "one", tmp_path / "two")
        assert all(path.stat().st_mode & 0o200 for path in [tmp_path / "two", *(tmp_path / "two").rglob("*")])
    finally:
        for path in (tmp_path / "one", tmp_path / "one" / "within"):
            path.chmod(0o755)


@pytest.mark.parametrize("make", [lambda path: path.symlink_to("nothing"), os.mkfifo], ids=["a link", "a pipe"])
def test_what_cannot_be_copied_is_said(tmp_path: Path, make: Callable[[Path], None]) -> None:
    (tmp_path / "one").mkdir()
    copy_folder(tmp_path / "one", tmp_path / "two")
    with pytest.raises(FileExistsError, match="two"):
        copy_folder(tmp_path / "one", tmp_path / "two")
    make(tmp_path / "one" / "odd")
    with pytest.raises(OSError, match="odd is neither a file nor a folder"):
        copy_folder(tmp_path / "one", tmp_path / "three")

from __future__ import annotations

import shutil
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
    (source / "within" / "file").chmod(0o640)
    copy_folder(source, tmp_path / "two")
    copied = tmp_path / "two" / "within" / "file"
    assert copied.read_bytes() == (source / "within" / "file").read_bytes()
    assert copied.stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "two" / "within" / "empty").is_dir()


def test_what_cannot_be_copied_is_said(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    with pytest.raises(OSError, match="two"):
        copy_folder(tmp_path / "one", shutil.copytree(tmp_path / "one", tmp_path / "two"))
    (tmp_path / "one" / "link").symlink_to("nothing")
    with pytest.raises(shutil.Error, match="No such file"):
        copy_folder(tmp_path / "one", tmp_path / "three")

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from safetensors import SafetensorError

from sluice.out_folder.file_trouble import sentence


@pytest.mark.parametrize("error", [
    OSError(errno.ENOSPC, "No space left on device"),
    OSError(errno.EDQUOT, "Disk quota exceeded"),
    SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)"),
    RuntimeError("(sqlite3.OperationalError) database or disk is full"),
])
def test_a_full_disk_is_told_with_its_folder_whoever_says_so(error: Exception) -> None:
    told = sentence(error, Path("out/x"))
    assert told is not None
    assert told.startswith("no space is left on the disk that out/x is on: free some")


def test_a_full_disk_behind_another_error_is_found_and_its_own_file_is_named() -> None:
    error = RuntimeError("the writer failed")
    error.__cause__ = OSError(errno.ENOSPC, "No space left on device", "/small/events")
    assert "/small/events" in (sentence(error, Path("out")) or "")


def test_a_path_that_is_refused_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError) as found:
        (tmp_path / "file" / "x").mkdir()
    assert (sentence(found.value) or "").startswith(f"{tmp_path / 'file' / 'x'}: not a directory; give a path")
    assert "permission denied" in (sentence(PermissionError(errno.EACCES, "Permission denied", "/x")) or "")


@pytest.mark.parametrize("error", [ValueError("x"), FileNotFoundError(errno.ENOENT, "No such file", "y"), OSError()])
def test_what_is_a_defect_keeps_its_traceback(error: Exception) -> None:
    assert sentence(error, Path("out")) is None

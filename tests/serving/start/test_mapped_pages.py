"""Pages of mapped files, as the kernel counts those that a process has."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from serving.start import mapped_pages
from serving.start.mapped_pages import available, mapped, read_ahead

MEGABYTE = 2**20
MAPS = """\
55d0-55e0 r--p 00000000 fe:00 12 /usr/bin/python3.12
7f00000-7f10000 r--s 00000000 fe:00 34 /data/a bundle/tables/items.npy
7f10000-7f11000 ---p 00000000 fe:00 35 /data/a bundle/tables/users.npy
7f20000-7f21000 r--p 00000000 fe:00 36 /data/a bundle too/x.npy
7ff0000-7ff1000 rw-p 00000000 00:00 0
"""


def resident(path: Path) -> int:
    """Kilobytes of the file that this process has mapped and touched."""
    lines = iter(Path("/proc/self/smaps").read_text().splitlines())
    return sum(int(next(line for line in lines if line.startswith("Rss:")).split()[1])
               for line in lines if line.endswith(str(path)))


def test_what_is_mapped_is_ready_after_it(tmp_path: Path) -> None:
    path = tmp_path / "a table.npy"
    np.save(path, np.arange(MEGABYTE, dtype=np.int64))
    table = np.load(path, mmap_mode="r")
    assert resident(path) < 8 * 1024
    assert read_ahead(tmp_path) >= 8 * MEGABYTE
    assert resident(path) >= 8 * 1024
    assert table[5] == 5


@pytest.mark.parametrize("size", [4096, 3 * 4096, 1 << 30])
def test_pieces_of_any_length_make_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    path = tmp_path / "table.npy"
    np.save(path, np.arange(MEGABYTE // 8, dtype=np.int64))
    table = np.load(path, mmap_mode="r")
    monkeypatch.setattr(mapped_pages, "PIECE_BYTES", size)
    assert read_ahead(tmp_path) == -(-path.stat().st_size // 4096) * 4096
    assert resident(path) >= 1024
    assert table[5] == 5


def test_nothing_is_made_ready_where_there_is_too_little_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(tmp_path / "t.npy", np.arange(MEGABYTE, dtype=np.int64))
    table = np.load(tmp_path / "t.npy", mmap_mode="r")
    monkeypatch.setattr(mapped_pages, "SHARE", 0.0)
    assert read_ahead(tmp_path) == 0
    assert table[5] == 5


def test_only_files_below_the_folder_that_can_be_read_count() -> None:
    assert list(mapped(MAPS, Path("/data/a bundle"))) == [(0x7f00000, 0x10000)]
    assert available("MemTotal: 9 kB\nMemAvailable:   4 kB\n") == 4096

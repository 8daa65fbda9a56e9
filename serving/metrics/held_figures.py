"""prometheus_client's file of figures, with room for what is written to it.

The library maps files with holes: where the file system is full, the first figure that is put into a hole ends the
process (SIGBUS). Here a file has its room before it is mapped, so that what there is no room for is an OSError.
"""

from __future__ import annotations

import os
from pathlib import Path

from prometheus_client.mmap_dict import MmapedDict

FIRST_BYTES = 1 << 16  # as the library begins
MOST_BESIDE = 32  # bytes that a figure takes beside its key


class HeldFigures(MmapedDict):
    """Raises OSError where there is no room for the file, or for a figure; what it holds stays as it is."""

    def __init__(self, filename: str, read_mode: bool = False) -> None:
        if not read_mode and not Path(filename).exists():
            _make(Path(filename))
        super().__init__(filename, read_mode)

    def _init_value(self, key: str) -> None:
        """The library calls it for a figure that is new, and doubles the file where that is full."""
        if self._used + len(key.encode()) + MOST_BESIDE > self._capacity:
            with open(self._fname, "r+b") as file:  # the library's own handle appends, which not every system takes
                os.posix_fallocate(file.fileno(), 0, 2 * self._capacity)
        super()._init_value(key)


def _make(path: Path) -> None:
    """Whole or not at all: nobody reads a file without its first bytes."""
    draft = path.with_suffix(".held")
    try:
        with draft.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, FIRST_BYTES)
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise

"""Files of a bundle that this process has mapped, made ready before a request asks for them.

A mapped table costs its first reader a page fault for every page, though the file lies in memory: thousands within a
fresh process's first requests. Linux takes them all at once (madvise with MADV_POPULATE_READ, since 5.14); where it
cannot, or the files would take more than SHARE of the memory that is free, faults come as before.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator
from pathlib import Path

from contracts.behind_others import give_way

POPULATE_READ, SHARE = 22, 0.5
PIECE_BYTES = 1 << 23  # a millisecond's work
MAPS, MEMORY = Path("/proc/self/maps"), Path("/proc/meminfo")


def read_ahead(folder: Path) -> int:
    """Bytes that are ready now, of the mapped files below the folder; 0 where there is no such thing as /proc."""
    try:
        found = list(mapped(MAPS.read_text(), folder.resolve()))
        free = available(MEMORY.read_text())
    except OSError:
        return 0
    if sum(length for _, length in found) > SHARE * free:
        return 0
    advise = ctypes.CDLL(None, use_errno=True).madvise
    advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    ready = 0
    for start, length in _pieces(found):
        ready += length if advise(start, length, POPULATE_READ) == 0 else 0
        give_way()
    return ready


def _pieces(spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Of PIECE_BYTES at most."""
    for start, length in spans:
        for place in range(start, start + length, PIECE_BYTES):
            yield place, min(PIECE_BYTES, start + length - place)


def mapped(maps: str, folder: Path) -> Iterator[tuple[int, int]]:
    """Start and length of what is mapped for reading from files below the folder, of lines of /proc/PID/maps."""
    for line in maps.splitlines():
        span, mode, *_, path = line.split(maxsplit=5) if line.count(" ") >= 5 else ("", "", "")
        if mode.startswith("r") and folder in Path(path).parents:
            start, end = (int(edge, 16) for edge in span.split("-"))
            yield start, end - start


def available(memory: str) -> int:
    """Bytes, of /proc/meminfo."""
    return next(int(line.split()[1]) * 1024 for line in memory.splitlines() if line.startswith("MemAvailable:"))

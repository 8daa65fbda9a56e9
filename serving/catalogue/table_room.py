"""A stored table with room for more rows behind it, and rows that may be written: one array, as its readers know it.

The file's pages are mapped first and empty pages behind them, at consecutive addresses. Pages that nobody writes stay
those of the file, shared by all workers of the machine; a written one becomes this process's own, and the file never
changes. Rows that are not used cost nothing.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from pathlib import Path

import numpy as np

MAP_FIXED = 0x10  # of Linux
FAILED = ctypes.c_void_p(-1).value


def with_room(table: np.ndarray, rows: int) -> np.ndarray:
    """[I, ...] -> [rows, ...], the table first and zeros behind."""
    found = _mapped(table, rows) if _is_whole_file(table) else None
    if found is None:
        found = np.zeros((rows, *table.shape[1:]), dtype=table.dtype)
        found[: len(table)] = table
    return found


def with_last(table: np.ndarray, rows: int) -> np.ndarray:
    """The same, the table's last row, that of an item of which nothing is known, last again."""
    found = with_room(table, rows)
    found[-1] = table[-1]
    return found


def _is_whole_file(table: np.ndarray) -> bool:
    """Does the file behind it end where the table ends?"""
    if sys.platform != "linux" or type(table) is not np.memmap or not table.filename or not table.flags.c_contiguous:
        return False
    return os.path.getsize(table.filename) == table.offset + table.nbytes


def _mapped(table: np.ndarray, rows: int) -> np.ndarray | None:
    """None where the system refuses."""
    assert isinstance(table, np.memmap)
    size = table.offset + table.nbytes // max(len(table), 1) * rows
    pages = mmap.mmap(-1, max(size, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    anchor = ctypes.c_char.from_buffer(pages)
    address = ctypes.addressof(anchor)
    del anchor
    with Path(str(table.filename)).open("rb") as file:
        if _map_file(address, table.offset + table.nbytes, file.fileno()) == FAILED:
            return None
    return np.ndarray((rows, *table.shape[1:]), dtype=table.dtype, buffer=pages, offset=table.offset)


def _map_file(address: int, size: int, file: int) -> int | None:
    """Private pages of the file in place of those at the address."""
    system = ctypes.CDLL(None, use_errno=True).mmap
    system.restype = ctypes.c_void_p
    system.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
    found: int | None = system(address, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | MAP_FIXED, file, 0)
    return found

"""A folder takes the place of another in one step, so that whoever is killed, or looks, never meets neither of them."""

from __future__ import annotations

import ctypes
import os
import shutil
from pathlib import Path


def put_in_place(source: Path, target: Path) -> None:
    """`source` stands at `target` afterwards, on one file system; what stood there is gone.

    One exchange where the system has it (Linux); elsewhere two renames, between which nothing is there.
    """
    if not target.exists():
        source.rename(target)
    elif exchanged(source, target):
        shutil.rmtree(source, ignore_errors=True)
    else:
        _by_two_renames(source, target)


def _by_two_renames(source: Path, target: Path) -> None:
    retired = target.with_name(f".{target.name}.old")
    shutil.rmtree(retired, ignore_errors=True)
    target.rename(retired)
    try:
        source.rename(target)
    except OSError:
        retired.rename(target)
        raise
    shutil.rmtree(retired, ignore_errors=True)


def exchanged(left: Path, right: Path) -> bool:
    """Swaps two paths in one step by renameat2; False where the C library or the file system lacks it."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    if rename is None:
        return False
    at_working_folder, exchange = -100, 2
    return rename(at_working_folder, os.fsencode(left), at_working_folder, os.fsencode(right), exchange) == 0

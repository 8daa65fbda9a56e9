"""Files and folders that are either complete or not there: written aside, then put in place at once.

    with aside(path) as draft: draft.write_text(...)      path holds the old content or the new, never a part of it
    with durable(path) as draft: ...                      the same, and what was written survives a crash of the machine
    put_in_place(source, target)                          the same for a folder
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any


@contextlib.contextmanager
def aside(path: Path) -> Iterator[Path]:
    """Yields a draft beside `path`, whose folder is made; it replaces `path` when the block ends without an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield draft
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


@contextlib.contextmanager
def durable(path: Path) -> Iterator[Path]:
    """As `aside`; once the block has ended, the file is there after a loss of power too."""
    with aside(path) as draft:
        yield draft
        to_disk(draft)
    to_disk(path.parent)


def to_disk(path: Path) -> None:
    """A file's content, or a folder's entries, survive a loss of power."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_json(path: Path, value: Any, indent: int | None = 1) -> None:
    """Raises ValueError for a number that JSON has no word for (NaN, infinity), and leaves `path` as it was."""
    text = json.dumps(value, indent=indent, allow_nan=False) + "\n"
    with aside(path) as draft:
        draft.write_text(text, encoding="utf-8")


def put_in_place(source: Path, target: Path) -> None:
    """`source` stands at `target` afterwards, on one file system; what stood there is gone, of a link the link alone.

    One exchange where the system has it (Linux); elsewhere two renames, between which nothing is there.
    """
    if not os.path.lexists(target):
        source.rename(target)
    elif exchanged(source, target):
        remove(source)
    else:
        _by_two_renames(source, target)


def remove(path: Path) -> None:
    """A folder, or a link and not what it leads to, as far as the system lets it go; nothing where it is gone."""
    if path.is_symlink():
        with contextlib.suppress(OSError):
            path.unlink()
    else:
        shutil.rmtree(path, ignore_errors=True)


def _by_two_renames(source: Path, target: Path) -> None:
    retired = target.with_name(f".{target.name}.old")
    remove(retired)
    target.rename(retired)
    try:
        source.rename(target)
    except OSError:
        retired.rename(target)
        raise
    remove(retired)


def exchanged(left: Path, right: Path) -> bool:
    """Swaps two paths in one step by renameat2; False where the C library or the file system lacks it."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    if rename is None:
        return False
    at_working_folder, exchange = -100, 2
    return rename(at_working_folder, os.fsencode(left), at_working_folder, os.fsencode(right), exchange) == 0

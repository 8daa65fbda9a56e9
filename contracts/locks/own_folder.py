"""A folder that a process has for itself: gone when it ends or, of one that was killed, when the next one begins.

The process holds a lock on it, which the kernel lets go of however it ends. Its number would say less: a server in a
container has the same one after every restart, and there are as many of it as containers that share a folder.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def own_folder(prefix: str, parent: Path | None = None) -> Iterator[Path]:
    """In `parent`, None for where such folders lie. Those that killed processes have left there are removed."""
    place = parent or Path(tempfile.gettempdir())
    remove_left(prefix, place)
    draft = Path(tempfile.mkdtemp(prefix=f".{prefix}", dir=place))  # has its name once it is locked
    lock = os.open(draft, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(lock, fcntl.LOCK_EX)
        folder = draft.rename(place / draft.name.removeprefix("."))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)


def remove_left(prefix: str, parent: Path | None = None) -> None:
    """Folders that nobody holds; `parent` as there."""
    for place in (parent or Path(tempfile.gettempdir())).glob(f"{prefix}*"):
        with contextlib.suppress(OSError):
            lock = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(place, ignore_errors=True)
            finally:
                os.close(lock)

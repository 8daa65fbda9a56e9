"""A file that one process at a time holds, with what it says of itself in it; gone once it is let go.

The lock is the kernel's, on the open file: a killed process leaves the file and no lock. A file system without locks
holds nobody up.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

_held: set[int] = set()


class Held(Exception):
    """Another one holds it, and says `told`; nothing yet where it has just begun."""

    def __init__(self, told: str) -> None:
        super().__init__(told)
        self.told = told


def take(path: Path, told: str) -> int:
    """The descriptor by which `let_go` is called. Raises Held at once, and OSError where no file can be made there."""
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with os.fdopen(lock) as file:
                raise Held(file.read()) from None
        except OSError:  # a file system without locks
            pass
        if os.fstat(lock).st_nlink:
            break
        os.close(lock)  # its holder has just taken it away
    _held.add(lock)
    try:
        os.ftruncate(lock, 0)
        os.write(lock, told.encode())
    except OSError:
        let_go(path, lock)
        raise
    return lock


def let_go(path: Path, lock: int) -> None:
    """Nothing in a fork of the holder."""
    if lock in _held:
        _held.remove(lock)
        path.unlink(missing_ok=True)
        os.close(lock)


def _forget() -> None:
    """A forked process holds nothing, or the lock would last as long as it."""
    for lock in _held:
        os.close(lock)
    _held.clear()


os.register_at_fork(after_in_child=_forget)

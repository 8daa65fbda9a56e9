"""How many calls a process has taken, and how many of them are in published files: known after a SIGKILL as well.

A page of shared memory per writer, or of a file in the log's folder where there is no /dev/shm or no room in it. A
process that is killed leaves it behind with its lock free. What was taken and is neither published nor in a journal is
lost, and counted by whoever finds it. Only the end of the machine takes the page along; a page whose log is gone is
nobody's, and removed after a day.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import mmap
import os
import stat
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path

SHARED = Path("/dev/shm")
SIZE = 4096
_TAKEN, _PUBLISHED = struct.Struct("<q"), struct.Struct("<qqq")
_TEXT = _TAKEN.size + _PUBLISHED.size
_NAME = ".sluice-answers-"
ABANDONED_SECONDS = 86_400.0  # a folder may be away for a while, as a disk that is not mounted yet


@dataclass(frozen=True)
class Served:
    """The bundle whose answers a writer logs."""

    version: str
    created: datetime


UNKNOWN = Served("", datetime(1970, 1, 1, tzinfo=UTC))


class Ledger:
    """One writer's page, locked for as long as its process lives. `take` belongs to the event loop, all else to the
    writing thread."""

    def __init__(self, path: Path, served: Served | None = None, folder: Path | None = None) -> None:
        """A new page for what is `served` by a log in `folder`; without them the page of another writer, which must be
        `claimed`. Raises OSError where there is no room for it, and leaves no file."""
        self.path = path
        begun = path.with_name(f"new{path.name}") if served else path  # until it is locked nobody may find it
        self._file = os.open(begun, os.O_RDWR | (os.O_CREAT | os.O_EXCL if served else 0), 0o600)
        try:
            if served:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.ftruncate(self._file, SIZE)
                os.pwrite(self._file, bytes(SIZE), 0)  # takes the room: a full one ends who writes to a hole by SIGBUS
            self._page = mmap.mmap(self._file, SIZE)
        except OSError:
            os.close(self._file)
            if served:
                begun.unlink()
            raise
        if served:
            text = json.dumps([served.version, served.created.isoformat(), str(folder or "")]).encode()
            if len(text) < SIZE - _TEXT:
                self._page[_TEXT : _TEXT + len(text)] = text
            begun.rename(path)

    @property
    def writer(self) -> str:
        return self.path.name.rsplit("-", 1)[1]

    @property
    def served(self) -> Served:
        """UNKNOWN where the page does not say."""
        version, created, *_ = self._said
        return Served(version, datetime.fromisoformat(created)) if created else UNKNOWN

    @property
    def folder(self) -> Path | None:
        """The log's; None where the page does not say."""
        named = [*self._said, ""][2]
        return Path(named) if named else None

    @property
    def _said(self) -> list[str]:
        text = self._page[_TEXT:].rstrip(b"\0")
        return list(json.loads(text)) if text else ["", ""]

    @property
    def taken(self) -> int:
        """Calls, with those that were adopted of dead writers."""
        return int(_TAKEN.unpack_from(self._page)[0]) + self._settled[2]

    @property
    def published(self) -> int:
        """Calls in published files."""
        return self._settled[0]

    def take(self, calls: int) -> None:
        """So many in all have come so far."""
        _TAKEN.pack_into(self._page, 0, calls)

    def publish(self, calls: int, number: int) -> None:
        """Journal `number`, of so many calls, is a file; what it says of an earlier one is known already."""
        before, last, adopted = self._settled
        if number > last:
            _PUBLISHED.pack_into(self._page, _TAKEN.size, before + calls, number, adopted)

    def adopt(self, calls: int) -> None:
        """So many that a dead writer has lost are this one's to log."""
        before, last, adopted = self._settled
        _PUBLISHED.pack_into(self._page, _TAKEN.size, before, last, adopted + calls)

    @property
    def _settled(self) -> tuple[int, int, int]:
        """(calls published, the last journal that was, calls adopted)."""
        calls, number, adopted = _PUBLISHED.unpack_from(self._page, _TAKEN.size)
        return int(calls), int(number), int(adopted)

    def close(self, remove: bool) -> None:
        """`remove` where every call is accounted for; else the page waits for who comes next."""
        if remove:
            self.path.unlink(missing_ok=True)
        self._page.close()
        os.close(self._file)


def new(folder: Path, writer: str, served: Served) -> Ledger:
    """Of a writer of the log in `folder`. Raises OSError."""
    name, whole = f"{_prefix(folder)}{writer}", folder.resolve()
    if SHARED.is_dir():
        with contextlib.suppress(OSError):  # it is full, or another user's
            return Ledger(SHARED / name, served, whole)
    return Ledger(folder / name, served, whole)


def pages(folder: Path) -> Iterator[Path]:
    """Of all writers of the log in `folder`, the dead ones' included; what another user has put there is none."""
    prefix = _prefix(folder)
    return (page for place in dict.fromkeys((SHARED, folder)) for page, _ in _own(place, prefix))


def abandoned() -> Iterator[Path]:
    """Pages of any log's writers that nobody has begun to write to for a day; they may be in use."""
    return (page for page, found in _own(SHARED, _NAME) if time.time() - found.st_mtime > ABANDONED_SECONDS)


def _own(place: Path, prefix: str) -> Iterator[tuple[Path, os.stat_result]]:
    """As they were found: another process may remove them at any moment."""
    for path in place.glob(f"{prefix}*"):
        with contextlib.suppress(FileNotFoundError):
            found = path.lstat()
            if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid():
                yield path, found


def _prefix(folder: Path) -> str:
    return f"{_NAME}{blake2b(os.fsencode(folder.resolve()), digest_size=8).hexdigest()}-"

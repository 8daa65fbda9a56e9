"""Who comes through: the metadata of a call and its method -> the caller, or why not.

The access file and its key are looked at again every LOOK_SECONDS, and read again when they have changed; a new one
that cannot be used leaves the old one in force, with a line in the log. Refusals are counted, and told to the log once
a minute: a flood of them must not become a flood of lines.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable
from pathlib import Path

from contracts.errors import ConfigError, SluiceError
from serving.access.access_file import read
from serving.access.callers import Caller, Callers, UnknownCaller
from serving.access.role import listed, role_for

AUTHORIZATION, BEARER = "authorization", "bearer "
LOOK_SECONDS, TELL_SECONDS = 1.0, 60.0
log = logging.getLogger("sluice.serving")
Metadata = Iterable[tuple[str, str | bytes]]


class Forbidden(SluiceError):
    """The caller is known and lacks the role."""


class Gate:
    """Of one access file. Raises ConfigError where it cannot be used at the start."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, threading.Lock()
        self._files: tuple[Path, ...] = (path,)
        self._callers = self._read()
        self._mark, self._looked = self._marks(), time.monotonic()
        self._unusable: list[tuple[int, ...]] = []  # the mark of a look that failed, which the log has been told
        self._refused, self._told = 0, -TELL_SECONDS

    def admit(self, method: str, metadata: Metadata) -> Caller | None:
        """The caller, None where the method asks for none. Raises UnknownCaller, Forbidden."""
        role = role_for(method)
        if role is None:
            return None
        try:
            caller = self.caller(metadata)
            if role not in caller.roles:
                raise Forbidden(f"{caller.name!r} may do {listed(caller.roles)}; this call takes the role {role}")
        except (UnknownCaller, Forbidden) as error:
            self._count(error)
            raise
        return caller

    def caller(self, metadata: Metadata) -> Caller:
        """Whoever it is, whatever it may do. Raises UnknownCaller."""
        self._look()
        given = next((value for key, value in metadata if key == AUTHORIZATION), None)
        if not isinstance(given, str) or given[: len(BEARER)].lower() != BEARER:
            raise UnknownCaller("the call has no token; send one in the metadata, as `authorization: Bearer TOKEN`")
        return self._callers.of(given[len(BEARER) :].strip())

    def _look(self) -> None:
        if time.monotonic() < self._looked + LOOK_SECONDS or not self._lock.acquire(blocking=False):
            return
        try:
            self._looked, mark = time.monotonic(), self._marks()
            if mark != self._mark:
                self._callers = self._read()
                self._mark = mark
                log.info("the access file %s has changed and is in force", self._path)
        except ConfigError as error:
            if mark != self._unusable:
                self._unusable = mark
                log.error("%s; who was let in before, still is", error)
        finally:
            self._lock.release()

    def _read(self) -> Callers:
        file = read(self._path)
        self._files = (self._path,) if file.jwt is None else (self._path, file.jwt.key_file)
        return Callers(file)

    def _marks(self) -> list[tuple[int, ...]]:
        return [_mark(path) for path in self._files]

    def _count(self, error: SluiceError) -> None:
        self._refused += 1
        if time.monotonic() >= self._told + TELL_SECONDS:
            self._told = time.monotonic()
            log.warning("%d calls have been refused at the door since the start; the last: %s", self._refused, error)


def _mark(path: Path) -> tuple[int, ...]:
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino  # ctime: who may read it has changed

"""One command at a time writes below an output folder: two would mix their results, and one report the other's.

    OUT/.writer     locked while a command writes: process, host, command and since when, as JSON; gone afterwards

The lock is the kernel's, on the open file: a killed process leaves the file and no lock. Processes that the holder
starts are told so by their environment, and take none.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from contracts.errors import ConfigError, SluiceError

FILE = ".writer"
HELD = "SLUICE_WRITES_TO"  # the folder that this process, or the one that started it, holds
_held: set[int] = set()


@contextlib.contextmanager
def one_writer(folder: Path, command: str) -> Iterator[None]:
    """Makes the folder where it is not there, and takes it away again where nothing was written. Raises SluiceError at
    once, with who holds it, while another process is in the block; ConfigError where nothing can be written there."""
    place, before = str(folder.resolve()), os.environ.get(HELD)
    if before == place:
        yield
        return
    made = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = _locked(folder, command)
    except OSError as error:
        raise ConfigError(f"nothing can be written to the output folder {folder}: {_why(folder, error)}; give another "
                          "folder with --out") from None
    os.environ[HELD] = place
    try:
        yield
    finally:
        os.environ.pop(HELD)
        os.environ.update({} if before is None else {HELD: before})
        _let_go(folder, lock)
        if made:
            with contextlib.suppress(OSError):  # something was written
                folder.rmdir()


def _locked(folder: Path, command: str) -> int:
    """The descriptor of the folder's lock."""
    while True:
        lock = os.open(folder / FILE, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with os.fdopen(lock) as file:
                raise SluiceError(_refusal(folder, file.read())) from None
        except OSError:  # a file system without locks
            pass
        if os.fstat(lock).st_nlink:
            break
        os.close(lock)  # its holder has just taken it away
    _held.add(lock)
    since = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
    told = {"process": os.getpid(), "host": socket.gethostname(), "command": command, "since": since}
    os.ftruncate(lock, 0)
    os.write(lock, json.dumps(told).encode())
    return lock


def _refusal(folder: Path, told: str) -> str:
    cure = "wait until it has ended, or give another folder with --out"
    try:
        holder = json.loads(told)
    except ValueError:  # it is just writing
        return f"another process is writing to {folder}, and two would mix their results: {cure}"
    where = "" if holder["host"] == socket.gethostname() else f" on {holder['host']}"
    return (f"`sluice {holder['command']}` (process {holder['process']}{where}) has been writing to {folder} since "
            f"{holder['since']}, and two would mix their results: {cure}")


def _why(folder: Path, error: OSError) -> str:
    file = next((path for path in (folder, *folder.parents) if path.is_file()), None)
    return f"{file} is a file" if file else (error.strerror or str(error)).lower()


def _let_go(folder: Path, lock: int) -> None:
    if lock not in _held:  # a fork of the holder
        return
    _held.remove(lock)
    (folder / FILE).unlink(missing_ok=True)
    os.close(lock)


def _forget() -> None:
    """A forked process holds nothing, or the lock would last as long as it."""
    for lock in _held:
        os.close(lock)
    _held.clear()


os.register_at_fork(after_in_child=_forget)

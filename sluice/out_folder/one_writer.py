"""One command at a time writes below an output folder: two would mix their results, and one report the other's.

    OUT/.writer     locked while a command writes: process, host, command and since when, as JSON; gone afterwards

A killed process leaves the file and no lock (contracts/locks/file_lock.py). Processes that the holder starts are told
so by their environment, and take none.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from contracts.errors import ConfigError, SluiceError
from contracts.locks.file_lock import Held, let_go, take

FILE = ".writer"
HELD = "SLUICE_WRITES_TO"  # the folder that this process, or the one that started it, holds


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
        let_go(folder / FILE, lock)
        if made:
            with contextlib.suppress(OSError):  # something was written
                folder.rmdir()


def _locked(folder: Path, command: str) -> int:
    """The descriptor of the folder's lock."""
    since = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
    told = {"process": os.getpid(), "host": socket.gethostname(), "command": command, "since": since}
    try:
        return take(folder / FILE, json.dumps(told))
    except Held as held:
        raise SluiceError(_refusal(folder, held.told)) from None


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

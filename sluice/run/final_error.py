"""Whether the error of one of several processes is final: starting all of them anew would end in it again.

torchrun's agent tells no exit codes apart, and a process that loses a peer ends in an error as well. So the command
that starts the processes gives them a file, in which the first with an error of its own notes its exit code.
RuntimeError, by which torch says that a peer or a device is gone, is final only where the start before ended in the
same one at the same line, outside the code that talks to peers; what leaves no word, such as SIGKILL, never is.

    file    exit code (1 byte), digest of the start before (32), digest of this start (32)
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import traceback
from io import RawIOBase
from pathlib import Path

VARIABLE = "SLUICE_FINAL_ERROR"  # names the file
NONE = b"\0"
DIGEST = 32
PEERS = "distributed"  # the folder of code that talks to peers, torch's and ours


def make(path: Path) -> None:
    """Before each start. As long from the first as it ever is, so that the note finds room on a full disk."""
    before = path.read_bytes()[-DIGEST:] if path.exists() else DIGEST * NONE
    path.write_bytes(NONE + before + DIGEST * NONE)


def note(error: Exception, exit_code: int) -> bool:
    """Notes the exit code of an error that is final; whether this process is to speak of it: alone, the first to note
    one, or in trouble before anyone has noted any."""
    path = os.environ.get(VARIABLE)
    if path is None:
        return True
    with Path(path).open("r+b", buffering=0) as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        if file.read(1) != NONE:
            return False
        if not isinstance(error, RuntimeError) or _repeats(error, file):
            file.seek(0)
            file.write(bytes([exit_code]))
    return True


def _repeats(error: RuntimeError, file: RawIOBase) -> bool:
    """Whether the start before ended in it; notes its digest otherwise. `file` stands behind the exit code."""
    seen = _digest(error)
    if seen is None:
        return False
    if file.read(DIGEST) == seen:
        return True
    file.write(seen)
    return False


def _digest(error: RuntimeError) -> bytes | None:
    """Of its text and the line that raised it; None where that talks to peers, whose loss says the same every time."""
    frames = traceback.extract_tb(error.__traceback__)
    if frames and PEERS in Path(frames[-1].filename).parts:
        return None
    place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    return hashlib.sha256(f"{type(error).__name__} {place} {error}".encode()).digest()


def noted(path: Path) -> int | None:
    """The exit code; None where no error was final."""
    return path.read_bytes()[0] or None

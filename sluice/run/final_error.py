"""Whether the error of one of several processes is final: starting all of them anew would end in it again.

torchrun's agent tells no exit codes apart, and a process that loses a peer ends in an error as well. So the command
that starts the processes gives them a file, in which the first with an error of its own notes its exit code.
RuntimeError, by which torch says that a peer or a device is gone, is not final; nor is what leaves no word, such as
SIGKILL.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

VARIABLE = "SLUICE_FINAL_ERROR"  # names the file
NONE = b"\0"


def make(path: Path) -> None:
    """A byte long from the first, so that the note finds room on a full disk."""
    path.write_bytes(NONE)


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
        if not isinstance(error, RuntimeError):
            file.seek(0)
            file.write(bytes([exit_code]))
    return True


def noted(path: Path) -> int | None:
    """The exit code; None where no error was final."""
    return path.read_bytes()[0] or None

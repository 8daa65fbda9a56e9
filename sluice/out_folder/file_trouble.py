"""What a file system refuses, as one sentence with the cure: a full disk, no right to write, a file where a folder
should be. Libraries say a full disk in errors of their own, so its text is looked for as well."""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Iterator
from pathlib import Path

FULL = ("no space left on device", "os error 28", "disk is full", "disk quota exceeded")
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
REFUSED = (errno.EACCES, errno.EROFS, errno.ENOTDIR)


def sentence(error: BaseException, out: Path | None = None) -> str | None:
    """None where the error is none of a file system's; `out` is the output folder where the command has one."""
    for cause in _chain(error):
        number = cause.errno if isinstance(cause, OSError) else None
        if number in NO_ROOM or any(text in str(cause).lower() for text in FULL):
            return full(_name(cause) or out)
        if isinstance(cause, OSError) and number in REFUSED and _name(cause):
            return refused(cause)
    return None


def full(path: Path | str | None) -> str:
    where = f"{path} is on" if path else f"--out or {tempfile.gettempdir()} is on"
    return (f"no space is left on the disk that {where}: free some, or give a folder of another disk with --out "
            "(TMPDIR for temporary files), then run the command again")


def refused(error: OSError) -> str:
    """`error` names a path."""
    return (f"{_name(error)}: {(error.strerror or str(error)).lower()}; give a path that can be read and written and "
            "where no file stands in place of a folder (for results: --out)")


def _name(error: BaseException) -> str | None:
    name = getattr(error, "filename", None)
    return name.decode(errors="replace") if isinstance(name, bytes) else name if isinstance(name, str) else None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error, what it was raised from, and so on."""
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        yield found
        found = found.__cause__ or found.__context__

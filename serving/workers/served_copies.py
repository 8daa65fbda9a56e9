"""Where a server keeps what it serves of a folder: beside it, on its file system, for as long as the server lives.

    .NAME.served.MARK/lock                    held by the server; whoever can take it may remove the folder
    .NAME.served.MARK/kept/bundle/VERSION     a generation's files
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import logging
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

LOCK, KEPT = "lock", "kept"
BEGINNING_SECONDS = 60.0
log = logging.getLogger("sluice.serving")


@contextlib.contextmanager
def served_copies(folder: Path) -> Iterator[Path | None]:
    """The place of one server's copies, empty, and gone at the end; what killed servers left is removed. None, with a
    line of the log, where nothing can be written beside the folder."""
    beside = folder.absolute()
    prefix = f".{beside.name}.served."
    _remove_left(beside.parent, prefix)
    place = None
    try:
        place = Path(tempfile.mkdtemp(prefix=prefix, dir=beside.parent))
        (place / LOCK).touch()
        (place / KEPT).mkdir()
    except OSError as error:
        if place is not None:
            shutil.rmtree(place, ignore_errors=True)
        log.warning("nothing can be written beside %s (%s): another bundle that is put there is served at the next "
                    "start only", folder, error.strerror)
        yield None
        return
    try:
        with (place / LOCK).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield place / KEPT
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _remove_left(parent: Path, prefix: str) -> None:
    """Not one that is just being made: it is not locked yet."""
    for place in parent.glob(f"{glob.escape(prefix)}*"):
        with contextlib.suppress(OSError), (place / LOCK).open() as lock:
            if time.time() - place.stat().st_mtime < BEGINNING_SECONDS:
                continue
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(place, ignore_errors=True)

"""The figures of several processes in one private folder, by prometheus_client's multiprocess mode.

Each process maps files of its own, so that a scrape asks no worker, and what a killed one has counted stays counted. A
process that is gone leaves its counters and histograms, which are added up into the files of process 0, and its gauges,
which are dropped: the folder does not grow with the changes of bundles. Each file has its room before it is written to
(serving/metrics/held_figures.py).
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from contracts.errors import ConfigError
from contracts.locks.own_folder import own_folder, remove_left

VARIABLE, FOLDER = "PROMETHEUS_MULTIPROC_DIR", "sluice-metrics."
SHARED = Path("/dev/shm")
LEAST_BYTES = 16 << 20  # free: for the figures of some 20 processes, and of as many while a bundle is changed
GONE = "0"  # no process has this id
log = logging.getLogger("sluice.serving")


@contextmanager
def metrics_folder() -> Iterator[Path]:
    """A folder that nobody else reads, named to this process and those that it starts; gone at the end, or of a killed
    process at the next one's start. Raises ConfigError where there is no room for it."""
    before = os.environ.get(VARIABLE)
    with own_folder(FOLDER, _place()) as folder:
        os.environ[VARIABLE] = str(folder)
        try:
            yield folder
        finally:
            os.environ.pop(VARIABLE) if before is None else os.environ.update({VARIABLE: before})


def _place() -> Path:
    """Shared memory where it has room, else where temporary files lie."""
    temporary = Path(tempfile.gettempdir())
    remove_left(FOLDER, temporary)
    if os.access(SHARED, os.W_OK):
        remove_left(FOLDER, SHARED)
        if _has_room(SHARED):
            return SHARED
        log.warning("%s has less than %d MiB left: what --metrics-port shows is kept in %s", SHARED,
                    LEAST_BYTES >> 20, temporary)
    if not _has_room(temporary):
        raise ConfigError(f"what --metrics-port shows needs {LEAST_BYTES >> 20} MiB in {SHARED} or {temporary}, and "
                          "neither has them; free some, or let TMPDIR name another folder")
    return temporary


def _has_room(place: Path) -> bool:
    free = os.statvfs(place)
    return free.f_bavail * free.f_frsize >= LEAST_BYTES


def is_on() -> bool:
    """Whether this process counts."""
    return VARIABLE in os.environ


def forget_the_gone(folder: Path) -> None:
    """Adds up what processes that live no more have left. One caller at a time."""
    for path in sorted(folder.glob("*.db")):
        process = path.stem.rpartition("_")[2]
        if process == GONE or _lives(process):
            continue
        with contextlib.suppress(OSError):  # no room: counts stay in the file of their process, and are read there
            if path.name.startswith("gauge"):
                path.unlink(missing_ok=True)
            else:
                _add(path, folder / f"{path.stem.rpartition('_')[0]}_{GONE}.db")


def _add(path: Path, to: Path) -> None:
    """In a copy that replaces `to`, so that a reader never sees half of it. Raises OSError without room for it."""
    from serving.metrics.held_figures import HeldFigures

    fresh = to.with_suffix(".new")
    try:
        if to.exists():
            shutil.copyfile(to, fresh)
        with contextlib.closing(HeldFigures(str(fresh))) as sums:
            for key, value, _, _ in HeldFigures.read_all_values_from_file(str(path)):
                sums.write_value(key, sums.read_value(key)[0] + value, 0.0)
        fresh.replace(to)
    finally:
        fresh.unlink(missing_ok=True)
    path.unlink(missing_ok=True)


def _lives(process: str) -> bool:
    try:
        state = Path(f"/proc/{int(process)}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, ValueError):
        return False
    return state not in "ZX"

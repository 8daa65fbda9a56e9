"""The figures of several processes in one private folder, by prometheus_client's multiprocess mode.

Each process maps files of its own, so that a scrape asks no worker, and what a killed one has counted stays counted. A
process that is gone leaves its counters and histograms, which are added up into the files of process 0, and its gauges,
which are dropped: the folder does not grow with the changes of bundles.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from serving.metrics.own_folder import own_folder

VARIABLE, FOLDER = "PROMETHEUS_MULTIPROC_DIR", "sluice-metrics."
SHARED = Path("/dev/shm")
GONE = "0"  # no process has this id


@contextmanager
def metrics_folder() -> Iterator[Path]:
    """A folder that nobody else reads, named to this process and those that it starts; gone at the end, or of a killed
    process at the next one's start."""
    where = SHARED if SHARED.is_dir() and os.access(SHARED, os.W_OK) else None
    before = os.environ.get(VARIABLE)
    with own_folder(FOLDER, where) as folder:
        os.environ[VARIABLE] = str(folder)
        try:
            yield folder
        finally:
            os.environ.pop(VARIABLE) if before is None else os.environ.update({VARIABLE: before})


def is_on() -> bool:
    """Whether this process counts."""
    return VARIABLE in os.environ


def forget_the_gone(folder: Path) -> None:
    """Adds up what processes that live no more have left. One caller at a time."""
    for path in sorted(folder.glob("*.db")):
        process = path.stem.rpartition("_")[2]
        if process == GONE or _lives(process):
            continue
        if path.name.startswith("gauge"):
            path.unlink(missing_ok=True)
        else:
            _add(path, folder / f"{path.stem.rpartition('_')[0]}_{GONE}.db")


def _add(path: Path, to: Path) -> None:
    """In a copy that replaces `to`, so that a reader never sees half of it."""
    from prometheus_client.mmap_dict import MmapedDict

    fresh = to.with_suffix(".new")
    if to.exists():
        shutil.copyfile(to, fresh)
    sums = MmapedDict(str(fresh))
    try:
        for key, value, _, _ in MmapedDict.read_all_values_from_file(str(path)):
            sums.write_value(key, sums.read_value(key)[0] + value, 0.0)
    finally:
        sums.close()
    fresh.replace(to)
    path.unlink(missing_ok=True)


def _lives(process: str) -> bool:
    try:
        state = Path(f"/proc/{int(process)}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, ValueError):
        return False
    return state not in "ZX"

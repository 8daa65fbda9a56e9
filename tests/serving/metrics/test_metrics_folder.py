"""Counts of processes that are gone stay, once; their gauges go; the folder does not grow."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from prometheus_client import CollectorRegistry
from prometheus_client.mmap_dict import MmapedDict, mmap_key
from prometheus_client.multiprocess import MultiProcessCollector

from serving.metrics.metrics_folder import VARIABLE, forget_the_gone, is_on, metrics_folder
from tests import small_disk

NO_ROOM = """
import subprocess, sys
from pathlib import Path
from serving.metrics.held_figures import HeldFigures
from serving.metrics.metrics_folder import forget_the_gone

disk = Path(sys.argv[1])
with subprocess.Popen([sys.executable, "-S", "-c", ""]) as gone:
    pass
paths = [disk / f"{kind}_{gone.pid}.db" for kind in ("counter", "gauge_livesum", "histogram")]
for path in paths:
    held = HeldFigures(str(path))
    held.write_value("figure", 3.0, 0.0)
    held.close()
with (disk / "filler").open("wb", buffering=0) as filler:
    try:
        while filler.write(b"x" * 4096):
            pass
    except OSError:
        pass
if sys.argv[2] == "room":
    (disk / "filler").unlink()
forget_the_gone(disk)
for path in sorted(disk.glob("*[!r]")):
    print(path.name.replace(str(gone.pid), "gone"), *(one[1] for one in HeldFigures.read_all_values_from_file(path)))
"""
PLACE = """
import sys, tempfile
from pathlib import Path
from contracts.errors import ConfigError
from serving.metrics import metrics_folder

metrics_folder.SHARED, tempfile.tempdir = Path(sys.argv[1]), sys.argv[2]
try:
    with metrics_folder.metrics_folder() as folder:
        print(folder.parent)
except ConfigError as error:
    print(error)
"""


def a_dead_process() -> int:
    with subprocess.Popen([sys.executable, "-S", "-c", ""]) as process:
        pass
    return process.pid


def write(folder: Path, kind: str, process: int, name: str, value: float) -> None:
    held = MmapedDict(str(folder / f"{kind}_{process}.db"))
    held.write_value(mmap_key(name, name, [], [], "help"), value, 0.0)
    held.close()


def read(folder: Path, name: str) -> float | None:
    registry = CollectorRegistry()
    MultiProcessCollector(registry, str(folder))
    return registry.get_sample_value(name)


def test_counts_of_the_gone_stay_and_their_gauges_go(tmp_path: Path) -> None:
    gone, own = a_dead_process(), os.getpid()
    for process, value in ((gone, 3.0), (own, 4.0)):
        write(tmp_path, "counter", process, "calls_total", value)
        write(tmp_path, "gauge_livesum", process, "workers", 1.0)
    for _ in range(2):  # what was added up is not added again
        forget_the_gone(tmp_path)
        assert read(tmp_path, "calls_total") == 7.0
        assert read(tmp_path, "workers") == 1.0
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "counter_0.db", f"counter_{own}.db", f"gauge_livesum_{own}.db"]


def test_many_that_come_and_go_leave_one_file(tmp_path: Path) -> None:
    gone = a_dead_process()
    for value in (1.0, 2.0, 4.0):
        write(tmp_path, "counter", gone, "calls_total", value)
        forget_the_gone(tmp_path)
    assert read(tmp_path, "calls_total") == 7.0
    assert [path.name for path in tmp_path.iterdir()] == ["counter_0.db"]


def test_the_folder_is_private_named_to_processes_and_gone_at_the_end() -> None:
    assert not is_on()
    with metrics_folder() as folder:
        assert is_on()
        assert os.environ[VARIABLE] == str(folder)
        assert folder.stat().st_mode & 0o077 == 0
    assert not is_on()
    assert not folder.exists()


def test_counts_of_the_gone_without_room_to_add_them_up_stay_where_they_are(tmp_path: Path) -> None:
    """A gauge's file makes room for one of theirs; with room for both they are added up."""
    def left(room: str) -> list[str]:
        return small_disk.run(NO_ROOM, tmp_path / "disk", str(1 << 18), Path(room)).splitlines()

    assert left("room") == ["counter_0.db 3.0", "histogram_0.db 3.0"]
    assert left("none") == ["counter_gone.db 3.0", "histogram_0.db 3.0"]


def test_without_room_in_shared_memory_it_lies_where_temporary_files_do(tmp_path: Path) -> None:
    """Where there is room; else it is said what is needed."""
    disk = tmp_path / "disk"
    assert small_disk.run(PLACE, disk, str(1 << 20), tmp_path) == f"{tmp_path}\n"
    assert small_disk.run(PLACE, disk, str(1 << 25), tmp_path) == f"{disk}\n"
    assert f"needs 16 MiB in {disk} or {disk}, and neither" in small_disk.run(PLACE, disk, str(1 << 20), disk)

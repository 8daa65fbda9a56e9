"""A process counts on where its figures have no room: each waits for itself, and loses nothing."""

from __future__ import annotations

from pathlib import Path

from prometheus_client.mmap_dict import MmapedDict

from serving.metrics.waiting_figures import WaitingFigures
from tests import small_disk

ALL_FILES = small_disk.FILL + """
os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(disk)
from types import SimpleNamespace
from serving.metrics.request_observer import NOBODY, EndedCall, observer_of_process

bundle = SimpleNamespace(version="shop-1", reference=None)
if sys.argv[2] == "before":
    fill()
observer = observer_of_process(bundle)
fill()
for number in range(400):  # of a method each: more than its file has room for
    observer.ended(EndedCall(f"Rank{number}", "OK", 0.01))
print(observer is NOBODY)
"""
SEVERAL = small_disk.FILL + """
import logging
from serving.metrics import waiting_figures
from serving.metrics.held_figures import HeldFigures
from serving.metrics.waiting_figures import WaitingFigures

logging.basicConfig(stream=sys.stdout, format="%(levelname)s")
waiting_figures.AGAIN_SECONDS = 0
path = str(disk / "counter_1.db")
held = WaitingFigures(path)
held.write_value("first", 1.0, 0.0)
fill()
print(tried(lambda: WaitingFigures(str(disk / "counter_2.db"))))
names = [f"{number:0200}" for number in range(1000)]
for name in names:
    held.write_value(name, held.read_value(name)[0] + 1, 0.0)
    held.write_value("first", held.read_value("first")[0] + 1, 0.0)
found = {key: value for key, value, _, _ in HeldFigures.read_all_values_from_file(path)}
print(found["first"], 0 < len(found) < len(names), {held.read_value(name)[0] for name in names})
(disk / "filler").unlink()
held.write_value(names[-1], held.read_value(names[-1])[0] + 1, 0.0)
found = {key: value for key, value, _, _ in HeldFigures.read_all_values_from_file(path)}
print(found == {"first": 1001.0} | dict.fromkeys(names, 1.0) | {names[-1]: 2.0})
"""
FULL = "No space left on device"


def test_it_is_the_librarys_file(tmp_path: Path) -> None:
    path = str(tmp_path / "counter_1.db")
    held = WaitingFigures(path)
    for number in range(1000):
        held.write_value(f"{number:0200}", held.read_value(f"{number:0200}")[0] + number, 0.0)
    held.close()
    read = {int(key): value for key, value, _, _ in MmapedDict.read_all_values_from_file(path)}
    assert read == {number: number for number in range(1000)}


def test_figures_without_room_wait_and_the_others_are_counted(tmp_path: Path) -> None:
    """That there is none is said once; that a new file has none is an error as before."""
    lines = small_disk.run(SEVERAL, tmp_path / "disk", str(1 << 20)).splitlines()
    assert lines == [FULL, "ERROR", "1001.0 True {1.0}", "True"]


def test_a_process_serves_on_where_there_is_no_room_for_its_figures(tmp_path: Path) -> None:
    """From its begin, or from later on."""
    assert small_disk.run(ALL_FILES, tmp_path / "disk", str(1 << 20), Path("before")) == "True\n"
    assert small_disk.run(ALL_FILES, tmp_path / "disk", str(1 << 20), Path("later")) == "False\n"

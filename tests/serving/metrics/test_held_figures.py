"""Where a file system is full, figures are refused as an error, and those that are there stay."""

from __future__ import annotations

from pathlib import Path

from prometheus_client.mmap_dict import MmapedDict

from serving.metrics.held_figures import HeldFigures
from tests import small_disk

ONE_FILE = small_disk.FILL + """
from serving.metrics.held_figures import HeldFigures

held, added = HeldFigures(str(disk / "counter_1.db")), []
fill()
print(tried(lambda: HeldFigures(str(disk / "counter_2.db"))), sorted(path.name for path in disk.iterdir()))

def add(figures):
    for _ in range(figures):
        held.write_value(f"{len(added):0200}", len(added), 0.0)
        added.append(len(added))

print(tried(lambda: add(10_000)), tried(lambda: add(1)))
print([held.read_value(f"{number:0200}")[0] for number in added] == added)
(disk / "filler").unlink()
before = len(added)
print(tried(lambda: add(2 * before)), len(added) // before)
print([value for _, value, _ in held.read_all_values()] == added)
"""
FULL = "No space left on device"


def test_it_is_the_librarys_file(tmp_path: Path) -> None:
    path = str(tmp_path / "counter_1.db")
    held = HeldFigures(path)
    for number in range(1000):
        held.write_value(f"{number:0200}", number, 0.0)
    held.close()
    read = {int(key): value for key, value, _, _ in MmapedDict.read_all_values_from_file(path)}
    assert read == {number: number for number in range(1000)}


def test_a_figure_without_room_is_an_error_and_the_others_stay(tmp_path: Path) -> None:
    """No half of a file is left, and figures go on once there is room."""
    lines = small_disk.run(ONE_FILE, tmp_path / "disk", str(1 << 20)).splitlines()
    assert lines == [f"{FULL} ['counter_1.db', 'filler']", f"{FULL} {FULL}", "True", "None 3", "True"]

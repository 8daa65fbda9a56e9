from __future__ import annotations

import os
from pathlib import Path

from serving.counter_snapshots.snapshot_file import opened
from serving.counter_snapshots.snapshot_folder import KEPT, SnapshotFolder
from serving.item_counters.counter_standing import HeldCounters, Standing


def held(seen: int) -> HeldCounters:
    return HeldCounters(Standing("definitions", "log", seen, 10 * seen, 10 * seen), [])


def seen(folder: SnapshotFolder) -> list[int]:
    found = list[int]()
    for path in folder.newest_first():
        with opened(path) as one:
            found.append(one.standing.seen)
    return found


def test_the_newest_are_kept_by_when_they_were_written(tmp_path: Path) -> None:
    """A log that began anew has smaller numbers."""
    folder = SnapshotFolder(tmp_path)
    assert folder.newest_first() == []
    written = [folder.keep(held(number)) for number in (500, 7)]
    os.utime(written[0], (1, 1))
    assert seen(folder) == [7, 500]
    folder.keep(held(9))
    assert len(seen(folder)) == KEPT
    assert seen(folder) == [9, 7]


def test_what_a_killed_writer_left_is_no_snapshot_and_is_removed(tmp_path: Path) -> None:
    folder = SnapshotFolder(tmp_path)
    path = folder.keep(held(3))
    draft = path.with_name(f".{path.name}.12345")
    draft.write_bytes(b"half")
    assert seen(folder) == [3]
    folder.remove_drafts()
    assert not draft.exists()
    assert seen(folder) == [3]

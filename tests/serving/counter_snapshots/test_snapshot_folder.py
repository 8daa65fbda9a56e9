from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from serving.counter_snapshots.snapshot_file import opened
from serving.counter_snapshots.snapshot_folder import KEPT, SnapshotFolder
from serving.item_counters.counter_standing import HeldCounters, Standing

WRITER = """
import sys
from pathlib import Path
import numpy as np
from serving.counter_snapshots.snapshot_folder import SnapshotFolder
from serving.item_counters.counter_standing import HeldCounters, Standing
from serving.item_counters.key_counters import HeldKey
from serving.item_counters.timeline import Held
folder = SnapshotFolder(Path(sys.argv[1]))
for seen in range(1, 1_000_000):
    runs = [(np.full(50_000, seen), np.full(50_000, seen, np.int32), np.ones(50_000, np.uint8)) for _ in range(4)]
    folder.keep(HeldCounters(Standing("definitions", "log", seen, seen, seen),
                             [HeldKey(list, {"shown": Held(seen, [], runs)})]))
    print(seen, flush=True)
"""


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


@pytest.mark.slow
def test_a_writer_that_is_killed_leaves_the_last_whole(tmp_path: Path) -> None:
    """At any moment of its writing; what was half written is no snapshot."""
    draw, folder = random.Random(1), SnapshotFolder(tmp_path)
    for _ in range(4):
        with subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}) as process:
            assert process.stdout is not None
            acknowledged = [int(process.stdout.readline()) for _ in range(3)][-1]
            time.sleep(0.02 * draw.random())
            process.send_signal(signal.SIGKILL)
        with opened(folder.newest_first()[0]) as newest:
            assert newest.standing.seen >= acknowledged
            assert sum(len(at) for at, _, _ in newest.keys[0].timelines["shown"].leaving) == 4 * 50_000
        for path in folder.newest_first():
            path.unlink()

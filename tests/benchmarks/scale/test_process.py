from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.scale import world
from benchmarks.scale.process import WARM, measure, pin


def test_one_process_reads_and_trains(tmp_path: Path) -> None:
    world.write(tmp_path, world.spec(1000), 64 * (WARM + 4))
    found = measure(tmp_path, 1000, 64, 2)
    assert found["rows_per_second"] == pytest.approx(2 * 64 / found["seconds"])
    assert 0 < found["loss"] < 2


def test_processes_are_dealt_to_the_cores() -> None:
    before = os.sched_getaffinity(0)
    try:
        pin(3, 1)
        assert os.sched_getaffinity(0) == {min(before)}
    finally:
        os.sched_setaffinity(0, before)

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.pipelines.process_cost import bytes_below, cost_of, cpu_seconds, family, resident


def test_a_family_is_a_process_with_all_its_descendants():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert {os.getpid(), child.pid} <= set(family(os.getpid()))
        assert resident(child.pid) > 0
    finally:
        child.communicate(b"\n")
    assert child.pid not in family(os.getpid())


def test_a_process_that_has_ended_takes_nothing():
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert (resident(child.pid), cpu_seconds(child.pid), family(child.pid)) == (0, 0.0, [child.pid])


def test_processor_time_grows_with_work():
    before = cpu_seconds(os.getpid())
    sum(range(10_000_000))
    assert cpu_seconds(os.getpid()) > before


def test_the_cost_of_a_process_counts_its_memory_and_its_temporary_files(tmp_path: Path):
    work = "import sys, time; open(sys.argv[1], 'wb').write(bytes(2**22)); held = bytearray(2**26); time.sleep(1)"
    cost = cost_of([sys.executable, "-c", work, str(tmp_path / "spilled")], os.environ, tmp_path)
    assert cost.seconds >= 1
    assert cost.peak_mib > 64
    assert 4 <= cost.spilled_mib < 5


def test_a_process_that_fails_says_why(tmp_path: Path):
    with pytest.raises(RuntimeError, match="no such thing"):
        cost_of([sys.executable, "-c", "raise SystemExit('no such thing')"], os.environ, tmp_path)


def test_bytes_below_a_folder_are_those_of_all_its_files(tmp_path: Path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_bytes(bytes(10))
    (tmp_path / "c").write_bytes(bytes(5))
    assert bytes_below(tmp_path) == 15

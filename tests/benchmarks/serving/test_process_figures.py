"""Known answers about this very process and a child of it."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from benchmarks.serving.process_figures import cpu_seconds, family, resident_megabytes


def test_a_child_belongs_to_the_family() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert {os.getpid(), child.pid} <= set(family(os.getpid()))
        assert resident_megabytes(os.getpid()) > resident_megabytes(child.pid) > 0
        child.communicate(b"\n")


def test_work_shows_as_time() -> None:
    before, end = cpu_seconds(os.getpid()), time.process_time() + 0.2
    while time.process_time() < end:
        pass
    assert cpu_seconds(os.getpid()) - before >= 0.15

"""Known answers about this very process and a child of it."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
import time

from benchmarks.serving.process_figures import cpu_seconds, family, own_megabytes, resident_megabytes


def test_a_child_belongs_to_the_family() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert {os.getpid(), child.pid} <= set(family(os.getpid()))
        assert resident_megabytes(os.getpid()) > resident_megabytes(child.pid) > 0
        child.communicate(b"\n")


def test_what_is_written_is_a_processs_own() -> None:
    """And what is mapped from a file is not."""
    before = own_megabytes(os.getpid())
    with open(sys.executable, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert sum(mapped[::4096]) > 0
        assert own_megabytes(os.getpid()) < before + 5
    written = bytearray(64 * 2**20)
    written[::4096] = bytes(len(written[::4096]))
    assert own_megabytes(os.getpid()) > before + 50


def test_work_shows_as_time() -> None:
    before, end = cpu_seconds(os.getpid()), time.process_time() + 0.2
    while time.process_time() < end:
        pass
    assert cpu_seconds(os.getpid()) - before >= 0.15

"""Known answers about this very process and a child of it."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from benchmarks.serving.process_figures import cpu_seconds, family, own_megabytes, resident_megabytes

# a process that says each step and waits: nothing yet, a file mapped and read, 64 MiB written
STEPS = """
import mmap, sys
print("empty", flush=True), input()
with open(sys.executable, "rb") as file:
    mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
assert sum(mapping[::4096]) > 0
print("mapped", flush=True), input()
written = bytearray(b"1") * 2**26
print("written", flush=True), input()
"""


def test_a_child_belongs_to_the_family() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert {os.getpid(), child.pid} <= set(family(os.getpid()))
        assert resident_megabytes(os.getpid()) > resident_megabytes(child.pid) > 0
        child.communicate(b"\n")


def test_what_is_written_is_a_processs_own() -> None:
    """And what is mapped from a file is not: of a fresh process, in which nothing that was freed can be used again."""
    command, pipe = [sys.executable, "-c", STEPS], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        own = []
        for line in child.stdout:
            own.append(own_megabytes(child.pid))
            child.stdin.write(line)
            child.stdin.flush()
    empty, mapped, written = own
    assert mapped < empty + 5
    assert written > mapped + 60


def test_work_shows_as_time() -> None:
    before, end = cpu_seconds(os.getpid()), time.process_time() + 0.2
    while time.process_time() < end:
        pass
    assert cpu_seconds(os.getpid()) - before >= 0.15

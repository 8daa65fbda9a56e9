"""A program ends with the process that has begun it, however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

CHILD = [sys.executable, "-m", "serving.balancer.ends_with_parent"]
PARENT = """
import os, subprocess, sys, time
words = [str(os.getpid()), "10", "sleep", "600"]
child = subprocess.Popen([sys.executable, "-m", "serving.balancer.ends_with_parent", *words])
while b"600" not in open(f"/proc/{child.pid}/cmdline", "rb").read().split(b"\\0")[1:2]:
    time.sleep(0.01)
print(child.pid, flush=True)
time.sleep(600)
"""


def test_it_is_the_program_with_its_words() -> None:
    words = [str(os.getpid()), "15", "echo", "a", "b"]
    done = subprocess.run([*CHILD, *words], capture_output=True, text=True, check=True)
    assert done.stdout == "a b\n"


def test_one_whose_parent_has_gone_before_it_could_be_told_does_nothing() -> None:
    done = subprocess.run([*CHILD, "1", "15", "echo", "a"], capture_output=True, text=True, check=True)
    assert done.stdout == ""


def test_it_ends_with_a_parent_that_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert is_running(child)
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    end = time.monotonic() + 30
    while is_running(child):
        assert time.monotonic() < end
        time.sleep(0.02)


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False

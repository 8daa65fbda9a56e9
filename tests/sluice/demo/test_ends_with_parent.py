"""The words of `sluice` go on to it, and it ends with its parent."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from contracts.artifacts import Artifacts

CHILD = [sys.executable, "-m", "sluice.demo.ends_with_parent"]
COMPARED = """
import sys, time
from sluice.commands.side_console import compared
with compared(sys.argv[1]) as target:
    print(target, flush=True)
    time.sleep(600)
"""


def test_it_is_sluice() -> None:
    done = subprocess.run([*CHILD, str(os.getpid()), "serve", "--help"], capture_output=True, text=True, check=True)
    assert "Serve a bundle over gRPC" in done.stdout


def test_one_whose_parent_has_gone_before_it_could_be_told_does_nothing() -> None:
    done = subprocess.run([*CHILD, "1", "serve", "--help"], capture_output=True, text=True, check=True)
    assert done.stdout == ""


@pytest.mark.slow
def test_a_compared_folders_server_ends_with_a_console_that_is_killed(run: Artifacts, tmp_path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}  # for what the killed one leaves
    command = [sys.executable, "-c", COMPARED, str(run.bundle)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as console:
        try:
            assert console.stdout is not None
            port = int(console.stdout.readline().rpartition(":")[2])
            socket.create_connection(("127.0.0.1", port), 5).close()
        finally:
            console.send_signal(signal.SIGKILL)
            console.wait()
    end = time.monotonic() + 30
    while is_taken(port):
        assert time.monotonic() < end
        time.sleep(0.05)


def is_taken(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 5).close()
    except ConnectionError:  # refused, or reset by a listener that closes meanwhile
        return False
    return True

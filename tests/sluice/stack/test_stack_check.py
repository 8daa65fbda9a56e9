"""The whole stack: started, asked over HTTP, seen, stopped."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from contracts.errors import SluiceError
from sluice.stack.stack_check import ask, query


@pytest.mark.slow
def test_the_whole_stack_is_seen_from_outside_and_stops(bundle_folder: Path) -> None:
    command = [sys.executable, "-m", "sluice.stack.stack", str(bundle_folder), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    assert "POST /v1/rank: 3 items" in done.stdout
    assert "sluice.v1.Ranking/Rank" in done.stdout
    if shutil.which("prometheus"):
        assert "queries of the dashboard are answered" in done.stdout


def test_what_does_not_answer_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    with pytest.raises(SluiceError, match=f"{port}.* does not answer"):
        ask(port)
    with pytest.raises(SluiceError, match=f"{port}.* does not answer"):
        query(port, "up")

"""Processes that start, are waited for, and are gone afterwards."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from contracts.errors import SluiceError
from sluice.stack.processes import Processes


def test_a_process_is_waited_for_and_stopped(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    with Processes(tmp_path) as stack:
        stack.start("files", [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1", "--directory",
                              str(tmp_path)])
        stack.wait("files", f"http://127.0.0.1:{port}/", 60)
        assert stack.ended() == ""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 5)


def test_one_that_ends_is_said_with_its_last_words(tmp_path: Path) -> None:
    with Processes(tmp_path) as stack:
        stack.start("short", [sys.executable, "-S", "-c", "print('no bundle here')"])
        with pytest.raises(SluiceError, match=r"short does not answer .*no bundle here"):
            stack.wait("short", "http://127.0.0.1:1/", 60)
        assert stack.ended() == "short"

"""`sluice gateway` as a process: it says where it listens, answers, and stops when it is told to."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import urllib.request
from functools import partial

import pytest

from contracts.errors import SluiceError
from serving.gateway.app import Upstream, gateway
from serving.gateway.http_server import Address, http_config, run
from serving.gateway.shared_connections import MOST, SharedConnections


def test_the_command_listens_and_stops_on_a_signal() -> None:
    command = [sys.executable, "-m", "sluice.cli", "gateway", "--target", "127.0.0.1:1", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"on http://127\.0\.0\.1:(\d+)", process.stdout.readline())
            assert found is not None
            with urllib.request.urlopen(f"http://127.0.0.1:{found[1]}/healthz", timeout=60) as answer:
                assert answer.status == 200
            process.send_signal(signal.SIGTERM)
            process.wait(30)
        finally:
            process.kill()
    assert process.returncode in (0, -signal.SIGTERM)


def test_a_port_that_is_taken_is_said() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(SluiceError, match="another --port"):
            run(Upstream("127.0.0.1:1"), Address(port=other.getsockname()[1]), lambda _: None)


def test_connections_are_bounded_in_number_and_in_idleness() -> None:
    config = http_config(gateway(Upstream("127.0.0.1:1")), 1)
    made = config.http
    assert isinstance(made, partial)
    assert made.func is SharedConnections
    assert made.keywords["places"].most == MOST == 1000
    assert config.timeout_keep_alive == 5

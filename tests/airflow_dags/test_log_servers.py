"""Airflow's log server, started as `setup/airflow.sh` has it started, listens on loopback alone."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LISTENS, SECONDS = "0A", 60.0
SERVE = """import sys, airflow.settings
from airflow.utils.serve_logs import serve_logs
serve_logs(port=int(sys.argv[1]))"""


def listening(port: int) -> set[str]:
    """Addresses, in the kernel's hexadecimal, that listen on the port."""
    rows = [line.split() for table in ("tcp", "tcp6") if Path("/proc/net", table).exists()
            for line in Path("/proc/net", table).read_text().splitlines()[1:]]
    places = [row[1].split(":") for row in rows if row[3] == LISTENS]
    return {address for address, number in places if int(number, 16) == port}


def test_the_log_server_listens_on_loopback_alone(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    home = {"AIRFLOW_HOME": str(tmp_path), "PYTHONPATH": f"{ROOT}:{ROOT / 'setup' / 'airflow_settings'}"}
    with (tmp_path / "log").open("w") as log:
        server = subprocess.Popen([sys.executable, "-c", SERVE, str(port)], env={**os.environ, **home}, stdout=log,
                                  stderr=subprocess.STDOUT)
    try:
        end = time.monotonic() + SECONDS
        while not listening(port) and server.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        assert listening(port) == {"0100007F"}, (tmp_path / "log").read_text()
    finally:
        server.kill()
        server.wait()

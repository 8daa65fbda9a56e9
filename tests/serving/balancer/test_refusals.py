"""Told to the log once a minute, and to the metrics where there are any."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from serving.balancer.refusals import LOG_SECONDS, Refusals

COUNTED = """
import sys
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from serving.balancer.refusals import refusals_of_process
refusals = refusals_of_process()
refusals.more(3, 0.0)
refusals.more(4, 1.0)
registry = CollectorRegistry()
MultiProcessCollector(registry)
print(generate_latest(registry).decode())
"""


def test_the_log_has_a_line_a_minute_with_all_of_it(caplog: pytest.LogCaptureFixture) -> None:
    refusals = Refusals()
    with caplog.at_level(logging.WARNING, "sluice.serving"):
        for number, now in ((0, 0.0), (5, 1.0), (7, 2.0), (2, 3.0), (0, 1.0 + LOG_SECONDS), (0, 99.0 + LOG_SECONDS)):
            refusals.more(number, now)
    assert [line for line in caplog.messages if "5 calls" in line or "9 calls" in line] == caplog.messages
    assert len(caplog.messages) == 2


def test_a_process_that_counts_counts_them(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", COUNTED], capture_output=True, text=True, check=True,
                          env={"PROMETHEUS_MULTIPROC_DIR": str(tmp_path), "PYTHONPATH": ":".join(sys.path)})
    assert "sluice_balancer_refused_total 7.0" in done.stdout

"""A few hundred hostile calls to a real server of one process; `sluice bench fuzz` sends 10,000."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.hostile.fuzz import figures, measure
from benchmarks.hostile.messages import Sent
from benchmarks.hostile.outcome import MEGABYTES, Outcome
from tests.serving.access.small_bundle import small_bundle


def test_no_call_ends_the_worker_takes_much_or_gets_another_status(tmp_path: Path) -> None:
    found = measure(small_bundle(tmp_path), 300, 3)
    assert found.requests >= 250
    assert found.alive
    assert found.undocumented == 0, found.statuses
    assert found.max_mb < MEGABYTES
    assert found.max_metadata_bytes < 8192
    assert found.log_bytes < 5000


def test_what_is_too_much_is_counted() -> None:
    fine = Outcome(Sent("Rank", "drawn", b""), "OK", 1.0, 0.5, 0.0, 0)
    bad = Outcome(Sent("Rank", "drawn", b""), "INTERNAL", 300.0, 200.0, 80.0, 9)
    found = figures([fine, bad, fine], True, 0)
    assert (found.undocumented, found.slow, found.large, found.max_cpu_ms, found.max_metadata_bytes) == (1, 1, 1, 200.0, 9)

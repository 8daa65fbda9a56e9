"""What is too much is counted; tests/serving/test_hostile_requests.py sends some hundreds to a real server."""

from __future__ import annotations

from benchmarks.hostile.fuzz import figures
from benchmarks.hostile.messages import Sent
from benchmarks.hostile.outcome import Outcome


def test_what_is_too_much_is_counted() -> None:
    fine = Outcome(Sent("Ranking/Rank", "drawn", b""), "OK", 1.0, 0.5, 0.0, 0)
    bad = Outcome(Sent("Ranking/Rank", "drawn", b""), "INTERNAL", 300.0, 200.0, 80.0, 9)
    found = figures([fine, bad, fine], True, 0)
    assert (found.undocumented, found.slow, found.large, found.max_cpu_ms, found.max_metadata_bytes) == (
        1, 1, 1, 200.0, 9)

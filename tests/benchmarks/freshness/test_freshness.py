from __future__ import annotations

import pytest

from benchmarks.freshness.freshness import FreshnessFigures, main, whole
from tests.benchmarks.printed_figures import last_line


def test_a_part_that_fails_is_named_and_loses_nothing_of_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    def broken() -> FreshnessFigures:
        raise OSError("no room")

    found, failed = whole({"requests": lambda: FreshnessFigures(updates_per_second=5.0), "kills": broken,
                           "events": lambda: FreshnessFigures(event_age_p99_s=0.5)})
    assert found == FreshnessFigures(updates_per_second=5.0, event_age_p99_s=0.5)
    assert failed == {"kills": "OSError: no room"}
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.slow
def test_the_figures_of_a_small_world(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--items", "3000", "--seconds", "1", "--rate", "10", "--updates", "200", "--workers", "1", "--kills", "0",
          "--events", "0", "--outage", "0"])
    found = last_line(capsys.readouterr().out)["freshness"]
    assert found["updates_per_second"] > 0
    assert found["visible_p99_s"] > 0
    assert found["request_p99_ratio"] > 0
    assert found["after_p99_ratio"] > 0
    assert found["requests_failed"] == 0
    assert found["recall_min"] == 1  # searched exactly, as the one built anew
    assert found["restart_s"] > 0
    assert found["restart_lost"] == 0
    assert "kills" not in found

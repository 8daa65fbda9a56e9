from __future__ import annotations

import pytest

from benchmarks.freshness import counter_costs
from benchmarks.freshness.counter_costs import main
from tests.benchmarks.printed_figures import last_line


def test_the_costs_of_a_small_world(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counter_costs, "WINDOWS", (6, 8))
    main(["--items", "1500", "--seconds", "10", "--events", "300", "--json"])
    found = last_line(capsys.readouterr().out)["counter_costs"]
    assert all(found[name] > 0 for name in ("record_us", "count_us", "longest_look_ms"))
    assert all(found["request_ms"][name] > 0 for name in ("bundle", "live"))
    assert 100 < found["items"] <= 1500
    assert found["held"] > 8 * 240  # of the longest window


def test_a_log_shorter_than_its_windows_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--seconds", "60"])
    assert "more than the longest window" in capsys.readouterr().err

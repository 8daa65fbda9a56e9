"""A real server, started on counters that were kept and on the log alone."""

from __future__ import annotations

import pytest

from benchmarks.freshness.counter_restart import main
from tests.benchmarks.printed_figures import last_line


@pytest.mark.slow
def test_both_count_the_same_items(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--items", "1500", "--events", "2000", "--after", "500", "--json"])
    kept, anew = last_line(capsys.readouterr().out)["counter_restart"]
    assert kept["kept_mib"] > anew["kept_mib"] == 0
    assert kept["events"] == anew["events"] == 2500
    assert kept["items"] == anew["items"] > 100
    assert all(one["counted_s"] >= one["first_answer_s"] > 0 for one in (kept, anew))

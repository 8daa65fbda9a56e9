from __future__ import annotations

import pytest

from benchmarks.pipelines.marketplace import main
from tests.benchmarks.printed_figures import all_finite, last_line, refuses


def test_events_a_minute_stand_beside_those_of_plain_random_numbers(capsys):
    main(["--events", "2000", "--seed", "3"])
    found = last_line(capsys.readouterr().out)
    assert all_finite(found)
    assert found["events"] == 2000
    assert found["seconds"] > found["floor_seconds"] > 0
    assert found["million_a_minute"] == pytest.approx(2000 * 60 / 1e6 / found["seconds"])
    assert found["floor_million_a_minute"] > found["million_a_minute"]


def test_a_wrong_option_is_refused():
    assert refuses(main, "--rows", "2000")

"""What the demo must show, and says when it did not."""

from __future__ import annotations

import pytest

from contracts.errors import SluiceError
from sluice.airflow_demo.six_days import require_as_planned, told


def days(**changed):
    found = [{"day": n, "bundle": f"m-{n}", "refused": "", "rolled_back": "", "failed_requests": 0, "requests": 9,
              "share_of_oracle": 0.8} for n in range(1, 7)]
    found[3]["refused"], found[4]["refused"], found[5]["rolled_back"] = "quality: nulls", "promotion: GAUC", "clicks"
    for name, value in changed.items():
        number, _, key = name.removeprefix("day_").partition("_")
        found[int(number) - 1][key] = value
    return found


def test_six_days_as_planned_are_no_complaint():
    require_as_planned(days())


@pytest.mark.parametrize("changed", [
    {"day_2_failed_requests": 1}, {"day_4_refused": ""}, {"day_5_refused": "quality: nulls"}, {"day_6_rolled_back": ""},
    {"day_1_refused": "promotion: GAUC"}, {"day_3_rolled_back": "clicks"},
])
def test_anything_else_is(changed):
    with pytest.raises(SluiceError, match="did not go as planned"):
        require_as_planned(days(**changed))


def test_a_day_is_told_in_words():
    said = [told(day) for day in days()]
    assert "refused: quality" in said[3]
    assert "rolled back: clicks" in said[5]
    assert "promoted; champion m-1, 9 requests, 0 failed" in said[0]

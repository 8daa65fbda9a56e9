"""What the demo must show, and says when it did not."""

from __future__ import annotations

import pytest

from contracts.errors import SluiceError
from contracts.summaries.airflow_demo import DemoDay
from sluice.airflow_demo.six_days import require_as_planned
from tests.sluice.airflow_demo.planned_days import planned_days


def changed(days: list[DemoDay], number: int, **figures: object) -> list[DemoDay]:
    return [day.model_copy(update=figures) if day.day == number else day for day in days]


def test_six_days_as_planned_are_no_complaint():
    require_as_planned(planned_days())


@pytest.mark.parametrize(("number", "figures"), [
    (2, {"failed_requests": 1}), (4, {"refused": ""}), (5, {"refused": "quality: nulls"}), (6, {"rolled_back": ""}),
    (1, {"refused": "promotion: GAUC"}), (3, {"rolled_back": "clicks"}),
    (4, {"refused": "quality: nulls; delivered again, promotion: GAUC"}),
])
def test_anything_else_is(number, figures):
    with pytest.raises(SluiceError, match=f"did not go as planned: day {number}"):
        require_as_planned(changed(planned_days(), number, **figures))

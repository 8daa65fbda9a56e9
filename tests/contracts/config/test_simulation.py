from __future__ import annotations

import pytest
from pydantic import ValidationError

from contracts.config.simulation import Simulation
from contracts.duration import UNITS


def test_a_simulation_starts_on_a_day_so_that_its_days_are_the_logs() -> None:
    assert Simulation().start.timestamp() % UNITS["d"] == 0
    assert Simulation().drift == 0.0


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_some_impressions_are_clicked_and_some_are_not(rate: float) -> None:
    with pytest.raises(ValidationError, match="click_rate"):
        Simulation(click_rate=rate)

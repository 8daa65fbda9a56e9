from __future__ import annotations

import numpy as np
import pytest

from sluice.init.codes import are_codes
from sluice.init.column_types import Column

RANDOM = np.random.default_rng(3)
ROWS = 4000
ROLES = RANDOM.choice(300_000, 400, replace=False)
SKEWED = RANDOM.zipf(1.3, ROWS) % 400


def column(values: np.ndarray, name: str = "x") -> Column:
    return Column(name, name, "integer", [int(value) for value in values])


@pytest.mark.parametrize("values", [ROLES[SKEWED], ROLES[RANDOM.integers(0, 400, ROWS)], -ROLES[SKEWED],
                                    100_000 + 7 * ROLES[SKEWED],
                                    np.where(RANDOM.random(ROWS) < 0.65, 117_961, ROLES[SKEWED])])
def test_values_that_recur_far_apart_are_codes(values: np.ndarray) -> None:
    assert "recur" in (are_codes(column(values)) or "")


@pytest.mark.parametrize("values", [
    RANDOM.normal(40, 12, ROWS),  # ages
    RANDOM.lognormal(5, 1, ROWS),  # durations
    RANDOM.lognormal(11, 0.5, ROWS),  # weights: nearly every row has its own
    1000 * RANDOM.integers(20, 90, ROWS),  # salaries in thousands
    100 * RANDOM.integers(1, 3000, ROWS) // 500 * 500,  # amounts to the next 500
    RANDOM.integers(1, 90, ROWS) * 50 - 1,  # prices that end in 49 and 99
    86_400 * RANDOM.integers(0, 60, ROWS),  # days in seconds
    np.where(RANDOM.random(ROWS) < 0.9, 0, ROLES[SKEWED]),  # gains that most people lack
])
def test_amounts_are_none(values: np.ndarray) -> None:
    assert are_codes(column(values)) is None


@pytest.mark.parametrize(("name", "known"), [
    ("app", True), ("device_type", True), ("Channel", True), ("ROLE_DEPTNAME", True), ("ip", True), ("shop_id", True),
    ("age", False), ("campaign", False), ("hours", False), ("ship", False), ("apple", False),
])
def test_names_tell_codes(name: str, known: bool) -> None:
    assert bool(are_codes(column(RANDOM.integers(0, 100, ROWS), name))) == known

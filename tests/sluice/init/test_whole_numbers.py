from __future__ import annotations

import numpy as np
import pytest

from sluice.init.whole_numbers import judge

RANDOM = np.random.default_rng(3)
ROWS = 4000
ROLES = RANDOM.choice(300_000, 400, replace=False)
SKEWED = RANDOM.zipf(1.3, ROWS) % 400
DENSE = RANDOM.integers(0, 100, ROWS)


def meaning(values: np.ndarray, name: str = "x", label: np.ndarray | None = None) -> str:
    truth = None if label is None else [bool(one) for one in label]
    return judge(name, [int(value) for value in values], truth).meaning


@pytest.mark.parametrize("values", [
    ROLES[SKEWED], ROLES[RANDOM.integers(0, 400, ROWS)], -ROLES[SKEWED], 100_000 + 7 * ROLES[SKEWED],
    np.where(RANDOM.random(ROWS) < 0.65, 117_961, ROLES[SKEWED]),
    RANDOM.integers(10**15, 10**16, 300)[RANDOM.integers(0, 300, ROWS)],  # hashes
])
def test_values_that_recur_far_apart_are_codes(values: np.ndarray) -> None:
    assert meaning(values) == "code"


@pytest.mark.parametrize("values", [
    RANDOM.normal(40, 12, ROWS),  # ages
    RANDOM.lognormal(5, 1, ROWS),  # durations
    RANDOM.lognormal(11, 0.5, ROWS),  # weights: nearly every row has its own
    RANDOM.normal(2000, 12, ROWS),  # years
    RANDOM.geometric(0.03, ROWS),  # counts
    1000 * RANDOM.integers(20, 90, ROWS),  # salaries in thousands
    100 * RANDOM.integers(1, 3000, ROWS) // 500 * 500,  # amounts to the next 500
    RANDOM.integers(1, 90, ROWS) * 50 - 1,  # prices that end in 49 and 99
    86_400 * RANDOM.integers(0, 60, ROWS),  # days in seconds
])
def test_amounts_are_quantities(values: np.ndarray) -> None:
    assert meaning(values) == "quantity"


@pytest.mark.parametrize(("name", "expected"), [
    ("app", "code"), ("device_type", "code"), ("Channel", "code"), ("ROLE_DEPTNAME", "code"), ("ip", "code"),
    ("shopId", "code"), ("age", "quantity"), ("hours", "quantity"), ("num_clicks", "quantity"), ("ship", "both"),
    ("apple", "both"),
])
def test_where_the_values_tell_nothing_names_do(name: str, expected: str) -> None:
    assert meaning(DENSE, name) == expected


def test_the_label_tells_small_codes_from_counts() -> None:
    effect = RANDOM.normal(0, 2, 100)[DENSE]
    truth = RANDOM.random(ROWS) < 1 / (1 + np.exp(-effect))
    assert meaning(DENSE, label=truth) == "code"
    assert meaning(DENSE, label=RANDOM.random(ROWS) < DENSE / 100) == "quantity"


def test_what_is_both_is_offered_as_both() -> None:
    """A smooth rise, and values that stand out, as gains that only some professions have."""
    gain = RANDOM.integers(0, 400, 2 * ROWS)
    chance = np.where(gain % 10 == 3, 0.95, 0.1 + gain / 600)
    truth = RANDOM.random(2 * ROWS) < chance
    judged = judge("x", [int(value) for value in gain], [bool(one) for one in truth])
    assert judged.meaning == "both"
    assert "nats of held-out log loss" in judged.why


def test_signs_that_contradict_each_other_are_offered_as_both() -> None:
    assert meaning(np.where(RANDOM.random(ROWS) < 0.9, 0, ROLES[SKEWED])) == "both"  # gains that most people lack

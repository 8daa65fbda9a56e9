from __future__ import annotations

import numpy as np
import pytest

from serving.item_counters.pace import LOOK_SECONDS, PATIENCE_SECONDS, REST, Pace

SPENT = 0.004


def seconds(lulls: list[float], spent: float, behind: bool) -> float:
    """From one look's beginning to another's, on a clock that is made: a lull comes after so many seconds."""
    pace, found = Pace(), 0.0
    for lull in lulls:
        waited = min(lull, pace.patience)
        pace.looked(waited, spent, behind)
        found += waited + spent + pace.rest
    return found / len(lulls)


@pytest.mark.parametrize("spent", [0.001, SPENT, 0.03])
def test_behind_it_takes_the_whole_share_of_a_core_though_no_lull_comes(spent: float) -> None:
    looks = 100
    first = PATIENCE_SECONDS / looks  # what had been in step until then
    found = seconds([60.0] * looks, spent, behind=True)
    assert spent / (found - first) == pytest.approx(1 / (1 + REST), rel=0.02)


@pytest.mark.parametrize("behind", [True, False])
@pytest.mark.parametrize("spent", [SPENT, 0.5])
def test_it_takes_no_more_than_that_share_whenever_lulls_come(spent: float, behind: bool) -> None:
    lulls = np.random.default_rng(0).exponential(0.02, 500).tolist()
    for one in (lulls, [0.0] * 500):
        assert spent / seconds(one, spent, behind) <= 1 / (1 + REST) + 1e-9


def test_in_step_it_looks_again_after_a_while_and_waits_long_for_a_lull() -> None:
    pace = Pace()
    assert (pace.rest, pace.patience) == (LOOK_SECONDS, PATIENCE_SECONDS)
    pace.looked(0.0, SPENT, behind=True)
    assert pace.patience == pace.rest == REST * SPENT
    pace.looked(0.0, SPENT, behind=False)
    assert (pace.rest, pace.patience) == (LOOK_SECONDS, PATIENCE_SECONDS)

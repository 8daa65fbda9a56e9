from __future__ import annotations

import numpy as np
import pytest

from contracts.config.simulation import Simulation
from pipelines.marketplace.marketplace import build_world
from pipelines.marketplace.newcomers import Donors, with_newcomers

TRUTH = build_world(Simulation(events=2_000, users=300, items=120, days=2), 5)[2]
CONTEXT = {"device": "phone", "placement": "feed", "hour": 9}


def test_items_of_the_log_stay_as_they_are() -> None:
    found = with_newcomers(TRUTH, Donors.drawn(120, 7, np.random.default_rng(1)))
    assert len(found.item_ids) == 127
    assert len(set(found.values["item"])) == 127
    np.testing.assert_array_equal(found.slate("u_017", CONTEXT)[:120], TRUTH.slate("u_017", CONTEXT))


def test_a_newcomer_of_one_donor_is_worth_what_the_donor_is() -> None:
    same = np.array([3, 50, 119])
    found = with_newcomers(TRUTH, Donors(same, same, same)).slate("u_017", CONTEXT)
    assert found[120:] == pytest.approx(found[same])


def test_each_value_is_that_of_the_fields_own_donor() -> None:
    donors = Donors.drawn(120, 40, np.random.default_rng(2))
    items = with_newcomers(TRUTH, donors).items
    for name, codes in TRUTH.items.items():
        if name != "item":
            np.testing.assert_array_equal(items[name][120:], codes[donors.of(name)], err_msg=name)
    assert (donors.of("category") != donors.of("format")).any()
    assert (donors.of("price") != donors.of("format")).any()

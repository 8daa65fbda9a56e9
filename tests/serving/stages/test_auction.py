from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.stages.auction import expected_revenue, second_price

ADS = st.lists(
    st.tuples(st.floats(0.0, 5.0, width=32), st.floats(0.0, 1.0, width=32)), min_size=1, max_size=12
)
RESERVES = st.one_of(st.just(0.0), st.floats(1e-6, 500.0))  # below, a price per click is no float any more


def run(ads: list[tuple[float, float]], slots: int, reserve: float):
    bids, probabilities = (np.array(column, dtype=np.float32) for column in zip(*ads, strict=True))
    return bids, probabilities, second_price(bids, probabilities, np.arange(len(ads)), slots, reserve)


def test_known_answer() -> None:
    bids = np.array([1.0, 2.0, 0.5, 4.0])
    p = np.array([0.1, 0.1, 0.1, 0.01])
    slate = second_price(bids, p, np.arange(4), slots=2, reserve=45.0)
    assert slate.order.tolist() == [1, 0]
    assert slate.score == pytest.approx([200.0, 100.0])
    assert slate.price == pytest.approx([1.0, 0.5])


def test_the_last_winner_pays_the_reserve_when_nobody_is_behind() -> None:
    slate = second_price(np.array([2.0]), np.array([0.1]), np.array([7]), slots=3, reserve=30.0)
    assert slate.price == pytest.approx([0.3])


def test_below_the_reserve_stays_out() -> None:
    slate = second_price(np.array([0.2, 1.0]), np.array([0.1, 0.1]), np.arange(2), slots=5, reserve=50.0)
    assert slate.order.tolist() == [1]


def test_what_no_bid_was_made_for_is_not_sold() -> None:
    slate = second_price(np.array([0.0, 1.0, 2.0]), np.array([0.9, 0.1, 0.1]), np.arange(3), slots=3, reserve=0.0)
    assert slate.order.tolist() == [2, 1]
    assert slate.price == pytest.approx([1.0, 0.0])  # the last one has nobody behind it, and no reserve


def test_prices_come_of_what_is_to_beat_and_of_who_is_behind() -> None:
    bids, p = np.array([1.0, 2.0, 3.0, 4.0]), np.full(4, 0.1)
    slate = second_price(bids, p, np.arange(4), slots=2, reserve=50.0)
    assert slate.to_beat == pytest.approx([300.0, 200.0])
    assert slate.behind.tolist() == [1]
    assert slate.price == pytest.approx(slate.to_beat / (1000 * p[slate.order]))
    assert second_price(bids, p, np.arange(4), slots=4, reserve=50.0).behind.tolist() == []


def test_nobody_reaches_the_reserve() -> None:
    assert second_price(np.array([0.2]), np.array([0.1]), np.array([0]), 5, 50.0).order.tolist() == []


def test_a_probability_that_is_no_number_costs_its_own_item_alone() -> None:
    slate = second_price(np.ones(6), np.array([0.1, np.nan, 0.3, 0.2, np.nan, 0.4]), np.arange(6), slots=2, reserve=0.0)
    assert slate.order.tolist() == [5, 2]
    assert slate.to_beat == pytest.approx([300.0, 200.0])


def test_ties_go_to_the_smaller_item_row() -> None:
    slate = second_price(np.ones(3), np.full(3, 0.1), np.array([9, 4, 6]), slots=2, reserve=0.0)
    assert slate.order.tolist() == [1, 2]


@given(ADS, st.integers(1, 12), RESERVES)
def test_prices_lie_between_reserve_and_bid(ads: list[tuple[float, float]], slots: int, reserve: float) -> None:
    bids, p, slate = run(ads, slots, reserve)
    assert (slate.price <= bids[slate.order]).all()
    paid = 1000.0 * slate.price * p[slate.order].astype(np.float64)
    assert (paid >= reserve * (1 - 1e-9)).all()


@given(ADS, st.integers(1, 12), RESERVES)
def test_order_against_a_plain_sort(ads: list[tuple[float, float]], slots: int, reserve: float) -> None:
    bids, p, slate = run(ads, slots, reserve)
    revenue = 1000.0 * bids.astype(np.float64) * p.astype(np.float64)
    sold = [i for i in range(len(ads)) if revenue[i] >= reserve and bids[i] > 0]
    expected = sorted(sold, key=lambda i: (-revenue[i], i))
    assert slate.order.tolist() == expected[:slots]
    assert slate.score.tolist() == revenue[expected[:slots]].tolist()


@given(ADS, RESERVES, st.integers(0, 11), st.floats(1.0, 3.0))
def test_raising_a_bid_never_lowers_the_rank(
    ads: list[tuple[float, float]], reserve: float, who: int, by: float
) -> None:
    who %= len(ads)
    raised = [*ads]
    raised[who] = (ads[who][0] * by, ads[who][1])
    before, after = (run(a, len(ads), reserve)[2].order.tolist() for a in (ads, raised))
    if who in before:
        assert after.index(who) <= before.index(who)


@given(ADS, st.integers(0, 11), st.floats(1.0, 3.0), RESERVES)
def test_the_price_does_not_depend_on_the_winners_own_bid(
    ads: list[tuple[float, float]], who: int, by: float, reserve: float
) -> None:
    who %= len(ads)
    raised = [*ads]
    raised[who] = (ads[who][0] * by, ads[who][1])
    slates = [run(a, len(ads), reserve)[2] for a in (ads, raised)]
    places = [slate.order.tolist().index(who) if who in slate.order else None for slate in slates]
    if places[0] is not None and places[0] == places[1]:
        assert slates[0].price[places[0]] == pytest.approx(slates[1].price[places[0]], rel=1e-6)


def test_expected_revenue_is_per_thousand() -> None:
    assert expected_revenue(np.array([2.0]), np.array([0.05])) == pytest.approx([100.0])

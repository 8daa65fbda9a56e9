from __future__ import annotations

import numpy as np
import pytest

from tests.sluice.fresh_demo.small_hour import ITEMS, TRUTH, small_hour


def test_one_seed_draws_one_hour() -> None:
    first, again, other = small_hour(), small_hour(), small_hour(seed=4)
    assert first.visits == again.visits != other.visits
    assert first.shelf.changes() == again.shelf.changes() != other.shelf.changes()
    for visit in first.visits[:5]:
        np.testing.assert_array_equal(first.uniform(visit), again.uniform(visit))
        np.testing.assert_array_equal(first.probability(visit), again.probability(visit))
    assert (first.uniform(first.visits[0]) != first.uniform(first.visits[1])).any()


def test_without_a_mood_items_of_the_log_are_worth_what_the_truth_says_in_the_evening() -> None:
    hour = small_hour(mood=0.0)
    visit = hour.visits[100]
    assert visit.who.context["hour"] == 20
    assert hour.probability(visit)[:ITEMS] == pytest.approx(TRUTH.slate(visit.who.user, visit.who.context))


def test_a_mood_lifts_two_categories_and_no_other() -> None:
    still, moving = small_hour(mood=0.0), small_hour(mood=1.5)
    visit = moving.visits[100]
    lifted = moving.probability(visit) > still.probability(visit) * (1 + 1e-9)
    wanted = {int(moving.moods.first[visit.user]), int(moving.moods.second[visit.user])}
    np.testing.assert_array_equal(lifted, np.isin(moving.truth.items["category"], list(wanted)))


def test_visits_come_in_order_within_the_hour_from_all_guests_half_of_them_with_an_auction() -> None:
    visits = small_hour().visits
    minutes = [visit.minute for visit in visits]
    assert minutes == sorted(minutes)
    assert 0 <= minutes[0] <= minutes[-1] <= 60
    assert len({visit.user for visit in visits}) == 12
    assert np.mean([visit.auction for visit in visits]) == pytest.approx(0.5, abs=0.12)

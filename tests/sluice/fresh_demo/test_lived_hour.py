"""The laws of the hour, whoever answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sluice.fresh_demo.hour import Hour
from sluice.fresh_demo.lived_hour import NEWS, LivedVisit, News, live
from tests.sluice.fresh_demo.small_hour import LIMIT, STILL, Best, Told, small_hour

NOTHING, ITEMS, ALL = NEWS


def lived(hour: Hour, news: News, server: Any = None, clicked: Any = None) -> list[LivedVisit]:
    answers: Any = server or Told(hour)
    return live(hour, news, answers, clicked or {}, LIMIT)


@pytest.mark.parametrize("news", NEWS, ids=lambda news: news.name)
def test_no_slate_is_worth_more_than_the_best_and_the_best_one_is_worth_as_much(news: News) -> None:
    hour = small_hour()
    found = lived(hour, news)
    assert all(visit.worth <= visit.best + 1e-12 for visit in found)
    assert sum(visit.worth for visit in found) < sum(visit.best for visit in found)
    for visit in lived(hour, ALL, Best(hour)):
        assert visit.worth == pytest.approx(visit.best)
        assert (visit.unavailable, visit.repeated, visit.lost) == (0, 0, 0.0)


def test_who_is_told_of_changes_loses_nothing_and_who_is_not_does() -> None:
    hour = small_hour()
    told, untold = lived(hour, ITEMS), lived(hour, NOTHING)
    assert sum(visit.lost for visit in told) == 0 == sum(visit.unavailable for visit in told)
    assert sum(visit.lost for visit in untold) > 0 < sum(visit.unavailable for visit in untold)


def test_without_changes_telling_them_changes_nothing() -> None:
    hour = small_hour(shares=STILL, mood=0.0)
    assert lived(hour, ITEMS) == lived(hour, NOTHING)


def test_what_was_clicked_is_worth_nothing_again_and_events_keep_it_away() -> None:
    hour = small_hour(shares=STILL)
    told, untold = lived(hour, ALL), lived(hour, NOTHING)
    assert sum(visit.clicked for visit in told) > 0 == sum(visit.repeated for visit in told)
    assert sum(visit.repeated for visit in untold) > 0


def test_what_was_clicked_before_the_hour_counts_as_clicked() -> None:
    hour = small_hour(shares=STILL)
    slate = Told(hour).ask(hour.visits[0], LIMIT)
    codes = np.array([hour.truth.values["item"].index(item) for item in slate])
    first = lived(hour, NOTHING, clicked={hour.visits[0].user: codes})[0]
    assert (first.worth, first.clicked, first.repeated) == (0.0, 0, LIMIT)
    assert first.best > 0


def test_two_runs_that_show_the_same_see_the_same_clicks() -> None:
    hour = small_hour()
    assert lived(hour, ALL) == lived(hour, ALL)

"""The stream of one day: whole requests in time order, and what is written of what was clicked."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from contracts.config.simulation import Simulation
from pipelines.marketplace.click_stream import DAY_US, Shown, click, click_table, impression_table, show
from pipelines.marketplace.marketplace import build_world
from pipelines.marketplace.truth import Truth
from pipelines.marketplace.world import SLATE, Population

EVENTS, FIRST, START = 4_001, 50, 20 * DAY_US


class Day(NamedTuple):
    population: Population
    truth: Truth
    shown: Shown


@pytest.fixture(scope="module")
def day() -> Day:
    population, policy, truth = build_world(Simulation(events=EVENTS, users=400, items=200, days=1), 3)
    shown = show(np.random.default_rng(3), population, policy, FIRST, EVENTS, START)
    return Day(population, truth, shown)


def test_requests_are_whole_in_order_and_within_the_day(day: Day) -> None:
    shown = day.shown
    assert len(shown.request) == EVENTS
    assert np.unique(shown.request).tolist() == list(range(FIRST, FIRST + -(-EVENTS // SLATE)))
    assert (np.diff(shown.time) >= 0).all()
    assert START <= shown.time.min() <= shown.time.max() < START + DAY_US
    assert (shown.context["hour"] == (shown.time - START) * 24 // DAY_US).all()
    for request in (FIRST, FIRST + 1, shown.request[-1]):
        own = shown.request == request
        assert shown.position[own].tolist() == list(range(1, own.sum() + 1))
        assert len(set(shown.users[own])) == len(set(shown.time[own])) == 1
        assert len(set(shown.items[own])) == own.sum()


def test_likelier_impressions_are_clicked_more_often(day: Day) -> None:
    logit = day.truth.logit(day.truth.codes(day.shown.users, day.shown.items, day.shown.context, day.shown.position))
    clicks = np.mean([click(np.random.default_rng(seed), day.truth, day.shown) for seed in range(20)], axis=0)
    likely = logit > np.median(logit)
    assert clicks[likely].mean() > 2 * clicks[~likely].mean()


def test_a_click_is_written_after_its_impression_and_known_after_itself(day: Day) -> None:
    clicked = np.arange(EVENTS) % 7 == 0
    written = click_table(np.random.default_rng(1), day.population, day.shown, clicked)
    time, known = (written[name].cast("int64").to_numpy() for name in ("event_time", "known_time"))
    assert len(written) == clicked.sum()
    assert (time >= day.shown.time[clicked]).all()
    assert (known >= time).all()


def test_impressions_are_written_once_but_for_a_few_that_are_known_again_later(day: Day) -> None:
    clicked = np.arange(EVENTS) % 7 == 0
    written = impression_table(np.random.default_rng(1), day.population, day.shown, clicked)
    assert 0 <= len(written) - EVENTS < 0.01 * EVENTS
    assert written["position"].to_pylist()[:EVENTS] == day.shown.position.tolist()
    dwelt = np.array([value is not None for value in written["dwell_seconds"].to_pylist()[:EVENTS]])
    assert dwelt[clicked].all()
    assert dwelt[~clicked].mean() < 0.05

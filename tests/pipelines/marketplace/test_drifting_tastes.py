"""Tastes turn, days stay as hard as they were, and a world without drift is the one it always was."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from contracts.config.simulation import Simulation
from pipelines.marketplace.drifting_tastes import turns
from pipelines.marketplace.marketplace import build_drift, build_world, simulate
from pipelines.marketplace.truth import Truth

SMALL = Simulation(events=3000, users=300, items=120, days=4, click_rate=0.1, drift=0.4)


def files(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in folder.rglob("*.parquet")}


@pytest.fixture(scope="module")
def drift():
    return build_drift(SMALL, 3)


@pytest.mark.slow
def test_the_first_day_is_the_world_without_drift(drift):
    _, _, still = build_world(SMALL, 3)
    pairs = zip(drift.on(0).terms, still.terms, strict=True)
    assert all(np.array_equal(one.table, other.table) for one, other in pairs)


def test_tables_turn_by_the_angle_and_other_terms_stay(drift):
    quarter = build_drift(SMALL.model_copy(update={"drift": np.pi / 2}), 3)
    for first, other, now, day in zip(drift.first.terms, drift.other.terms, quarter.on(1).terms, drift.on(2).terms,
                                      strict=True):
        np.testing.assert_allclose(now.table, other.table if turns(first) else first.table, atol=1e-12)
        wanted = np.cos(0.8) * first.table + np.sin(0.8) * other.table if turns(first) else first.table
        np.testing.assert_allclose(day.table, wanted)
    assert {term.component for term in drift.first.terms if turns(term)} == {
        "fields", "crosses_order_2", "crosses_order_3", "segment_taste"}


@pytest.mark.slow
def test_the_tastes_of_users_turn_at_their_own_pace():
    still = build_drift(SMALL, 3)
    quarter = build_drift(SMALL.model_copy(update={"drift": 0.0, "user_drift": np.pi / 2}), 3)
    assert np.array_equal(still.on(3).user_taste, still.first.user_taste)
    np.testing.assert_allclose(quarter.on(1).user_taste, quarter.other.user_taste, atol=1e-12)
    assert all(np.array_equal(now.table, first.table)
               for now, first in zip(quarter.on(1).terms, quarter.first.terms, strict=True))
    assert np.array_equal(quarter.on(1).item_taste, quarter.first.item_taste)


def test_the_logit_varies_as_much_on_each_day(drift):
    population, _, _ = build_world(SMALL, 3)
    draw, n = np.random.default_rng(0), 20_000
    context = {name: draw.integers(0, len(population.values[name]), n) for name in ("device", "placement", "hour")}
    codes = drift.first.codes(draw.integers(300, size=n), draw.integers(120, size=n), context, 1)
    deviations = [drift.on(day).logit(codes).std() for day in range(4)]
    assert max(deviations) / min(deviations) < 1.25


@pytest.mark.slow
def test_each_day_is_clicked_by_its_own_truth_and_a_still_world_is_what_it_was(tmp_path):
    simulate(SMALL, 3, tmp_path / "raw", tmp_path / "truth")
    for day in range(4):
        told = Truth.of_day(tmp_path / "truth", day)
        assert np.array_equal(told.terms[-1].table, build_drift(SMALL, 3).on(day).terms[-1].table)
    still = SMALL.model_copy(update={"drift": 0.0})
    simulate(still, 3, tmp_path / "still", tmp_path / "still_truth")
    assert not list((tmp_path / "still_truth").glob("day-*"))
    whole, third = Truth.load(tmp_path / "still_truth"), Truth.of_day(tmp_path / "still_truth", 3)
    assert np.array_equal(whole.user_taste, third.user_taste)
    moved, kept = files(tmp_path / "raw"), files(tmp_path / "still")
    assert moved.keys() == kept.keys()
    same = {name for name in kept if kept[name] == moved[name]}
    assert {"users/users.parquet", "items/items.parquet", "clicks/part-000.parquet"} <= same
    assert "clicks/part-003.parquet" not in same

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from models.cross_search.columns import CrossColumns
from models.cross_search.pruning import Fold, GainEstimator, folds_of, log_loss, select, slopes
from tests.models.crossed_world import crossed_columns, pair_logit, triple_logit


@pytest.fixture(scope="module")
def world() -> CrossColumns:
    first, second = pair_logit(0, 3), pair_logit(1, 4)
    return crossed_columns(lambda ids: first(ids) + second(ids))


def every(columns: CrossColumns, *orders: int) -> list[frozenset[int]]:
    return [frozenset(c) for order in orders for c in itertools.combinations(range(len(columns.slots)), order)]


def picked(columns: CrossColumns, **changed: Any) -> list[frozenset[int]]:
    estimator = GainEstimator(columns, folds_of(None, columns.rows, 0))
    settings = {"budget": 10, "max_keys": 10**6, "min_count": 1, "min_gain": 3.0, **changed}
    return [selected.cross for selected in select(estimator, every(columns, 2, 3), **settings)]


def test_the_planted_pairs_come_first_and_no_triple_repeats_them(world: CrossColumns) -> None:
    found = picked(world)
    assert set(found[:2]) == {frozenset({0, 3}), frozenset({1, 4})}
    assert len(found) <= 4


def test_a_pair_of_pairs_is_no_triple_of_its_own(world: CrossColumns) -> None:
    estimator = GainEstimator(world, folds_of(None, world.rows, 0))
    alone, _ = estimator.estimate(frozenset({0, 3, 1}))
    estimator.accept(frozenset({0, 3}), 5.0)
    given, _ = estimator.estimate(frozenset({0, 3, 1}))
    assert alone > 20 > given


def test_a_planted_triple_is_found_beside_its_pairs() -> None:
    assert frozenset({0, 2, 4}) in picked(crossed_columns(triple_logit()))


def test_noise_gains_nothing() -> None:
    assert picked(crossed_columns(lambda ids: np.full(len(ids), -1.0))) == []


def test_what_gains_nothing_is_not_kept_where_no_gain_is_asked_for() -> None:
    noise = crossed_columns(lambda ids: np.full(len(ids), -1.0))
    assert picked(replace(noise, user=np.arange(noise.rows) // 8), min_gain=0.0) == []


def test_four_users_confirm_no_cross(world: CrossColumns) -> None:
    assert picked(replace(world, user=np.arange(world.rows) % 4), min_gain=0.0) == []


def of_users(seed: int) -> tuple[CrossColumns, Fold]:
    """Sixty users with a level of their own, thirty of them in the fit part: no cross says anything of the others."""
    generator = np.random.default_rng(seed)
    columns = crossed_columns(lambda ids: np.zeros(len(ids)), rows=6000)
    user = np.repeat(np.arange(60), 100)
    ids = generator.integers(2, 6, (60, len(columns.slots))).astype(np.int32)[user]
    level = generator.normal(0, 1.5, 60)[user]
    label = (generator.random(6000) < 1 / (1 + np.exp(-level))).astype(float)
    return replace(columns, ids=ids, label=label, user=user), Fold(np.arange(3000), np.arange(3000, 6000))


def test_crosses_that_name_users_gain_by_chance_and_are_refused() -> None:
    found = {"with users": 0, "without": 0}
    for seed in range(6):
        columns, fold = of_users(seed)
        for name, world in (("with users", columns), ("without", replace(columns, user=None))):
            found[name] += len(select(GainEstimator(world, [fold]), every(columns, 2, 3), budget=10, max_keys=10**6,
                                      min_count=1, min_gain=3.0))
    assert found["without"] > 10  # dozens of nats for one user more or less
    assert found["with users"] <= 2


def test_what_many_users_confirm_is_kept(world: CrossColumns) -> None:
    with_users = replace(world, user=np.arange(world.rows) // 8)
    assert set(picked(with_users)[:2]) == {frozenset({0, 3}), frozenset({1, 4})}


def test_budget_and_keys_are_respected(world: CrossColumns) -> None:
    assert len(picked(world, budget=1)) == 1
    assert picked(world, max_keys=15) == []
    assert len(picked(world, max_keys=16)) == 1  # 4 x 4 keys


def test_one_cross_per_set_of_fields() -> None:
    columns = crossed_columns(pair_logit(0, 3))
    fine = columns.slots[0]._replace(name="f0#fine", field="f0")
    twice = CrossColumns((*columns.slots, fine), np.concatenate([columns.ids, columns.ids[:, :1]], axis=1),
                         columns.label, columns.position, columns.row)
    found = picked(twice)
    assert sum(3 in cross and bool(cross & {0, 6}) and len(cross) == 2 for cross in found) == 1


def test_behind_the_newton_steps_the_slope_of_every_code_vanishes(world: CrossColumns) -> None:
    """At the ridge optimum of a code's weight w: sum over its fit rows of (y - p) = ridge w."""
    fit, ridge, cross = np.arange(4000), 5.0, [0, 3]
    estimator = GainEstimator(world, [Fold(fit, np.arange(4000, 8000))])
    start = estimator.logits[0].copy()
    codes, size = world.codes(cross)
    before = np.bincount(codes[fit], slopes(start, world.label)[0][fit], size)
    estimator.accept(frozenset(cross), ridge)
    after = slopes(estimator.logits[0], world.label)
    slope, curvature = (np.bincount(codes[fit], values[fit], size) for values in after)
    weight = np.zeros(size)
    weight[codes] = estimator.logits[0] - start
    pull, step = slope - ridge * weight, curvature + ridge
    assert np.abs(before).max() > 10.0
    np.testing.assert_allclose(pull / step, 0.0, atol=1e-4)


def test_newton_reaches_the_ridge_optimum_of_each_code(world: CrossColumns) -> None:
    estimator = GainEstimator(world, [Fold(np.arange(4000), np.arange(4000, 8000))])
    start, ridge = estimator.logits[0].copy(), 5.0
    codes, _ = world.codes([0, 3])
    estimator.accept(frozenset({0, 3}), ridge)
    moved = estimator.logits[0] - start
    for code in np.unique(codes)[:4]:
        rows = np.flatnonzero(codes[:4000] == code)

        def loss(weight: float, rows: np.ndarray = rows) -> float:
            return log_loss(start[rows] + weight, world.label[rows]) + ridge * weight**2 / 2

        np.testing.assert_allclose(moved[codes == code], minimize_scalar(loss).x, atol=1e-3)


def test_the_estimate_is_near_the_gain(world: CrossColumns) -> None:
    estimator = GainEstimator(world, folds_of(None, world.rows, 0))
    estimate, ridge = estimator.estimate(frozenset({1, 4}))
    assert estimator.accept(frozenset({1, 4}), ridge) == pytest.approx(estimate, rel=0.35)


def test_a_split_in_time_is_one_fold_of_slices() -> None:
    (fold,) = folds_of(np.arange(10) >= 7, 10, 0)
    assert (fold.fit, fold.holdout) == (slice(0, 7), slice(7, 10))
    scattered = np.array([True, False] * 5)
    np.testing.assert_array_equal(folds_of(scattered, 10, 0)[0].holdout, np.flatnonzero(scattered))


def test_random_folds_hold_every_row_once() -> None:
    folds = folds_of(None, 100, 3)
    assert sorted(np.concatenate([fold.holdout for fold in folds])) == list(range(100))
    rows = np.arange(100)
    assert all(not np.isin(rows[fold.fit], rows[fold.holdout]).any() for fold in folds)


def test_slopes_are_the_derivatives_of_the_log_loss() -> None:
    logits, label, step = np.linspace(-3, 3, 7), np.array([0, 1, 0, 1, 0, 1, 0.0]), 1e-4
    single = [[log_loss(np.array([z + s]), np.array([y])) for s in (-step, 0, step)]
              for z, y in zip(logits, label, strict=True)]
    low, middle, high = np.array(single).T
    slope, curvature = slopes(logits, label)
    np.testing.assert_allclose(slope, (low - high) / (2 * step), atol=1e-6)
    np.testing.assert_allclose(curvature, (high - 2 * middle + low) / step**2, atol=1e-5)

"""The truth is what the clicks were drawn from: calibrated, saved whole, and honest about its noise."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.config.simulation import Simulation
from contracts.errors import DataError
from pipelines.marketplace.click_stream import Policy, Shown, click, show
from pipelines.marketplace.marketplace import build_world
from pipelines.marketplace.truth import CONTEXT, Truth, expected_sigmoid
from pipelines.marketplace.world import SLATE, Population

WORLD = Simulation(users=2_000, items=500, click_rate=0.05)
EVENING: dict[str, str | int] = {"device": "phone", "placement": "feed", "hour": 20}


@pytest.fixture(scope="module")
def world() -> tuple[Population, Policy, Truth]:
    return build_world(WORLD, 11)


@pytest.fixture(scope="module")
def truth(world: tuple[Population, Policy, Truth]) -> Truth:
    return world[2]


@pytest.fixture(scope="module")
def shown(world: tuple[Population, Policy, Truth]) -> Shown:
    return show(np.random.default_rng(5), world[0], world[1], 0, 200_000, 0)


def probability(truth: Truth, shown: Shown) -> np.ndarray:
    context = {name: np.array(truth.values[name])[shown.context[name]] for name in CONTEXT}
    return truth.probability(truth.user_ids[shown.users], truth.item_ids[shown.items], context, shown.position)


@given(st.floats(-8, 8), st.floats(0, 1.0))
@settings(max_examples=50, deadline=None)
def test_expected_sigmoid_equals_brute_force_integration(logit: float, noise_std: float) -> None:
    z = np.linspace(-9, 9, 20_001)
    density = np.exp(-(z**2) / 2)
    brute = (density / (1 + np.exp(-(logit + noise_std * z)))).sum() / density.sum()
    assert expected_sigmoid(np.array([logit]), noise_std)[0] == pytest.approx(brute, abs=1e-8)


def test_clicks_match_the_probabilities_in_every_bin_and_position(truth: Truth, shown: Shown) -> None:
    """Observed clicks lie within four standard deviations of the expected ones, bin by bin."""
    p = probability(truth, shown)
    clicked = click(np.random.default_rng(6), truth, shown)
    bins = np.searchsorted(np.quantile(p, np.linspace(0, 1, 11)[1:-1]), p)
    for groups in (bins, shown.position, shown.context["device"]):
        for group in np.unique(groups):
            chosen = groups == group
            z = (clicked[chosen].sum() - p[chosen].sum()) / np.sqrt((p[chosen] * (1 - p[chosen])).sum())
            assert abs(z) < 4


def test_noise_is_real(truth: Truth, shown: Shown) -> None:
    """Twice the same impressions give other clicks, more different than without noise would be impossible to tell; so
    compare with a truth whose noise is removed: its mean click rate is lower, for sigmoid is convex at low rates."""
    logit = truth.logit(truth.codes(shown.users, shown.items, shown.context, shown.position))
    without = (1 / (1 + np.exp(-logit))).mean()
    assert truth.noise_std > 0.2
    assert click(np.random.default_rng(8), truth, shown).mean() > without * 1.02


def test_mean_probability_is_the_click_rate(truth: Truth, shown: Shown) -> None:
    assert probability(truth, shown).mean() == pytest.approx(WORLD.click_rate, rel=0.03)


def test_probability_falls_with_position(truth: Truth) -> None:
    n = 300
    users, items = truth.user_ids[:n], truth.item_ids[:n]
    context = {name: np.full(n, value) for name, value in EVENING.items()}
    by_position = np.stack([truth.probability(users, items, context, p) for p in range(1, SLATE + 1)])
    assert (np.diff(by_position, axis=0) < 0).all()
    assert (by_position[0] == truth.probability(users, items, context)).all()


def test_slate_is_the_probability_of_every_item_at_position_one(truth: Truth) -> None:
    user = str(truth.user_ids[17])
    slate = truth.slate(user, EVENING)
    one = {name: np.array([value]) for name, value in EVENING.items()}
    expected = [truth.probability(np.array([user]), truth.item_ids[[i]], one)[0] for i in range(0, 500, 50)]
    assert slate.shape == (500,)
    np.testing.assert_allclose(slate[::50], expected, rtol=1e-12)


def test_oracle_slate_is_far_above_the_popular_items(truth: Truth, shown: Shown) -> None:
    clicked = click(np.random.default_rng(9), truth, shown)
    popular = np.argsort(-np.bincount(shown.items[clicked], minlength=500))[:10]
    slates = [truth.slate(str(user), EVENING) for user in truth.user_ids[:50]]
    best = np.mean([np.sort(s)[-10:].mean() for s in slates])
    assert best > 1.5 * np.mean([s[popular].mean() for s in slates])


@pytest.mark.slow
def test_pair_rate_equals_the_mean_over_all_users_items_and_contexts_of_the_pair(truth: Truth) -> None:
    rates = truth.pair_rate(samples=400, seed=1)
    assert rates.shape == (len(truth.values["city"]), len(truth.values["brand"]))
    city, brand = 3, 2
    users, items = np.flatnonzero(truth.users["city"] == city), np.flatnonzero(truth.items["brand"] == brand)
    grid = np.meshgrid(users, items, np.arange(3), np.arange(4), np.arange(24), indexing="ij")
    u, i, device, placement, hour = (g.ravel() for g in grid)
    codes = truth.codes(u, i, {"device": device, "placement": placement, "hour": hour}, 1)
    p = expected_sigmoid(truth.logit(codes), truth.noise_std)
    assert rates[city, brand] == pytest.approx(p.mean(), abs=5 * p.std() / np.sqrt(400))


def test_saved_truth_is_loaded_whole(truth: Truth, shown: Shown, tmp_path: Path) -> None:
    truth.save(tmp_path)
    again = Truth.load(tmp_path)
    assert (probability(again, shown) == probability(truth, shown)).all()
    assert again.planted == truth.planted
    assert again.incidental == truth.incidental


def test_a_folder_without_truth_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=re.escape(str(tmp_path))):
        Truth.load(tmp_path)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"user_ids": np.array(["nobody"])}, "nobody"),
        ({"item_ids": np.array(["nothing"])}, "nothing"),
        ({"position": 0}, "positions"),
        ({"position": SLATE + 1}, "positions"),
        ({"context": {"device": np.array(["phone"]), "placement": np.array(["feed"])}}, "hour"),
        ({"context": {name: np.array([value]) for name, value in (EVENING | {"device": "fridge"}).items()}}, "fridge"),
    ],
)
def test_what_the_world_does_not_have_is_refused(truth: Truth, change: dict, named: str) -> None:
    asked = {
        "user_ids": truth.user_ids[:1],
        "item_ids": truth.item_ids[:1],
        "context": {name: np.array([value]) for name, value in EVENING.items()},
    }
    with pytest.raises(DataError, match=named):
        truth.probability(**(asked | change))

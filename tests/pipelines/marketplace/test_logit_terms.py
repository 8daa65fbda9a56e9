"""Declared shares hold, and planted crosses are pure interactions."""

from __future__ import annotations

import numpy as np
import pytest

from contracts.config.simulation import Simulation
from contracts.errors import ConfigError
from pipelines.marketplace.click_stream import Policy, show
from pipelines.marketplace.logit_terms import SHARES, centred, declared, margin
from pipelines.marketplace.marketplace import build_world
from pipelines.marketplace.truth import Truth
from pipelines.marketplace.world import Population

WORLD = Simulation(users=2_000, items=500)


@pytest.fixture(scope="module")
def world() -> tuple[Population, Policy, Truth]:
    return build_world(WORLD, 11)


def component_variances(world: tuple[Population, Policy, Truth], seed: int) -> dict[str, float]:
    population, policy, truth = world
    shown = show(np.random.default_rng(seed), population, policy, 0, 100_000, 0)
    sums: dict[str, np.ndarray] = {}
    for component, value in truth.components(truth.codes(shown.users, shown.items, shown.context, shown.position)):
        sums[component] = sums.get(component, np.zeros(100_000)) + value
    return {c: float(v.var()) for c, v in sums.items()} | {"noise": truth.noise_std**2}


def test_declared_shares_hold_on_fresh_impressions(world: tuple[Population, Policy, Truth]) -> None:
    variances = component_variances(world, seed=99)
    total = sum(variances.values())
    assert {c: v / total for c, v in variances.items()} == pytest.approx(SHARES, rel=0.08)


def test_other_shares_are_followed() -> None:
    shares = SHARES | {"fields": SHARES["fields"] - 0.1, "noise": SHARES["noise"] + 0.1}
    variances = component_variances(build_world(WORLD.model_copy(update={"shares": shares}), 11), seed=99)
    assert variances["noise"] / sum(variances.values()) == pytest.approx(shares["noise"], rel=0.05)


def test_planted_crosses_have_no_main_effect(world: tuple[Population, Policy, Truth]) -> None:
    population, _, truth = world
    crosses = [term for term in truth.terms if term.component.startswith("crosses")]
    assert [term.fields for term in crosses] == truth.planted
    assert {len(fields) for fields in truth.planted} == {2, 3}
    for term in crosses:
        for axis, field in enumerate(term.fields):
            averaged = np.tensordot(term.table, margin(population, field), axes=(axis, 0))
            np.testing.assert_allclose(averaged, 0, atol=1e-12)


def test_centring_keeps_the_interaction() -> None:
    """a_i + b_j + a_i * b_j with centred a and b keeps only the product."""
    a, b = np.array([1.0, -1.0, 0.0]), np.array([2.0, -2.0])
    table = a[:, None] + b[None, :] + np.outer(a, b)
    np.testing.assert_allclose(centred(table, [np.full(3, 1 / 3), np.full(2, 1 / 2)]), np.outer(a, b), atol=1e-12)


def test_no_shares_means_the_declared_ones() -> None:
    assert declared({}) == SHARES
    assert sum(SHARES.values()) == pytest.approx(1.0)


@pytest.mark.parametrize(
    "shares",
    [SHARES | {"luck": 0.1}, {"fields": 1.0}, SHARES | {"noise": 0.9}, SHARES | {"noise": -0.1, "fields": 0.64}],
)
def test_shares_that_do_not_add_up_are_refused(shares: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=r"simulation\.shares"):
        declared(shares)

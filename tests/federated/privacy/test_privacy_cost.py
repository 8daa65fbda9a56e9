"""The values of table 3 of the paper, to the digits printed there."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from contracts.config.federated import Federated
from federated.privacy import privacy_cost
from federated.privacy.index_policy import POLICIES

DOCUMENT = Path(__file__).parents[3] / "docs" / "concepts" / "federated.md"
TABLE = {
    "cpp2": (0.8828, 0.1172, 2.019, 2.708, 3.86e-6, 0.1172, 0.0137),
    "cpp3": (0.7812, 0.2188, 1.273, 1.946, 1.90e-11, 0.2187, 0.0479),
    "cpp4": (0.625, 0.375, 0.511, 1.099, 3.87e-21, 0.3750, 0.1406),
}


@pytest.mark.parametrize("name", TABLE)
def test_the_papers_table(name):
    policy, (p5, p6, once, ever, p7, p8, p8_two) = POLICIES[name], TABLE[name]
    assert policy.p5 == pytest.approx(p5, abs=5e-5)
    assert policy.p6 == pytest.approx(p6, abs=5e-5)
    assert privacy_cost.one_round(policy) == pytest.approx(once, abs=5e-4)
    assert privacy_cost.any_rounds(policy) == pytest.approx(ever, abs=5e-4)
    assert privacy_cost.single_holder_seen(policy, 1, 99) == pytest.approx(p7, rel=2e-3)
    assert privacy_cost.only_fakes_seen(policy, 1, 99) == pytest.approx(p8, abs=1e-4)
    assert privacy_cost.only_fakes_seen(policy, 2, 98) == pytest.approx(p8_two, abs=1e-4)


def test_the_truth_has_no_bound_and_the_whole_union_says_nothing():
    assert math.isinf(privacy_cost.one_round(POLICIES["cpp1"]))
    assert math.isinf(privacy_cost.any_rounds(POLICIES["cpp1"]))
    assert privacy_cost.any_rounds(POLICIES["cpp5"]) == 0
    assert privacy_cost.single_holder_seen(POLICIES["cpp5"], 1, 99) == 0
    assert privacy_cost.only_fakes_seen(POLICIES["cpp5"], 1, 99) == 0


def test_one_round_costs_no_more_than_all():
    for policy in POLICIES.values():
        assert privacy_cost.one_round(policy) <= privacy_cost.any_rounds(policy)


@pytest.mark.parametrize("name", ["cpp2", "cpp3", "cpp4", "cpp5"])
@pytest.mark.parametrize("below", [0.5, 0.01, 1e-6])
def test_the_fewest_clients_that_hide_a_single_holder_are_the_fewest(name, below):
    policy = POLICIES[name]
    fewest = privacy_cost.clients_that_hide(policy, below)
    assert fewest is not None
    assert privacy_cost.single_holder_seen(policy, 1, fewest - 1) < below
    assert fewest == 1 or privacy_cost.single_holder_seen(policy, 1, fewest - 2) >= below


def test_the_documentation_says_how_many_it_takes():
    fewest = {name: privacy_cost.clients_that_hide(POLICIES[name]) for name in ("cpp2", "cpp3", "cpp4")}
    seen = {clients: privacy_cost.single_holder_seen(POLICIES["cpp2"], 1, clients - 1) for clients in (20, 37, 48)}
    words = " ".join(DOCUMENT.read_text(encoding="utf-8").split())
    assert (f"under cpp2 {seen[20]:.1%} with 20 clients in the sum, {seen[37]:.2%} with {fewest['cpp2']}, "
            f"{seen[48]:.2%} with the {Federated().clients} of the default (cpp3 needs {fewest['cpp3']}, "
            f"cpp4 {fewest['cpp4']})") in words


def test_nothing_hides_whoever_names_what_it_holds_alone():
    assert privacy_cost.clients_that_hide(POLICIES["cpp1"]) is None

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm, skellam

from federated.privacy.skellam import ORDERS, epsilon, from_renyi, masses, noise_words
from federated.secure_aggregation.fixed_point import signed


@pytest.mark.parametrize("variance", [0.5, 9.0, 400.0])
def test_noise_has_mean_zero_and_its_variance(variance):
    drawn = signed(noise_words(variance, 200_000))
    assert abs(drawn.mean()) < 5 * math.sqrt(variance / len(drawn))
    assert drawn.var() == pytest.approx(variance, rel=0.03)


@pytest.mark.parametrize("variance", [0.01, 0.5, 9.0, 400.0, 1e6])
def test_masses_are_those_of_the_difference_of_two_poisson_draws(variance):
    reach = math.ceil(12 * math.sqrt(variance)) + 40
    assert masses(variance, reach) == pytest.approx(
        skellam.pmf(np.arange(reach + 1), variance / 2, variance / 2), rel=1e-9, abs=1e-25)


def test_epsilon_falls_with_noise_and_grows_with_rounds():
    costs = [epsilon(variance, 100.0, 500.0, 1, 1e-6) for variance in (1e4, 1e5, 1e6)]
    assert costs == sorted(costs, reverse=True)
    assert epsilon(1e5, 100.0, 500.0, 10, 1e-6) > costs[1]


def test_much_noise_costs_what_the_gaussian_mechanism_does():
    """RDP of a Gaussian is a D^2 / (2 mu): the terms beyond vanish with the variance."""
    variance, sensitivity, delta = 1e8, 1e4, 1e-6
    gaussian = min(a * sensitivity**2 / (2 * variance) + math.log1p(-1 / a) - math.log(delta * a) / (a - 1)
                   for a in range(2, 257))
    assert epsilon(variance, sensitivity, sensitivity, 1, delta) == pytest.approx(gaussian, rel=1e-2)
    assert np.isfinite(gaussian)


@pytest.mark.parametrize("sigma", [1.0, 2.0, 5.0, 20.0])
def test_epsilon_lies_between_the_exact_one_of_a_gaussian_and_the_older_conversion(sigma):
    """delta(eps) of one Gaussian sum is known exactly (Balle and Wang 2018): no conversion may go below it."""
    delta = 1e-5
    costs = [order / (2 * sigma**2) for order in ORDERS]
    older = min(cost + math.log(1 / delta) / (order - 1) for order, cost in zip(ORDERS, costs, strict=True))

    def exact_delta(eps):
        half = 1 / (2 * sigma)
        return norm.cdf(half - eps * sigma) - math.exp(eps) * norm.cdf(-half - eps * sigma)

    exact = brentq(lambda eps: exact_delta(eps) - delta, 1e-6, 50)
    assert exact < from_renyi(costs, delta) < 0.97 * older

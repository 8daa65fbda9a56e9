"""Distributed noise: every client adds Skellam integers to its words before masking (Agarwal et al., arXiv 2110.04995).

Skellam(mu) is the difference of two Poisson draws of mean mu / 2; it has variance mu, and sums of n clients are
Skellam(n mu), so what the server opens carries the noise of all and no client's alone. Drawn from the operating
system's randomness by inversion of the tabulated distribution.

Accounting (theorem 3.5 there; one opened sum, sensitivities in steps): for integer a > 1

    RDP(a) <= a D2^2 / (2 mu) + min(((2a - 1) D2^2 + 6 D1) / (4 mu^2), 3 D1 / (2 mu))
    epsilon(delta) = min over a of rounds * RDP(a) + ln(1 - 1 / a) - ln(delta a) / (a - 1)

(the second line: Canonne, Kamath and Steinke 2020, proposition 12; smaller than with ln(1 / delta) / (a - 1)).
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from federated.secure_aggregation.fixed_point import as_words

ORDERS = range(2, 257)
STANDARD_DEVIATIONS = 12.0  # beyond: less than 2^-64 where the variance is large


def reach(variance: float) -> int:
    """No draw is further from 0."""
    return math.ceil(STANDARD_DEVIATIONS * math.sqrt(variance)) + 40


def noise_words(variance: float, count: int) -> np.ndarray:
    """`count` words of Skellam noise of this variance."""
    thresholds, first = _table(variance)
    drawn = np.frombuffer(secrets.token_bytes(8 * count), dtype=np.uint64)
    return as_words(np.searchsorted(thresholds, drawn, side="right") + first)


@lru_cache(maxsize=4)
def _table(variance: float) -> tuple[np.ndarray, int]:
    """Upper ends of the cells of a uniform 64-bit word, and the integer of the first cell."""
    furthest = reach(variance)
    half = masses(variance, furthest)
    cumulative = np.cumsum(np.concatenate([half[:0:-1], half]))
    ends = np.minimum(cumulative[:-1] / cumulative[-1], 1 - 2.0**-53)
    return (ends * 2.0**64).astype(np.uint64), -furthest


def masses(variance: float, reach: int) -> np.ndarray:
    """float64 [reach + 1]: probabilities of 0 .. reach, exp(-v) I_k(v) of modified Bessel functions, by their ratios:
    I_(k-1) / I_k = 2 k / v + I_(k+1) / I_k, from beyond `reach` inwards, which damps what it began with."""
    ratio, ratios = 0.0, np.empty(reach)
    for k in range(2 * reach, 0, -1):
        ratio = 1.0 / (2 * k / variance + ratio)
        if k <= reach:
            ratios[k - 1] = ratio
    relative = np.exp(np.concatenate([[0.0], np.cumsum(np.log(ratios))]))
    return relative / (relative[0] + 2 * relative[1:].sum())


def epsilon(variance: float, l2: float, l1: float, rounds: int, delta: float) -> float:
    """Of `rounds` opened sums whose noise has this variance altogether; sensitivities in steps."""
    return from_renyi([rounds * cost for cost in renyi(variance, l2, l1)], delta)


def renyi(variance: float, l2: float, l1: float) -> list[float]:
    """What one opened sum costs at each of ORDERS."""

    def cost(order: int) -> float:
        exact = ((2 * order - 1) * l2**2 + 6 * l1) / (4 * variance**2)
        return order * l2**2 / (2 * variance) + min(exact, 3 * l1 / (2 * variance))

    return [cost(order) for order in ORDERS]


def sensitivities(norm: float, words: int) -> tuple[float, float]:
    """(L2, L1) of one client's `words` integers whose L2 norm is at most `norm`."""
    return norm, min(norm * math.sqrt(words), norm**2)


def from_renyi(costs: Sequence[float], delta: float) -> float:
    """Epsilon of what costs so much at each of ORDERS."""
    return max(0.0, min(
        cost + math.log1p(-1 / order) - math.log(delta * order) / (order - 1)
        for order, cost in zip(ORDERS, costs, strict=True)
    ))

"""The figures that the watch judges: with its 95% interval, its limit, and whether it speaks against the bundle."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from contracts.config.days import Watch
from models.evaluation.gauc_bootstrap import calibration_interval

Z = 1.96
NO_EVENT = 3.0  # -ln 0.05: what may be expected where nothing was seen, at most (the rule of three)


@dataclass(frozen=True)
class Figure:
    """`high` None is infinite; `limit` is the largest value allowed, `sentence` says all of it."""

    name: str
    value: float | None
    low: float
    high: float | None
    limit: float
    against: bool
    sentence: str


def error_rate(failed: np.ndarray, settings: Watch) -> Figure:
    """Wilson's interval (1927) of the share of answers that failed."""
    n, rate, limit = len(failed), float(failed.mean()), settings.max_error_rate
    middle, spread = rate + Z**2 / (2 * n), Z * math.sqrt(rate * (1 - rate) / n + Z**2 / (4 * n**2))
    low, high = max((middle - spread) / (1 + Z**2 / n), 0.0), (middle + spread) / (1 + Z**2 / n)
    said = (f"error rate: {rate:.4f} of {n} answers (95% between {low:.4f} and {high:.4f}), "
            f"at most {limit:g} is allowed")
    return Figure("error_rate", rate, low, high, limit, low > limit, said)


def p99(milliseconds: np.ndarray) -> tuple[float, float, float]:
    """(value, low, high): the interval lies between order statistics n p +- 1.96 sqrt(n p (1 - p)); high is at most the
    largest value seen."""
    ordered, n = np.sort(milliseconds), len(milliseconds)
    middle, spread = 0.99 * n, Z * math.sqrt(n * 0.99 * 0.01)
    low, high = max(math.floor(middle - spread), 1), min(math.ceil(middle + spread), n)
    return float(np.percentile(ordered, 99)), float(ordered[low - 1]), float(ordered[high - 1])


def slowness(milliseconds: np.ndarray, settings: Watch) -> Figure:
    (value, low, high), limit = p99(milliseconds), settings.max_p99_ms
    said = f"p99: {value:.2f} ms (95% between {low:.2f} and {high:.2f}), at most {limit:g} ms is allowed"
    return Figure("p99_ms", value, low, high, limit, low > limit, said)


def slowness_against(milliseconds: np.ndarray, before: np.ndarray, settings: Watch) -> Figure:
    """The ratio's interval takes each side's farther end."""
    (value, low, high), (other, other_low, other_high) = p99(milliseconds), p99(before)
    ratio, least, most, limit = value / other, low / other_high, high / other_low, settings.max_p99_ratio
    said = (f"p99 over the bundle's before: {ratio:.2f} = {value:.2f} ms / {other:.2f} ms (95% between {least:.2f} and "
            f"{most:.2f}), at most {limit:g} is allowed")
    return Figure("p99_ratio", ratio, least, most, limit, least > limit, said)


def calibration(clicked: np.ndarray, predicted: np.ndarray, users: np.ndarray, settings: Watch, seed: int) -> Figure:
    """Predicted over observed clicks, users resampled; where no click came, at least predicted / 3."""
    expected, observed, limit = float(predicted.sum()), int(clicked.sum()), 1 + settings.max_miscalibration
    value, low, high = None, expected / NO_EVENT, None
    if observed:
        found = calibration_interval(clicked.astype(np.float64), predicted, users, draws=settings.draws, seed=seed)
        value, low, high = found.value, found.low, found.high
    against = low > limit or (high is not None and high < 1 / limit)
    span = f"95% between {low:.3f} and {high:.3f}" if high is not None else f"95% above {low:.3f}"
    said = (f"predicted over observed clicks: {'infinite' if value is None else f'{value:.3f}'} = {expected:.1f} / "
            f"{observed} ({span}), {1 / limit:.3f} to {limit:.3f} is allowed")
    return Figure("predicted_over_observed", value, low, high, limit, against, said)

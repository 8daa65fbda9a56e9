"""The figures of the watch: each with its 95% interval, its limit, and whether it speaks against the bundle."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypedDict

import numpy as np

from contracts.config.days import Watch
from contracts.release.watch import WatchFigure
from models.evaluation.bootstrap import calibration_interval

Z = 1.96
NO_EVENT = 3.0  # -ln 0.05: what may be expected where nothing was seen, at most (the rule of three)


def error_rate(failed: np.ndarray, settings: Watch, failures: Mapping[str, int] | None = None) -> WatchFigure:
    """Of the calls that were taken in; `failures` says in what they failed."""
    said = ", ".join(f"{calls} {status}" for status, calls in (failures or {}).items())
    found = _share(failed, settings.max_error_rate)
    return WatchFigure(name="error_rate", **found,
                       sentence=f"error rate: {_shown(found, len(failed), 'answers')}{f': {said}' if said else ''}")


def refusal_rate(refused: np.ndarray, settings: Watch) -> WatchFigure:
    """Of all calls, those for which there was too much to do."""
    found = _share(refused, settings.max_refusal_rate)
    return WatchFigure(name="refusal_rate", **found,
                       sentence=f"refused for load: {_shown(found, len(refused), 'calls')}")


def incomplete_retrieval(incomplete: np.ndarray, settings: Watch) -> WatchFigure:
    """Of the answers, those with a channel of retrieval left out, or with popular items alone."""
    found = _share(incomplete, settings.max_incomplete_retrieval)
    return WatchFigure(name="incomplete_retrieval", **found,
                       sentence=f"retrieval without a channel: {_shown(found, len(incomplete), 'answers')}")


class _Share(TypedDict):
    value: float
    low: float
    high: float
    limit: float
    against: bool


def _share(bad: np.ndarray, limit: float) -> _Share:
    """With Wilson's interval (1927)."""
    n, rate = len(bad), float(bad.mean())
    middle, spread = rate + Z**2 / (2 * n), Z * math.sqrt(rate * (1 - rate) / n + Z**2 / (4 * n**2))
    low, high = max((middle - spread) / (1 + Z**2 / n), 0.0), (middle + spread) / (1 + Z**2 / n)
    return {"value": rate, "low": low, "high": high, "limit": limit, "against": low > limit}


def _shown(share: _Share, n: int, what: str) -> str:
    return (f"{share['value']:.4f} of {n} {what} (95% between {share['low']:.4f} and {share['high']:.4f}), "
            f"at most {share['limit']:g} is allowed")


def p99(milliseconds: np.ndarray) -> tuple[float, float, float]:
    """(value, low, high): the interval lies between order statistics n p +- 1.96 sqrt(n p (1 - p)); high is at most the
    largest value seen."""
    ordered, n = np.sort(milliseconds), len(milliseconds)
    middle, spread = 0.99 * n, Z * math.sqrt(n * 0.99 * 0.01)
    low, high = max(math.floor(middle - spread), 1), min(math.ceil(middle + spread), n)
    return float(np.percentile(ordered, 99)), float(ordered[low - 1]), float(ordered[high - 1])


def slowness(milliseconds: np.ndarray, settings: Watch) -> WatchFigure:
    """The 99th percentile of milliseconds between a request's arrival and its answer."""
    (value, low, high), limit = p99(milliseconds), settings.max_p99_ms
    return WatchFigure(
        name="p99_ms", value=value, low=low, high=high, limit=limit, against=low > limit,
        sentence=f"p99: {value:.2f} ms (95% between {low:.2f} and {high:.2f}), at most {limit:g} ms is allowed")


def slowness_against(milliseconds: np.ndarray, before: np.ndarray, settings: Watch) -> WatchFigure:
    """That over the 99th percentile of the bundle before; the ratio's interval takes each side's farther end."""
    (value, low, high), (other, other_low, other_high) = p99(milliseconds), p99(before)
    ratio, least, most, limit = value / other, low / other_high, high / other_low, settings.max_p99_ratio
    return WatchFigure(
        name="p99_ratio", value=ratio, low=least, high=most, limit=limit, against=least > limit,
        sentence=f"p99 over the bundle's before: {ratio:.2f} = {value:.2f} ms / {other:.2f} ms (95% between "
                 f"{least:.2f} and {most:.2f}), at most {limit:g} is allowed")


def calibration(
    clicked: np.ndarray, predicted: np.ndarray, users: np.ndarray, settings: Watch, seed: int
) -> WatchFigure:
    """Predicted over observed clicks, users resampled; where no click came, at least predicted / 3."""
    expected, observed, limit = float(predicted.sum()), int(clicked.sum()), 1 + settings.max_miscalibration
    value, low, high = None, expected / NO_EVENT, None
    if observed:
        interval = calibration_interval(clicked.astype(np.float64), predicted, users, draws=settings.draws, seed=seed)
        value, low, high = interval.value, interval.low, interval.high
    span = f"95% between {low:.3f} and {high:.3f}" if high is not None else f"95% above {low:.3f}"
    return WatchFigure(
        name="predicted_over_observed", value=value, low=low, high=high, limit=limit,
        against=low > limit or (high is not None and high < 1 / limit),
        sentence=f"predicted over observed clicks: {'infinite' if value is None else f'{value:.3f}'} = {expected:.1f} "
                 f"/ {observed} ({span}), {1 / limit:.3f} to {limit:.3f} is allowed")

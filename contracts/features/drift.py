"""How far the values of a column are from earlier ones, from profiles alone: of a day and the days before it, or of
what is served and what was trained on.

    PSI = sum over bins b of (p_b - q_b) ln(p_b / q_b)       p: now, q: before, pooled

(Siddiqi 2006; below 0.1 nothing, above 0.25 much.) Bins are the pooled deciles of a numeric column and the pooled most
frequent keys, with one bin for all others. Shares are smoothed by half an observation per bin, which keeps a bin that
one side lacks finite.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict

QUANTILES = 201
NUMERIC_BINS, KEY_BINS = 10, 50


class ColumnProfile(BaseModel):
    """`quantiles` of a numeric column, at equal steps from 0 to 1; or `keys`, most frequent first, and `other`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    null_rate: float
    quantiles: tuple[float, ...] = ()
    keys: dict[str, int] = {}
    other: int = 0

    @property
    def numeric(self) -> bool:
        """Whether the column is a number; one of keys without a key counts as such."""
        return not self.keys

    @property
    def values(self) -> int:
        """Keys counted, with repetitions."""
        return sum(self.keys.values()) + self.other


def psi(now: ColumnProfile, rows: int, before: Sequence[tuple[ColumnProfile, int]]) -> float:
    """`rows` and the second of each pair count the rows with a value; 0 where either side has none."""
    before = [(profile, count) for profile, count in before if count]
    seen, seen_before = rows, sum(count for _, count in before)
    if not now.quantiles:
        seen, seen_before = now.values, sum(profile.values for profile, _ in before)
    if not seen or not seen_before:
        return 0.0
    ours, theirs = _numeric(now, before) if now.quantiles else _keyed(now, [profile for profile, _ in before])
    return _between(_smoothed(ours, seen), _smoothed(theirs, seen_before))


def null_psi(now: ColumnProfile, rows: int, before: ColumnProfile, rows_before: int) -> float:
    """Of the two shares, of rows without and with a value; `rows` count both. 0 where either side has none."""
    if not rows or not rows_before:
        return 0.0
    ours, theirs = (np.array([one.null_rate, 1 - one.null_rate]) for one in (now, before))
    return _between(_smoothed(ours, rows), _smoothed(theirs, rows_before))


def field_psi(now: ColumnProfile, rows: int, before: ColumnProfile, rows_before: int) -> float:
    """Of a field's values, or of rows with a value and without, whichever is more; `rows` count both kinds."""
    return max(psi(now, rows, [(before, rows_before)]), null_psi(now, rows, before, rows_before))


def churn(now: ColumnProfile, before: Sequence[ColumnProfile]) -> float:
    """Share of this day's keys (with repetitions) that are not among the kept keys of any day before."""
    known = {key for profile in before for key in profile.keys}
    fresh = sum(count for key, count in now.keys.items() if key not in known)
    total = sum(now.keys.values())
    return fresh / total if total else 0.0


def _between(p: np.ndarray, q: np.ndarray) -> float:
    return float(np.sum((p - q) * np.log(p / q)))


def _smoothed(shares: np.ndarray, count: int) -> np.ndarray:
    return (shares * count + 0.5) / (count + 0.5 * len(shares))


def _numeric(now: ColumnProfile, before: Sequence[tuple[ColumnProfile, int]]) -> tuple[np.ndarray, np.ndarray]:
    """Shares within the pooled deciles; equal deciles make one bin."""
    values = np.concatenate([profile.quantiles for profile, _ in before])
    weight = np.concatenate([np.full(len(p.quantiles), count / len(p.quantiles)) for p, count in before])
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weight[order]) / weight.sum()
    cuts = np.arange(1, NUMERIC_BINS) / NUMERIC_BINS
    edges = np.unique(values[order][np.searchsorted(reached, cuts).clip(max=len(values) - 1)])
    bins = len(edges) + 1
    own = np.bincount(np.searchsorted(edges, now.quantiles, side="left"), minlength=bins) / len(now.quantiles)
    pooled = np.bincount(np.searchsorted(edges, values, side="left"), weights=weight, minlength=bins) / weight.sum()
    return own, pooled


def _keyed(now: ColumnProfile, before: Sequence[ColumnProfile]) -> tuple[np.ndarray, np.ndarray]:
    pooled: Counter[str] = Counter()
    for profile in before:
        pooled.update(profile.keys)
    kept = [key for key, _ in pooled.most_common(KEY_BINS)]
    total = sum(profile.values for profile in before)
    theirs = np.array([pooled[key] for key in kept], dtype=float) / max(total, 1)
    ours = np.array([now.keys.get(key, 0) for key in kept], dtype=float) / max(now.values, 1)
    return np.append(ours, 1 - ours.sum()).clip(min=0), np.append(theirs, 1 - theirs.sum()).clip(min=0)

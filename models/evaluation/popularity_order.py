"""The order of the items that a requester of whom nothing is known is shown."""

from __future__ import annotations

import numpy as np

PRIOR_IMPRESSIONS = 20.0


def popularity_order(shown: np.ndarray, clicks: np.ndarray) -> np.ndarray:
    """Impressions and clicks float64 [I] -> rows int32 [I]: by click rate, then impressions, then row.

    The rate is smoothed by the click rate of all items: (clicks + 20 overall) / (shown + 20).
    """
    overall = clicks.sum() / max(shown.sum(), 1.0)
    rate = (clicks + PRIOR_IMPRESSIONS * overall) / (shown + PRIOR_IMPRESSIONS)
    return np.lexsort((-shown, -rate)).astype(np.int32)

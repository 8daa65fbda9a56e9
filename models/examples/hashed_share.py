"""Rows dealt out by a hash of their id: the same share on any machine, in any order."""

from __future__ import annotations

import numpy as np

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: Knuth's multiplicative hash


def hashed_share(keys: np.ndarray) -> np.ndarray:
    """A number in [0, 1) of each int64 key, evenly spread."""
    return (keys.astype(np.int64).view(np.uint64) * GOLDEN >> np.uint64(11)).astype(np.float64) / 2.0**53

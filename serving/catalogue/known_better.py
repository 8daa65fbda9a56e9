"""What a bundle of later data knows better than a change of one of its own items says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from contracts.features.event_clock import SECOND
from serving.bundle.feature_store import FeatureStore
from serving.catalogue.change import Change, encoded

Known = int | np.ndarray  # microseconds since 1970, for all items or of each of the bundle's rows
NOTHING = encoded({})
ON_ITS_WAY = 600 * SECOND  # microseconds after a change of a bid in which a page may still be shown with the one before


def left_unsaid(change: Change) -> Change:
    """A description that says nothing: an item of the bundle is as the bundle has it."""
    return replace(change, value=NOTHING)


def later(
    changes: Sequence[Change], stored: FeatureStore, known: Known, lag: int = 0
) -> list[tuple[Change, int, bool]]:
    """Each change with the row of its item, -1 where the bundle lacks it, and whether it holds: of new items, and where
    it is after what the bundle knows until `known`, less `lag` microseconds in which that was still the state of
    before."""
    if not changes:
        return []
    rows = stored.rows([change.item for change in changes]).astype(np.int64)
    times = np.array([change.event_time for change in changes], dtype=np.int64)
    holds = (rows < 0) | (times + lag > (known[rows] if isinstance(known, np.ndarray) else known))
    return list(zip(changes, rows.tolist(), holds.tolist(), strict=True))

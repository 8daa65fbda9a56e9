"""How old items were when they were clicked: the time since anybody's first click on them.

An item is new when no click on it was known before the validation window: no model of the run has learned it by its id,
and only what reads its columns can find it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from contracts.artifacts import ITEM, LABEL, LABEL_TIME, TIME, Artifacts
from models.evaluation.full_ranking import Slices
from models.interactions.evaluate import by_age
from serving.bundle.feature_store import FeatureStore
from serving.replay.item_snapshot import events, window
from serving.replay.past_requests import PastRequest


def age_slices(out: Artifacts, items: FeatureStore, requests: Sequence[PastRequest]) -> Slices:
    """Of requests [R] whose item was clicked, rows of `items`."""
    first = _first_clicks(out, items)[np.array([request.clicked for request in requests], dtype=np.int64)]
    return by_age(np.array([request.time for request in requests], dtype=np.float64) - first)


def _first_clicks(out: Artifacts, items: FeatureStore) -> np.ndarray:
    """float64 [items], microseconds; infinite where no click was known before the validation window."""
    begin = window(out, "validation")[0]
    known = (ds.field(LABEL) > 0) & (ds.field(LABEL_TIME) < pa.scalar(begin))
    clicks = events(out, [ITEM, TIME, LABEL, LABEL_TIME], None, begin, known)
    rows, first = items.rows(clicks[ITEM].to_pylist()), np.full(len(items), np.inf)
    np.minimum.at(first, rows[rows >= 0], clicks[TIME].cast(pa.int64()).to_numpy()[rows >= 0])
    return first

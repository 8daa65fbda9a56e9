"""Two bundles' retrieval on one test window: which of its clicks each finds among the candidates of its own settings.

Requests are encoded by the bundle itself from the run's point-in-time features, with all that the user had clicked by
then, as callers send it in recent_items. Items are as the bundle holds them; one that it does not hold is not found.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from contracts.artifacts import ITEM, LABEL_TIME, TIME, Artifacts
from contracts.features.encoding import Encoded
from serving.bundle import parity
from serving.bundle.loaded_bundle import LoadedBundle
from serving.replay import channel_recall
from serving.replay.bundle_comparison import ORIGIN, TestWindow
from serving.replay.past_requests import KnownClicks, PastRequest
from serving.request.request_features import Requester

NEEDED = (ITEM, TIME, LABEL_TIME)


def sample(window: TestWindow, count: int, seed: int) -> np.ndarray:
    """Up to `count` clicked rows of the window, ascending; none where the log has no users, items or times."""
    if not window.has_users or not set(NEEDED) <= set(window.table.column_names):
        return np.empty(0, dtype=np.int64)
    clicked = np.flatnonzero(window.labels > 0)
    return np.sort(np.random.default_rng(seed).permutation(clicked)[:count])


def found(out: Artifacts, bundle: LoadedBundle, window: TestWindow, clicks: np.ndarray) -> np.ndarray:
    """bool [clicks]: the clicked item is among what the bundle retrieves."""
    table = window.table.take(pa.array(clicks))
    retrieve = bundle.settings.retrieve
    return channel_recall.places(bundle, _requests(out, bundle, table), retrieve) < retrieve.candidates


def _requests(out: Artifacts, bundle: LoadedBundle, table: pa.Table) -> Sequence[PastRequest]:
    inputs = parity.encode(table, bundle.encoder, ORIGIN).request
    history = KnownClicks(out, bundle.items, table, publish_every=0, beside=bundle.told)
    rows, times = bundle.items.rows(table[ITEM].to_pylist()), table[TIME].cast(pa.int64()).to_pylist()
    return [
        PastRequest(Requester(True, Encoded(inputs.ids[n : n + 1], inputs.dense[n : n + 1]), *history.recent(n)),
                    int(rows[n]), False, times[n])
        for n in range(table.num_rows)
    ]

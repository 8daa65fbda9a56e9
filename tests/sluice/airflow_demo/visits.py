"""Visits of simulated users, answered by what the truth says of the items."""

from __future__ import annotations

import numpy as np

from contracts.config.stages import Serve
from serving.proto import sluice_pb2 as pb
from serving.server.translation import to_query
from sluice.airflow_demo.visitors import SHOWN_ITEMS, Visitors


def visit(users: Visitors, truth, best: bool, version: str = "market-1") -> tuple[pb.RankRequest, list[str]]:
    """One visit, answered with the items of most, or least, worth to the user by the truth: (request, items shown)."""
    request = users.request()
    order = np.argsort(truth.slate(request.user_id, to_query(request, Serve()).context))
    chosen = order[::-1][:SHOWN_ITEMS] if best else order[:SHOWN_ITEMS]
    items = [truth.values["item"][code] for code in chosen]
    users.answered(request, pb.RankResponse(items=[pb.RankedItem(item_id=item) for item in items],
                                            bundle_version=version))
    return request, items

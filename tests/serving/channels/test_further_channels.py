from __future__ import annotations

import numpy as np

from contracts.config.stages import Retrieve
from serving.bundle.channel import CountChannel
from serving.bundle.loaded_bundle import LoadedBundle
from serving.channels.further_channels import FurtherChannels
from serving.channels.open_items import OpenItems
from serving.request.deadline import Deadline
from serving.request.query import RankQuery
from serving.request.request_features import RequestFeatures
from serving.request.stage_clock import StageClock


def test_one_that_has_no_quota_brings_nothing_and_another_what_is_open(loaded: LoadedBundle) -> None:
    """What earlier channels brought does not come again, and does not use up the quota."""
    counts = np.zeros(len(loaded.items), np.float32)
    counts[[40, 7, 3, 9]] = 4, 3, 2, 1
    names = ("recent_popularity", "sasrec")
    channels = [CountChannel(name=name, counts=counts) for name in names]
    settings = Retrieve.model_validate({"channels": {"recent_popularity": {"quota": 2}, "sasrec": {"quota": 0}}})
    clock = StageClock(names)
    further = FurtherChannels(channels, settings, clock, Deadline(None))
    requester = RequestFeatures(loaded).requester(RankQuery("u04", 5, recent_items=()))
    with OpenItems([], len(loaded.items), None, seen=np.array([40])) as items:
        found = further.take(items, requester, 1, None, by_value=False)
    assert {name: rows.tolist() for name, rows in found.items()} == {"recent_popularity": [7, 3]}
    assert further.dropped == []
    assert 0 < clock.estimate("recent_popularity") <= further.seconds

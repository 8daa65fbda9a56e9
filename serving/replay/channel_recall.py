"""How many of past clicks each channel of retrieval finds, alone and mixed, and the quotas by which they find most.

Requests are as the server would have seen them (serving/replay/past_requests.py), retrieval is the server's own code,
and value plays no part. A click is found when its item is among the `candidates` that retrieval returns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch

from contracts.config.stages import Retrieve
from models.inference.tower_vectors import UserTower
from models.retrieval import quotas
from serving.bundle.loaded_bundle import LoadedBundle
from serving.replay.past_requests import PastRequest
from serving.replay.retrieved_candidates import ANYBODY
from serving.stages.retrieval import RetrievalStage

OWN = ("two_tower", "item_to_item", "popularity")
Ranks = dict[str, np.ndarray]


def ranks(bundle: LoadedBundle, requests: Sequence[PastRequest]) -> Ranks:
    """Channel -> [R]: the clicked item's place from 0 in the channel's own list, `candidates` where it is not in it."""
    retrieve = bundle.settings.retrieve
    alone = {name: _alone(retrieve, name) for name in (*OWN, *retrieve.channels)}
    return {name: places(bundle, requests, settings) for name, settings in alone.items()}


def _alone(retrieve: Retrieve, only: str) -> Retrieve:
    return with_quotas(retrieve, {
        name: retrieve.candidates if name == only else 0 for name in (*OWN, *retrieve.channels)})


def with_quotas(retrieve: Retrieve, chosen: Mapping[str, int]) -> Retrieve:
    """With these, be they open or not."""
    channels = {name: channel.model_copy(update={"quota": chosen[name]}) for name, channel in retrieve.channels.items()}
    return retrieve.model_copy(update={"channels": channels, **{name: chosen[name] for name in OWN if name in chosen}})


@torch.inference_mode()
def places(bundle: LoadedBundle, requests: Sequence[PastRequest], settings: Retrieve) -> np.ndarray:
    """As `ranks`, in the list that retrieval returns with these settings."""
    stage = RetrievalStage(replace(bundle, settings=bundle.settings.model_copy(update={"retrieve": settings})))
    tower, found = UserTower(bundle.towers), np.full(len(requests), settings.candidates)
    for number, request in enumerate(requests):
        rows = stage.run(ANYBODY, request.requester, tower(request.requester.inputs), by_value=False).candidates.rows
        at = np.flatnonzero(rows == request.clicked)
        found[number] = at[0] if len(at) else settings.candidates
    return found


def choose(found: Ranks, retrieve: Retrieve, candidates: int) -> dict[str, int]:
    """Quotas that add up to `candidates`, those of `open_quotas` and popularity's chosen."""
    fixed = {name: channel.quota for name, channel in retrieve.channels.items() if channel.quota is not None}
    return quotas.choose(found, candidates, fixed)

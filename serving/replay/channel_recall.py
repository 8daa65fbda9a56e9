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
from serving.bundle.loaded_bundle import LoadedBundle
from serving.replay.past_requests import PastRequest
from serving.replay.retrieved_candidates import ANYBODY
from serving.stages.retrieval import RetrievalStage

STEPS = 20  # quotas are multiples of candidates / STEPS
OWN = ("two_tower", "item_to_item", "popularity")
Ranks = dict[str, np.ndarray]


def ranks(bundle: LoadedBundle, requests: Sequence[PastRequest]) -> Ranks:
    """Channel -> [R]: the clicked item's place from 0 in the channel's own list, `candidates` where it is not in it."""
    return {name: places(bundle, requests, settings) for name, settings in each_alone(bundle.settings.retrieve).items()}


def each_alone(retrieve: Retrieve) -> dict[str, Retrieve]:
    """Channel -> all candidates its own."""
    names = (*OWN, *retrieve.channels)
    return {only: with_quotas(retrieve, {name: retrieve.candidates * (name == only) for name in names})
            for only in names}


def with_quotas(retrieve: Retrieve, quotas: Mapping[str, int]) -> Retrieve:
    """With these, be they open or not."""
    channels = {name: channel.model_copy(update={"quota": quotas[name]}) for name, channel in retrieve.channels.items()}
    return retrieve.model_copy(update={"channels": channels, **{name: quotas[name] for name in OWN if name in quotas}})


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


def choose(found: Ranks, retrieve: Retrieve, candidates: int, worth: np.ndarray | None = None) -> dict[str, int]:
    """Quotas that add up to `candidates`, those of `open_quotas` and popularity's chosen.

    From an even share, and from all for each single channel, candidates pass from one channel to another, any number of
    steps at once, as long as more clicks are found; the best end wins, so that no channel alone finds more. `worth`
    [R]: what is found counts so much, 1 where none is given.
    """
    worth = np.ones(len(next(iter(found.values())))) if worth is None else worth
    fixed = {name: min(channel.quota, candidates) for name, channel in retrieve.channels.items()
             if channel.quota is not None}
    free, room = [name for name in found if name not in fixed], max(candidates - sum(fixed.values()), 0)
    share, rest = divmod(room, len(free))
    even = {name: share + (number < rest) for number, name in enumerate(free)}
    starts = [even, *({name: room * (name == only) for name in free} for only in free)]
    ends = [_improved(fixed | start, free, found, worth, max(candidates // STEPS, 1)) for start in starts]
    return max(ends, key=lambda end: _found(end, found, worth))


def _found(quotas: dict[str, int], found: Ranks, worth: np.ndarray) -> float:
    return float(worth @ np.any([found[name] < quota for name, quota in quotas.items()], axis=0))


def _improved(
    quotas: dict[str, int], free: Sequence[str], found: Ranks, worth: np.ndarray, step: int
) -> dict[str, int]:
    while True:
        moved = [quotas | {giver: quotas[giver] - more, taker: quotas[taker] + more}
                 for giver in free for taker in free if giver != taker
                 for more in range(min(step, quotas[giver]), quotas[giver] + 1, step) if more]
        best = max(moved, key=lambda one: _found(one, found, worth), default=quotas)
        if _found(best, found, worth) <= _found(quotas, found, worth):
            return quotas
        quotas = best

"""What the ranker would show of everything that retrieval can bring, and where each channel has it.

Quotas are chosen by it where bids count: a click is as good as another to `channel_recall.ranks`, whatever it pays, and
few of what earned most were shown often enough to be clicked. For each past request the ranker orders what any channel
brings with all places its own, by what it earns and by its chance, as requests may ask for either; what the first
`slots` of each order are worth adds up to a half over all requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch

from models.inference.tower_vectors import UserTower
from serving.bundle.loaded_bundle import LoadedBundle
from serving.replay.channel_recall import Ranks, each_alone
from serving.replay.past_requests import PastRequest
from serving.replay.retrieved_candidates import ANYBODY
from serving.request.candidates import Candidates
from serving.request.deadline import Deadline
from serving.request.request_features import RequestFeatures
from serving.stages.auction import expected_revenue
from serving.stages.rank import NAME, RankStage
from serving.stages.retrieval import RetrievalStage


class ShownItems(NamedTuple):
    """N of all requests: `places` as of `channel_recall.ranks`, `worth` [N] adds up to 1."""

    places: Ranks
    worth: np.ndarray


def shown_items(bundle: LoadedBundle, requests: Sequence[PastRequest], slots: int) -> ShownItems:
    """Of a bundle with bids."""
    orders = [_in_order(bundle, requests, slots, by_value) for by_value in (True, False)]
    places = {name: np.concatenate([order.places[name] for order in orders]) for name in orders[0].places}
    return ShownItems(places, np.concatenate([order.worth / max(order.worth.sum(), 1e-9) / 2 for order in orders]))


@torch.inference_mode()
def _in_order(bundle: LoadedBundle, requests: Sequence[PastRequest], slots: int, by_value: bool) -> ShownItems:
    """`worth` as it is."""
    stages = {name: RetrievalStage(replace(bundle, settings=bundle.settings.model_copy(update={"retrieve": alone})))
              for name, alone in each_alone(bundle.settings.retrieve).items()}
    rank, tower = RankStage(bundle, RequestFeatures(bundle)), UserTower(bundle.towers)
    missing = bundle.settings.retrieve.candidates
    place = np.full(len(bundle.items), missing)
    found: dict[str, list[np.ndarray]] = {name: [] for name in stages}
    worth = []
    for request in requests:
        vector = tower(request.requester.inputs)
        lists = {name: stage.run(ANYBODY, request.requester, vector, by_value).candidates.rows
                 for name, stage in stages.items()}
        brought = np.unique(np.concatenate(list(lists.values())))
        pool = Candidates(brought, np.zeros(len(brought), dtype=np.int8))
        shown = rank.run(pool, request.requester, by_value, slots, Deadline(None)).candidates.first(slots)
        chances = shown.scores[NAME]
        worth.append(expected_revenue(shown.bids_of(np.asarray(bundle.bids)), chances) if by_value else chances)
        for name, rows in lists.items():
            place[rows] = np.arange(len(rows))
            found[name].append(place[shown.rows])
            place[rows] = missing
    return ShownItems({name: np.concatenate(parts) for name, parts in found.items()}, np.concatenate(worth))

"""How much of the exact answer the index finds, for the vectors of real users."""

from __future__ import annotations

import numpy as np
import torch

from contracts.features.encoding import Encoder
from contracts.summaries.bundle import IndexRecall
from models.examples.batches import FeatureBlock
from models.networks.two_tower import TwoTower
from serving.bundle.bundle_settings import BundleSettings
from serving.bundle.feature_store import FeatureStore
from serving.bundle.item_index import ItemIndex, recall, with_bid_weight

QUERIES = 200


def user_vectors(users: FeatureStore, encoder: Encoder, towers: TwoTower, limit: int) -> np.ndarray:
    """[<= limit, d]: users evenly spaced over the table, in a context of which nothing is known."""
    count = min(limit, len(users))
    rows = np.linspace(0, len(users) - 1, count).astype(np.int64) if count else np.array([-1])
    context = encoder.encode({}, "context")
    ids = np.concatenate([users.ids[rows], context.ids.repeat(len(rows), axis=0)], axis=1)
    dense = np.concatenate([users.dense[rows], context.dense.repeat(len(rows), axis=0)], axis=1)
    with torch.inference_mode():
        return towers.user_vector(FeatureBlock(torch.from_numpy(ids), torch.from_numpy(dense))).numpy()


def index_recall(
    index: ItemIndex, users: FeatureStore, encoder: Encoder, towers: TwoTower, settings: BundleSettings,
) -> IndexRecall:
    """Recall of what the two-tower channel asks for, mean and worst over up to 200 users."""
    queries = user_vectors(users, encoder, towers, QUERIES)
    if encoder.spec.has_bid:
        queries = with_bid_weight(queries, width=index.vectors.shape[1])
    return recall(index, queries, settings.retrieve.two_tower or settings.retrieve.candidates)

"""What a bundle computes once for every item: the item tower's vector, and the item parts of two first layers, FSCD's
and the ranker's."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from contracts.errors import DataError
from contracts.features.encoding import Encoded
from models.examples.batches import FeatureBlock
from models.inference import item_part as ranker_items
from models.inference import split_ranker
from models.networks.two_tower import TwoTower
from models.preranking.fscd_scorer import FscdSplit
from serving.bundle.feature_store import FeatureStore

CHUNK_ROWS = 65_536


def item_vectors(towers: TwoTower, items: FeatureStore) -> np.ndarray:
    """float32 [I, d]. Raises DataError for an empty table."""
    parts = []
    with torch.inference_mode():
        for start in range(0, len(items), CHUNK_ROWS):
            rows = slice(start, min(start + CHUNK_ROWS, len(items)))
            ids, dense = np.array(items.ids[rows]), np.array(items.dense[rows])
            block = FeatureBlock(torch.from_numpy(ids), torch.from_numpy(dense))
            parts.append(towers.item_vector(block).numpy())
    if not parts:
        raise DataError("the online item table is empty; run `sluice features` again")
    return np.concatenate(parts)


def item_part(split: FscdSplit, items: FeatureStore) -> np.ndarray:
    """float32 [I, H]: what the first layer of the network adds up from the item's kept fields, and its bias."""
    ids, dense = np.array(items.ids[:-1]), np.array(items.dense[:-1])
    return split.item_table(torch.from_numpy(ids), torch.from_numpy(dense)).numpy()


def rank_part(ranker: nn.Module, items: FeatureStore, megabytes: int) -> np.ndarray | None:
    """float32 [I + 1, H], the unknown item last; None where it would be larger, or the ranker reads none."""
    if isinstance(split_ranker.of(ranker), split_ranker.PlainRanker):
        return None
    one = ranker_items.table(ranker, Encoded(np.array(items.ids[-1:]), np.array(items.dense[-1:])))
    if one is None or one.nbytes * (len(items) + 1) > megabytes * 2**20:
        return None
    return ranker_items.table(ranker, Encoded(np.asarray(items.ids), np.asarray(items.dense)))

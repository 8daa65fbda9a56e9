"""What a bundle computes once for every item: the item tower's vector, and the item part of FSCD's first layer."""

from __future__ import annotations

import numpy as np
import torch

from contracts.errors import DataError
from models.examples.batches import FeatureBlock
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

"""The recall of an index built anew of the items as they are now, beside which a changed one's is to be seen."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import torch

from benchmarks.serving.funnel import USERS, VALUES
from models.inference.tower_vectors import UserTower
from serving.bundle import item_index
from serving.bundle.item_index import with_bid_weight
from serving.bundle.loaded_bundle import LoadedBundle
from serving.catalogue.catalogue import Catalogue
from serving.request.query import RankQuery
from serving.request.request_features import RequestFeatures

QUERIES, RECALL_AT = 64, 100


def fresh_build_recall(bundle: Path, fresh: Path) -> float:
    """Mean recall at RECALL_AT against exact search, of the users of the synthetic world."""
    loaded = LoadedBundle.load(bundle, check_parity=False)
    with closing(Catalogue(loaded, bundle, fresh)) as catalogue:
        index = catalogue.fresh.index
        vectors = index.vectors[index.snapshot.shown.rows()]
        built = item_index.build(vectors, loaded.settings.retrieve)
        return item_index.recall(built, queries(loaded, vectors.shape[1]), RECALL_AT).mean


def queries(bundle: LoadedBundle, width: int) -> np.ndarray:
    """float32 [QUERIES, width], as an auction asks."""
    features, tower = RequestFeatures(bundle), UserTower(bundle.towers)
    asked = [RankQuery(f"u{number % USERS}", 10, {"context0": f"v{number % VALUES}"}) for number in range(QUERIES)]
    with torch.inference_mode():
        vectors = np.stack([tower(features.requester(query).inputs) for query in asked])
    return with_bid_weight(vectors, 1.0, width)

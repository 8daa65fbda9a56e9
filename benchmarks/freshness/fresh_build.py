"""The recall of changed items' index beside that of one built anew of the same items, by the same queries.

Which cells an index has hangs on what it was trained with: two builds of the same million items differ by 3% and more
in recall. So the mean of BUILDS stands for what is built anew, each of the items in an order of its own.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from benchmarks.serving.funnel import USERS, VALUES
from models.inference.tower_vectors import UserTower
from serving.bundle import item_index
from serving.bundle.item_index import with_bid_weight
from serving.bundle.loaded_bundle import LoadedBundle
from serving.catalogue.change_store import ChangeStore
from serving.catalogue.fresh_bundle import FreshBundle
from serving.request.query import RankQuery
from serving.request.request_features import RequestFeatures

QUERIES, RECALL_AT = 64, 100
LOOKS, AT_ONCE, BUILDS = 3, 1000, 3


class RecallBeside(NamedTuple):
    """Mean recall at RECALL_AT against exact search, after so many changes; `anew` of each build."""

    changes: int
    changed: float
    anew: tuple[float, ...]

    @property
    def ratio(self) -> float:
        return self.changed / float(np.mean(self.anew))


def recalls_beside(bundle: Path, fresh: Path) -> list[RecallBeside]:
    """After each of LOOKS equal parts of what is stored in `fresh`, in the order in which it was stored; shown as
    a worker does."""
    loaded, found = LoadedBundle.load(bundle, check_parity=False), list[RecallBeside]()
    with closing(ChangeStore(fresh)) as store:
        stored = [change for _, change in store.after(0, store.last())]
        shown = FreshBundle(loaded, bundle, store.numbers_of)
        for part in np.array_split(np.arange(len(stored)), LOOKS):
            for begin in range(0, len(part), AT_ONCE):
                shown.apply([stored[place] for place in part[begin : begin + AT_ONCE]])
            found.append(_beside(shown, loaded, int(part[-1]) + 1))
    return found


def _beside(shown: FreshBundle, loaded: LoadedBundle, changes: int) -> RecallBeside:
    index = shown.index
    vectors = index.vectors[index.shown.rows()]
    asked = queries(loaded, vectors.shape[1])
    changed = float(np.mean([index.recall(query, RECALL_AT) for query in asked]))
    anew = [_built_anew(loaded, vectors, asked, seed) for seed in range(BUILDS)]
    return RecallBeside(changes, changed, tuple(anew))


def _built_anew(loaded: LoadedBundle, vectors: np.ndarray, asked: np.ndarray, seed: int) -> float:
    drawn = np.random.default_rng(seed).permutation(vectors)
    return item_index.recall(item_index.build(drawn, loaded.settings.retrieve), asked, RECALL_AT).mean


def queries(bundle: LoadedBundle, width: int) -> np.ndarray:
    """float32 [QUERIES, width], as an auction asks."""
    features, tower = RequestFeatures(bundle), UserTower(bundle.towers)
    asked = [RankQuery(f"u{number % USERS}", 10, {"context0": f"v{number % VALUES}"}) for number in range(QUERIES)]
    with torch.inference_mode():
        vectors = np.stack([tower(features.requester(query).inputs) for query in asked])
    return with_bid_weight(vectors, 1.0, width)

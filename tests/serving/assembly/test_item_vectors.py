"""Vectors and parts computed in one go equal those of each item alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from contracts.errors import DataError
from contracts.features.vocabulary import Vocabulary
from models.examples.batches import FeatureBlock
from models.preranking.fscd import Fscd
from models.preranking.fscd_scorer import FscdSplit
from serving.assembly.item_vectors import item_part, item_vectors, rank_part
from serving.bundle.feature_store import FeatureStore
from serving.bundle.loaded_bundle import LoadedBundle


def test_item_vectors_are_the_towers(loaded: LoadedBundle) -> None:
    ids, dense = loaded.items.ids[:-1].copy(), loaded.items.dense[:-1].copy()
    with torch.inference_mode():
        expected = loaded.towers.item_vector(FeatureBlock(torch.from_numpy(ids), torch.from_numpy(dense))).numpy()
    np.testing.assert_allclose(loaded.item_vectors, expected, atol=1e-6)


def test_the_item_part_is_the_networks_for_each_item(loaded: LoadedBundle) -> None:
    settings = loaded.settings.prerank
    network = Fscd(loaded.spec, settings.embedding_dim, settings.hidden).eval().requires_grad_(False)
    split = FscdSplit(network, network.fields)
    table = item_part(split, loaded.items)
    assert len(table) == len(loaded.items)
    for row in (0, 7, len(loaded.items) - 1):
        one = FeatureBlock(torch.from_numpy(loaded.items.ids[row : row + 1].copy()),
                           torch.from_numpy(loaded.items.dense[row : row + 1].copy()))
        np.testing.assert_allclose(table[row], split.item_part(one)[0].numpy(), atol=1e-6)


def test_a_table_without_items_is_refused(loaded: LoadedBundle) -> None:
    nothing = FeatureStore(Vocabulary.of([], "string"), loaded.items.ids[-1:], loaded.items.dense[-1:])
    with pytest.raises(DataError, match="empty"):
        item_vectors(loaded.towers, nothing)


def test_the_rankers_part_is_kept_up_to_a_size(loaded: LoadedBundle) -> None:
    assert rank_part(loaded.ranker, loaded.items, 0) is None
    table = rank_part(loaded.ranker, loaded.items, 64)
    assert table is not None
    assert loaded.rank_table is not None
    assert len(table) == len(loaded.items) + 1
    np.testing.assert_allclose(table, loaded.rank_table.rows, atol=1e-6)

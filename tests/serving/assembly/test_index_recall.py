"""Recall is asked with the vectors of the table's own users."""

from __future__ import annotations

import numpy as np
import torch

from contracts.config.stages import Retrieve
from contracts.features.vocabulary import Vocabulary
from models.examples.batches import FeatureBlock
from serving.assembly.index_recall import index_recall, user_vectors
from serving.bundle import item_index
from serving.bundle.feature_store import FeatureStore
from serving.bundle.loaded_bundle import LoadedBundle


def test_vectors_are_the_towers(loaded: LoadedBundle) -> None:
    context = loaded.encoder.encode({}, "context")
    found = user_vectors(loaded.users, loaded.encoder, loaded.towers, 1000)
    assert len(found) == len(loaded.users)
    for row in (0, 17, 59):
        ids = torch.from_numpy(np.concatenate([loaded.users.ids[[row]], context.ids], axis=1))
        dense = torch.from_numpy(np.concatenate([loaded.users.dense[[row]], context.dense], axis=1))
        with torch.inference_mode():
            expected = loaded.towers.user_vector(FeatureBlock(ids, dense))[0].numpy()
        np.testing.assert_allclose(found[row], expected, atol=1e-6)


def test_sample_is_spread_over_the_table(loaded: LoadedBundle) -> None:
    everyone = user_vectors(loaded.users, loaded.encoder, loaded.towers, 1000)
    two = user_vectors(loaded.users, loaded.encoder, loaded.towers, 2)
    np.testing.assert_allclose(two, everyone[[0, -1]], atol=1e-6)


def test_a_log_without_users_asks_as_the_unknown_user(loaded: LoadedBundle) -> None:
    nobody = FeatureStore(Vocabulary.of([], "string"), loaded.users.ids[-1:], loaded.users.dense[-1:])
    assert user_vectors(nobody, loaded.encoder, loaded.towers, 5).shape == (1, loaded.settings.train.tower_dim)


def test_an_index_of_other_vectors_is_found_out(loaded: LoadedBundle) -> None:
    """The check fires: the index holds the negated vectors, so it finds the worst items."""
    wrong = item_index.build(-loaded.index.vectors, Retrieve())
    mixed = item_index.ItemIndex(wrong.faiss_index, loaded.index.vectors, 20_000)
    found = index_recall(mixed, loaded.users, loaded.encoder, loaded.towers, loaded.settings)
    assert found.mean < 0.5
    assert (found.k, found.queries) == (20, 60)

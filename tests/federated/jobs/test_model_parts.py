"""The parts of a bundle, of a model and histograms that are known."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from contracts.bundle.bundle import load_array, load_weights
from contracts.errors import DataError
from contracts.features import vocabulary
from contracts.features.feature_spec import FIRST_ID, FeatureSpec
from federated.clients.networks import FederatedNetworks
from federated.clients.prepare import federated_spec
from federated.jobs import model_parts
from federated.rounds.score_histograms import BINS, Histograms
from tests.federated import small_world

ITEM_IDS = small_world.ITEMS + FIRST_ID


def histograms():
    """A click rate that grows with the logit; item id i was shown i times and clicked on i // 2 of them."""
    rows = np.full((2, BINS), 20)
    clicks = np.tile(np.arange(BINS) * 20 // BINS, (2, 1))
    return Histograms(rows, clicks, np.arange(ITEM_IDS), np.arange(ITEM_IDS) // 2)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder, config = tmp_path_factory.mktemp("parts"), small_world.config()
    spec = federated_spec(config, small_world.spec())
    torch.manual_seed(5)
    networks = FederatedNetworks(spec, config)
    source = small_world.write(folder / "out")
    return config, spec, networks, model_parts.write(config, source, spec, networks, histograms(), folder / "parts")


def test_popularity_is_what_the_clients_counted_and_not_what_the_log_did(made):
    _, _, _, parts = made
    items = pq.read_table(parts.online_items).to_pydict()
    expected = [number + FIRST_ID for number in range(small_world.ITEMS)]
    assert items["_shown"] == expected
    assert items["_clicks"] == [shown // 2 for shown in expected]


def test_the_users_vocabulary_stays_behind(made):
    _, spec, _, parts = made
    assert sorted(vocabulary.read_all(parts.encoding)) == ["city", "genre", "item"]
    assert FeatureSpec.read(parts.encoding) == spec


def test_parity_rows_are_public_items_and_values_of_vocabularies_scored_by_the_ranker(made):
    config, _, _, parts = made
    rows = pq.read_table(parts.parity).to_pydict()
    assert len(rows["_row"]) == config.serve.parity_rows
    assert set(rows["item"]) <= {small_world.key("item", number) for number in range(small_world.ITEMS)}
    assert all(len(history) == small_world.HISTORY for history in rows["history"])
    logits = load_array(parts.model(config.federated.model) / "test_logits.npy")
    assert len(logits) == config.serve.parity_rows
    assert np.isfinite(logits).all()
    assert np.unique(logits).size > len(logits) / 2


def test_every_network_is_written_with_the_weights_that_it_has(made):
    config, _, networks, parts = made
    written = load_weights(parts.model(config.federated.model) / "weights.safetensors")
    for name, value in networks.ranker.state_dict().items():
        assert (written[name] == value.numpy()).all()


def test_calibration_needs_rows_to_learn_from(made, tmp_path):
    config, spec, networks, _ = made
    nothing = np.zeros((2, BINS), dtype=np.int64)
    empty = Histograms(nothing, nothing, np.zeros(ITEM_IDS), np.zeros(ITEM_IDS))
    with pytest.raises(DataError, match="widen the validation window"):
        model_parts.write(config, small_world.write(tmp_path / "out"), spec, networks, empty, tmp_path / "parts")

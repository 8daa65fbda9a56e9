from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from contracts.errors import ConfigError
from contracts.features.feature_spec import FIRST_ID, PADDING, FeatureField
from federated.clients.networks import FederatedNetworks
from federated.clients.prepare import SamplesByUser, federated_spec
from federated.clients.row_space import RowSpace, require_federable
from models.examples.batches import ExampleSet
from models.layers.embedding import item_slot
from tests.federated import small_world


@pytest.fixture
def world(tmp_path):
    config, out = small_world.config(), small_world.write(tmp_path)
    spec = federated_spec(config, small_world.spec())
    samples = SamplesByUser(ExampleSet(out.examples("train"), spec))
    return config, RowSpace(spec, 10), [samples.of(user) for user in samples.users]


def test_private_tables_are_the_large_ones_without_their_unknown(world):
    _, space, _ = world
    assert space.private_tables == ["item", "city"]
    assert [stop - start for start, stop in space.private_ranges()] == [small_world.ITEMS, small_world.CITIES]


def test_a_place_is_the_row_that_the_network_reads(world):
    config, space, clients = world
    networks = FederatedNetworks(space.spec, config)
    embedding: Any = networks.ranker.embedding
    batch = clients[0]
    request, candidate = embedding.request.rows(batch.request.ids), embedding.candidate.rows(batch.candidate.ids)
    read = np.unique(torch.cat([request.flatten(), candidate.flatten()]).numpy())
    places = np.unique(space.places(batch))
    assert (places[places >= 0] + 1 == read[read > 0]).all()


def test_a_submodel_of_all_held_rows_computes_what_the_model_does(world):
    config, space, clients = world
    networks, batch = FederatedNetworks(space.spec, config).eval(), clients[3]
    rows, dense = networks.read()
    private = np.concatenate([np.arange(*span) for span in space.private_ranges()])
    used = np.unique(space.places(batch))
    places = np.union1d(np.setdiff1d(np.arange(space.size), private), used[used >= 0])
    kept = space.kept_ids(places)
    small = FederatedNetworks(space.submodel_spec(kept), config).eval()
    small.write(rows[places], dense)
    moved = space.narrowed(batch, kept)
    with torch.inference_mode():
        for name, tolerance in (("ranker", 1e-6), ("towers", 1e-5)):
            there, whole = getattr(small, name), getattr(networks, name)
            logits = whole(batch.request, batch.candidate)
            assert torch.allclose(there(moved.request, moved.candidate), logits, atol=tolerance)


def test_lost_history_becomes_padding_and_a_lost_target_takes_its_sample(world):
    _, space, clients = world
    batch = clients[0]
    slot = item_slot(space.spec)
    assert slot is not None
    items = batch.candidate.ids[:, slot.start].numpy()
    kept_items = np.unique(items)[::2]
    kept = {"item": kept_items, "city": np.array([], dtype=np.int64)}
    moved = space.narrowed(batch, kept)
    here = np.isin(items, kept_items)
    assert len(moved.label) == here.sum() < len(items)
    slot = next(slot for slot in space.spec.block_ids("request") if slot.name == "history")
    before = batch.request.ids[:, slot.start : slot.start + slot.width].numpy()[here]
    after = moved.request.ids[:, slot.start : slot.start + slot.width].numpy()
    assert ((after == PADDING) == ~np.isin(before, kept_items)).all()
    assert (kept_items[after[after > 0] - FIRST_ID] == before[after > 0]).all()


def test_the_dense_part_and_the_rows_come_back_as_they_were_written(world):
    config, space, _ = world
    networks = FederatedNetworks(space.spec, config)
    rows, dense = networks.read()
    networks.write(rows * 2, dense * 3)
    again = networks.read()
    assert (again[0] == rows * 2).all()
    assert (again[1] == dense * 3).all()


def test_central_counters_are_refused():
    rate = FeatureField(name="item_rate", kind="counter", side="item", edges={3: (0.1, 0.2)})
    spec = small_world.spec()
    with pytest.raises(ConfigError, match="item_rate"):
        require_federable(spec.model_copy(update={"fields": (*spec.fields, rate)}))


@pytest.mark.parametrize("name", ["din", "dnn", "dcn_v2"])
def test_any_model_with_a_row_per_id_goes(world, name):
    _, space, clients = world
    networks = FederatedNetworks(space.spec, small_world.config(model=name))
    assert networks.read()[0].shape == (space.size, networks.width)
    total, _ = networks.loss(clients[0])
    total.backward()
    assert all(table.grad is not None for table in networks.tables())

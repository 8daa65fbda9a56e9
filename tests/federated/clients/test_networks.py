"""Every registered model that learns is one row an id, and a row reaches exactly the samples that use it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from contracts.errors import ConfigError
from federated.clients.networks import FederatedNetworks
from federated.clients.prepare import SamplesByUser, federated_spec
from federated.clients.row_space import RowSpace
from models.examples.batches import ExampleSet
from models.networks import registry
from tests.federated import small_world

LEARNING = [name for name in registry.names() if name != "popularity"]


def world(tmp_path, model, **changes):
    config, out = small_world.config(model=model, **changes), small_world.write(tmp_path)
    spec = federated_spec(config, small_world.spec())
    samples = SamplesByUser(ExampleSet(out.examples("train"), spec))
    torch.manual_seed(3)
    return config, RowSpace(spec, 10), samples.of(samples.users[0]), FederatedNetworks(spec, config)


@pytest.mark.parametrize("model", LEARNING)
def test_a_row_reaches_the_samples_that_use_it_and_no_other(tmp_path, model):
    _, space, batch, networks = world(tmp_path, model)
    networks.eval()
    rows, dense = networks.read()
    generator = np.random.default_rng(1)
    rows, dense = rows + generator.normal(0, 0.3, rows.shape), dense + generator.normal(0, 0.3, dense.shape)
    networks.write(rows, dense)
    with torch.no_grad():
        before = networks.ranker(batch.request, batch.candidate)
        places = space.places(batch)
        for place in generator.choice(np.unique(places[places >= 0]), 8, replace=False):
            moved = rows.copy()
            moved[place] += 1.0
            networks.write(moved, dense)
            changed = (networks.ranker(batch.request, batch.candidate) - before).abs().numpy() > 1e-6
            uses = (places == place).any(axis=1)
            assert not changed[~uses].any()
            assert changed[uses].any()


@pytest.mark.parametrize("model", LEARNING)
def test_what_is_written_is_read(tmp_path, model):
    _, _, _, networks = world(tmp_path, model)
    generator = np.random.default_rng(2)
    rows, dense = networks.read()
    networks.write(generator.normal(size=rows.shape).astype(np.float32), generator.normal(size=dense.shape))
    once = networks.read()
    networks.write(*once)
    assert (networks.read()[0] == once[0]).all()
    assert (networks.read()[1] == once[1]).all()
    assert np.abs(once[0]).max() > 0.5


def test_a_model_that_learns_nothing_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="no embeddings to train"):
        world(tmp_path, "popularity")


def test_without_retrieval_the_ranker_alone_is_sent(tmp_path):
    both, alone = (world(tmp_path / str(on), "dnn", retrieval=on)[3] for on in (True, False))
    assert alone.width == both.width / 2
    assert alone.read()[1].size < both.read()[1].size
    assert alone.read()[0].shape[0] == both.read()[0].shape[0]

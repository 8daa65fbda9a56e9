"""A client's descent on its own rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from contracts.errors import ProtocolError
from federated.clients.local_training import ClientTrainer, row_samples
from federated.clients.networks import FederatedNetworks
from federated.clients.prepare import SamplesByUser, federated_spec
from federated.clients.row_space import RowSpace
from federated.rounds.settings import local_settings
from models.examples.batches import ExampleSet
from models.networks import registry
from tests.federated import small_world

LEARNING = [name for name in registry.names() if name != "popularity"]


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory):
    return small_world.write(tmp_path_factory.mktemp("out"))


def world(artifacts, model="din"):
    """Configuration, space, samples of one user, networks."""
    config = small_world.config(model=model, settings=("cpp1", "fedprox"), served="cpp1")
    spec = federated_spec(config, small_world.spec())
    samples = SamplesByUser(ExampleSet(artifacts.examples("train"), spec))
    torch.manual_seed(3)
    return config, RowSpace(spec, 10), samples.of(samples.users[0]), FederatedNetworks(spec, config)


def test_samples_of_a_row_are_counted_once_each(artifacts):
    _, space, batch, _ = world(artifacts)
    places = space.places(batch)
    expected = [(places == place).any(axis=1).sum() for place in range(space.size)]
    assert row_samples(space, batch).tolist() == expected


def test_a_pull_towards_the_rounds_model_keeps_a_client_near_it(artifacts):
    config, space, batch, networks = world(artifacts)
    rows, dense = networks.read()
    moved = []
    for pull in (0.0, 5.0):
        local = replace(local_settings("fedprox", config), proximal=pull, learning_rate=0.1)
        update = ClientTrainer(space, config, local, batch, 0).train(1, np.arange(space.size), rows, dense)
        moved.append(np.linalg.norm(update.dense))
    assert moved[1] < 0.9 * moved[0]


@pytest.mark.parametrize("model", LEARNING)
def test_training_the_rows_a_client_uses_is_training_them_all(artifacts, model):
    config, space, batch, networks = world(artifacts, model)
    trainer = ClientTrainer(space, config, local_settings("cpp1", config), batch, 0)
    rows, dense = networks.read()
    used = np.union1d(trainer.held(), np.setdiff1d(np.arange(space.size), space.private_places))
    small, whole = trainer.train(5, used, rows[used], dense), trainer.train(5, np.arange(space.size), rows, dense)
    assert np.abs(small.rows - whole.rows[used]).max() < 1e-6
    assert np.abs(small.dense - whole.dense).max() < 1e-6
    assert np.abs(small.rows).max() > 1e-5


def test_without_a_row_of_its_own_a_client_changes_nothing(artifacts):
    config, space, batch, networks = world(artifacts)
    rows, dense = networks.read()
    places = np.setdiff1d(np.arange(space.size), space.private_places)
    trainer = ClientTrainer(space, config, local_settings("cpp1", config), batch, 0)
    update = trainer.train(1, places, rows[places], dense)
    assert (update.kept, update.held) == (0, len(batch.label))
    assert not update.rows.any()
    assert not update.dense.any()


def test_one_round_and_client_is_one_update_and_another_round_another(artifacts):
    config, space, batch, networks = world(artifacts)
    rows, dense = networks.read()
    trainer = ClientTrainer(space, config, local_settings("cpp1", config), batch, 0)
    first, again, other = (trainer.train(number, np.arange(space.size), rows, dense) for number in (5, 5, 10))
    assert (first.dense == again.dense).all()
    assert (first.dense != other.dense).any()


def test_descent_that_leaves_the_numbers_is_refused(artifacts):
    config, space, batch, networks = world(artifacts)
    rows, dense = networks.read()
    local = replace(local_settings("cpp1", config), learning_rate=1e30, epochs=3, batch_size=4)
    trainer = ClientTrainer(space, config, local, batch, 0)
    with pytest.raises(ProtocolError, match="diverged"):
        trainer.train(1, np.arange(space.size), rows, dense)

"""Settings that must agree: one client with everything is plain training; a submodel without secrets is the full
model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from contracts.config.federated import FederatedOverrides
from federated.clients import client_files, prepare
from federated.clients.local_training import ClientTrainer
from federated.clients.networks import FederatedNetworks
from federated.clients.row_space import RowSpace
from federated.privacy.index_policy import POLICIES
from federated.privacy.randomized_response import FirstAnswers
from federated.protocol.round_client import RoundClient
from federated.rounds.settings import local_settings, plan_of
from federated.rounds.training import FederatedRun
from tests.federated import small_world
from tests.federated.local_exchange import LocalExchange


@pytest.fixture
def world(tmp_path):
    config = small_world.config(settings=("cpp2", "cpp1", "central"),
                                overrides={"central": FederatedOverrides(batch_size=60)})
    out = small_world.write(tmp_path / "out")
    prepare.prepare(config, out, tmp_path / "federated")
    config, spec = client_files.read_public(tmp_path / "federated")
    torch.manual_seed(1)
    networks = FederatedNetworks(spec, config)
    return config, RowSpace(spec, config.federated.public_up_to), networks, tmp_path / "federated"


def trainers(world):
    config, space, _, folder = world
    local = local_settings("cpp1", config)
    return [ClientTrainer(space, config, local, client_files.read_client(folder, number), number)
            for number in range(client_files.count(folder))]


def one_round(world, plan):
    _, _, networks, _ = world
    rows, dense = networks.read()
    names = plan.private_places.astype(np.uint64)
    clients = {
        number: RoundClient(plan, trainer, FirstAnswers(world[3] / "answers" / str(number), names))
        for number, trainer in enumerate(trainers(world)[:8])
    }
    run = FederatedRun(plan=plan, exchange=LocalExchange(clients), population=8, folder=world[3] / plan.policy.name,
                       seed=1, rows=rows, dense=dense)
    run.run(1, lambda rows, dense: {}, 99, lambda entry: None)
    return run.rows, run.dense


@pytest.mark.parametrize("rule", ["holders", "plain", "heat"])
def test_a_submodel_without_secrets_is_full_model_training_by_the_same_rule(world, rule):
    config, space, networks, _ = world
    plan = replace(plan_of("cpp1", config, space, networks), masking="none", rule=rule)
    sub = one_round(world, plan)
    full = one_round(world, replace(plan, policy=POLICIES["all"]))
    assert np.abs(sub[0] - full[0]).max() < 1e-6
    assert np.abs(sub[1] - full[1]).max() < 1e-6
    assert np.abs(sub[0] - networks.read()[0]).max() > 1e-3


def test_one_client_holding_all_data_is_central_training(world):
    config, space, networks, folder = world
    whole, local = prepare.pooled(folder), local_settings("central", config)
    rows, dense = networks.read()
    trainer = ClientTrainer(space, config, local, whole, 0)
    plan = plan_of("central", config, space, networks)
    alone = LocalExchange({0: RoundClient(plan, trainer, None)})
    run = FederatedRun(plan=plan, exchange=alone, population=1, folder=folder / "central", seed=1, rows=rows,
                       dense=dense)
    run.run(2, lambda r, d: {}, 99, lambda entry: None)
    reference = FederatedNetworks(space.spec, config).train()
    reference.write(rows, dense)
    for number in (1, 2):
        optimiser = torch.optim.SGD(reference.parameters(), lr=local.learning_rate * local.decay**number)
        order = np.random.default_rng([local.seed, 0, 5 * number]).permutation(len(whole.label))
        for at in range(0, len(order), local.batch_size):
            optimiser.zero_grad()
            reference.loss(whole.take(torch.from_numpy(order[at : at + local.batch_size])))[0].backward()
            optimiser.step()
    assert np.abs(run.rows - reference.read()[0]).max() < 1e-4
    assert np.abs(run.dense - reference.read()[1]).max() < 1e-4

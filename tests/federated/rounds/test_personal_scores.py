"""Counting what heads give: under masks the same as client by client, to the end alone, and to who agreed to it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from contracts.errors import ProtocolError
from federated.clients import client_files, personal_head, prepare
from federated.clients.personal_head import HeadSettings
from federated.device.own_client import client_of
from federated.protocol.plan import ATTEMPTS
from federated.rounds.client_evaluation import count_scores
from federated.rounds.personal_scores import figures, logits, of_heads
from federated.rounds.public_setup import public_setup
from federated.rounds.score_histograms import AT_THE_END, model_as_vector
from federated.rounds.settings import PERSONAL
from tests.federated import small_world
from tests.federated.local_exchange import LocalExchange

CLIENTS = 8


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Clients of whom the even ones click on nearly everything and the odd ones on nearly nothing, whatever it is."""
    folder = tmp_path_factory.mktemp("prepared")
    config = small_world.config(model="dnn", population=CLIENTS, retrieval=False, personal_steps=200, personal_pull=0.1)
    prepare.prepare(config, small_world.write(folder / "out"), folder / "federated")
    draws = torch.Generator().manual_seed(5)
    for number in range(CLIENTS):
        for file in (client_files.SAMPLES, client_files.LATER):
            rows = client_files.read_client(folder / "federated", number, file)
            clicks = torch.rand(len(rows.label), generator=draws) < (0.1 if number % 2 else 0.9)
            client_files.write_client(folder / "federated", number, rows._replace(label=clicks.float()), file)
    setup = public_setup(folder / "federated", PERSONAL)
    return setup, folder / "federated", setup.networks.read()


def asked(setup, folder, model):
    (rows, dense), clients = model, {each: client_of(setup, folder, each) for each in range(CLIENTS)}
    return count_scores(setup, LocalExchange(clients), range(CLIENTS), rows, dense, AT_THE_END)


@pytest.mark.slow
def test_masked_counts_are_those_of_each_client_with_the_head_that_it_keeps(world):
    setup, folder, model = world
    (found,) = asked(setup, folder, model)
    expected = []
    for number in range(CLIENTS):
        later = client_files.read_client(folder, number, client_files.LATER)
        setup.networks.write(*model)
        common = logits(setup.networks, later)
        assert personal_head.put_on(folder, number, setup.networks)
        expected.append(of_heads(later, common, logits(setup.networks, later)))
    assert (found.rows == sum(each.rows for each in expected)).all()
    assert (found.clicks == sum(each.clicks for each in expected)).all()
    assert found.shown.sum() == 0


def test_clients_of_different_habits_gain_by_heads_of_their_own(world):
    """The common head, untrained, cannot tell them apart; theirs come near the best there is, 0.9."""
    setup, folder, model = world
    found = figures(asked(setup, folder, model))
    assert found.auc_common is not None
    assert found.auc_common < 0.6
    assert found.auc is not None
    assert found.auc > 0.8
    assert found.predicted_over_observed == pytest.approx(1.0, abs=0.15)
    later = [client_files.read_client(folder, number, client_files.LATER) for number in range(CLIENTS)]
    assert found.rows == sum(len(rows.label) for rows in later)


def test_heads_are_asked_of_in_the_attempts_at_the_end_alone(world):
    setup, folder, (rows, dense) = world
    trainer = client_of(setup, folder, 2).trainer
    vector, nothing = model_as_vector(rows, dense, setup.plan.dense), (np.empty(0, int), np.empty((0, 1)))
    assert trainer.train(ATTEMPTS, *nothing, vector).kept > 0
    for number in (ATTEMPTS - 1, 2 * ATTEMPTS):
        with pytest.raises(ProtocolError, match="counts of personal heads"):
            trainer.train(number, *nothing, vector)


def test_a_client_whose_configuration_has_no_heads_fits_none(world, tmp_path):
    config = small_world.config(population=CLIENTS)
    prepare.prepare(config, small_world.write(tmp_path / "out"), tmp_path / "federated")
    with pytest.raises(ProtocolError, match="personal_steps is 0"):
        client_of(public_setup(tmp_path / "federated", PERSONAL), tmp_path / "federated", 0)


def test_the_settings_of_heads_are_the_configured_ones(world):
    assert HeadSettings.of(world[0].config) == HeadSettings(200, 0.1, 0.1)

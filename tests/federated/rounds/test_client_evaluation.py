"""Counting scores over cohorts: the same sums as over all, and a client that lies costs an attempt."""

from __future__ import annotations

import pytest

from contracts.errors import RoundAbandoned
from federated.clients import prepare
from federated.device.own_client import client_of
from federated.rounds import client_evaluation
from federated.rounds.client_evaluation import count_scores, together
from federated.rounds.public_setup import public_setup
from federated.rounds.settings import HISTOGRAMS
from tests.federated import small_world
from tests.federated.local_exchange import LocalExchange
from tests.federated.meddling import Meddling

CLIENTS = 9


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prepared")
    config = small_world.config(population=CLIENTS, clients=CLIENTS)
    prepare.prepare(config, small_world.write(folder / "out"), folder / "federated")
    setup = public_setup(folder / "federated", HISTOGRAMS)
    return setup, folder / "federated", setup.networks.read()


def clients_of(folder):
    return {number: client_of.__wrapped__(folder, HISTOGRAMS, number) for number in range(CLIENTS)}


def test_cohorts_add_up_to_the_whole(world, monkeypatch):
    setup, folder, (rows, dense) = world
    whole = count_scores(setup, LocalExchange(clients_of(folder)), range(CLIENTS), rows, dense, 1)
    monkeypatch.setattr(client_evaluation, "TOGETHER", 3)
    parts = count_scores(setup, LocalExchange(clients_of(folder)), range(CLIENTS), rows, dense, 1)
    assert (len(whole), len(parts)) == (1, 3)
    assert (together(parts).flat() == whole[0].flat()).all()
    assert together(whole).auc() == pytest.approx(0.5, abs=0.2)


def test_who_deals_shares_that_do_not_open_is_left_out_of_the_next_attempt(world):
    setup, folder, (rows, dense) = world
    exchange = Meddling(clients_of(folder), "shares", 4, lambda reply: {"boxes": reply["boxes"] ^ 1})
    found = count_scores(setup, exchange, range(CLIENTS), rows, dense, 2)
    rest = {number: client for number, client in clients_of(folder).items() if number != 4}
    alone = count_scores(setup, LocalExchange(rest), sorted(rest), rows, dense, 2)
    assert (found[0].flat() == alone[0].flat()).all()


def test_too_few_clients_are_counted_by_nobody(world):
    setup, folder, (rows, dense) = world
    lost = LocalExchange(clients_of(folder), {"train": set(range(8))})
    with pytest.raises(RoundAbandoned, match="5 rounds of counting scores"):
        count_scores(setup, lost, range(CLIENTS), rows, dense, 3)

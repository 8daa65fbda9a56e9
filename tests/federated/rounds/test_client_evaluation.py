"""Counting scores over cohorts: the same sums as over all, and a client that lies costs an attempt."""

from __future__ import annotations

import numpy as np
import pytest

from contracts.errors import RoundAbandoned
from federated.clients import prepare
from federated.device.own_client import client_of
from federated.rounds import client_evaluation
from federated.rounds.client_evaluation import count_scores, together
from federated.rounds.public_setup import public_setup
from federated.rounds.settings import HISTOGRAMS, SCORES
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


def clients_of(folder, counts=HISTOGRAMS):
    return {number: client_of(public_setup(folder, counts), folder, number) for number in range(CLIENTS)}


def test_cohorts_add_up_to_the_whole(world, monkeypatch):
    setup, folder, (rows, dense) = world
    whole = count_scores(setup, LocalExchange(clients_of(folder)), range(CLIENTS), rows, dense, 1)
    monkeypatch.setattr(client_evaluation, "TOGETHER", 3)
    parts = count_scores(setup, LocalExchange(clients_of(folder)), range(CLIENTS), rows, dense, 1)
    assert (len(whole), len(parts)) == (1, 3)
    assert (together(parts).flat() == whole[0].flat()).all()
    assert together(whole).auc() == pytest.approx(0.5, abs=0.2)
    clicks = [part.clicks[0].sum() for part in parts]
    by_cohort = [part.predicted_over_observed() or 0.0 for part in parts]
    assert together(whole).predicted_over_observed() == pytest.approx(np.average(by_cohort, weights=clicks))


def test_cohorts_are_the_same_whoever_is_there(world, monkeypatch):
    """A client that is missing changes the sum of its own cohort alone."""
    setup, folder, (rows, dense) = world
    monkeypatch.setattr(client_evaluation, "TOGETHER", 5)

    def counted(clients):
        exchange = LocalExchange(clients_of(folder))
        return [each.flat().tolist() for each in count_scores(setup, exchange, clients, rows, dense, 1)]

    whole, without = counted(range(CLIENTS)), counted(range(1, CLIENTS))
    assert len(whole) == len(without) == 2
    assert sum(mine == theirs for mine, theirs in zip(whole, without, strict=True)) == 1


def test_items_are_not_asked_of_one_client_under_cover_of_the_others_scores(world):
    """Added up, its counts of items would stand alone."""
    _, folder, (rows, dense) = world
    victim = clients_of(folder)[4]
    exchange = LocalExchange(clients_of(folder, SCORES) | {4: victim})
    found = count_scores(public_setup(folder, SCORES), exchange, range(CLIENTS), rows, dense, 4)
    assert found[0].shown.sum() == 0
    rest = [number for number in range(CLIENTS) if number != 4]
    alone = count_scores(public_setup(folder, SCORES), LocalExchange(clients_of(folder, SCORES)), rest, rows, dense, 4)
    assert (found[0].flat() == alone[0].flat()).all()


def test_who_deals_shares_that_do_not_open_is_left_out_of_the_next_attempt(world):
    setup, folder, (rows, dense) = world
    exchange = Meddling(clients_of(folder), "shares", 4, lambda reply: {"boxes": reply["boxes"] ^ 1})
    found = count_scores(setup, exchange, range(CLIENTS), rows, dense, 1)
    rest = {number: client for number, client in clients_of(folder).items() if number != 4}
    alone = count_scores(setup, LocalExchange(rest), sorted(rest), rows, dense, 1)
    assert (found[0].flat() == alone[0].flat()).all()


def test_who_sends_words_that_are_no_counts_is_in_no_sum_that_is_taken(world):
    setup, folder, (rows, dense) = world
    exchange = Meddling(clients_of(folder), "train", 4, lambda reply: {"words": reply["words"] ^ np.uint32(0x5A5A5A5A)})
    found = count_scores(setup, exchange, range(CLIENTS), rows, dense, 1)
    last = {number for phase, number, message, _ in exchange.sent
            if phase == "train" and message["round"] == exchange.sent[-1][2]["round"]}
    assert 4 not in last
    assert len(last) >= CLIENTS - CLIENTS // 3
    alone = count_scores(setup, LocalExchange(clients_of(folder)), sorted(last), rows, dense, 1)
    assert (found[0].flat() == alone[0].flat()).all()


def test_too_few_clients_are_counted_by_nobody(world):
    setup, folder, (rows, dense) = world
    lost = LocalExchange(clients_of(folder), {"train": set(range(8))})
    with pytest.raises(RoundAbandoned, match="5 rounds of counting scores"):
        count_scores(setup, lost, range(CLIENTS), rows, dense, 1)

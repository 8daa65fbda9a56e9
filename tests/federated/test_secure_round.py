"""The oracle: opened sums equal, bit for bit, the plaintext sums of the survivors' quantised vectors."""

from __future__ import annotations

import numpy as np
import pytest

from contracts.errors import RoundAbandoned
from federated.protocol.local_update import update_words
from federated.protocol.messages import PHASES
from federated.protocol.round_server import RoundServer
from federated.secure_aggregation.fixed_point import signed
from tests.federated.local_exchange import LocalExchange, fixed_trainer
from tests.federated.small_rounds import CLIENTS, DENSE, SPACE, WIDTH, clients, plaintext, plan, run

CASES = [("none", "cpp1"), ("none", "all"), ("union", "cpp5"), ("union", "all"),
         ("union", "scope"), ("per_row", "cpp1"),
         ("per_row", "cpp2"), ("per_row", "cpp4"), ("per_row", "cpp5"), ("per_row", "all")]


@pytest.mark.parametrize(("masking", "policy"), CASES)
@pytest.mark.parametrize("rule", ["holders", "heat", "plain"])
def test_opened_sums_are_the_survivors_plaintext_sums(tmp_path, masking, policy, rule):
    of = plan(masking, policy, rule=rule)
    exchange = LocalExchange(clients(of, tmp_path))
    found = run(of, exchange)
    rows, common = plaintext(of, exchange, set(exchange.clients))
    assert (found.rows == of.fixed.decode(rows[:, :-1])).all()
    assert (found.row_weights == signed(rows[:, -1])).all()
    assert (found.dense == of.fixed.decode(common[:DENSE])).all()
    assert len(found.finished) == CLIENTS
    assert found.samples == 7 * CLIENTS


@pytest.mark.parametrize(("masking", "policy"), CASES)
@pytest.mark.parametrize("phase", PHASES)
def test_the_same_with_clients_lost_in_each_phase(tmp_path, masking, policy, phase):
    of = plan(masking, policy)
    exchange = LocalExchange(clients(of, tmp_path), {phase: {100, 107}})
    found = run(of, exchange)
    summed = {number for kind, number, _, _ in exchange.sent if kind == "train"}
    rows, common = plaintext(of, exchange, summed)
    assert (found.rows == of.fixed.decode(rows[:, :-1])).all()
    assert (found.dense == of.fixed.decode(common[:DENSE])).all()
    assert len(found.finished) == len(summed)


def test_the_same_with_clients_lost_in_every_phase_of_one_round(tmp_path):
    of = plan("per_row", "cpp2", neighbours=27, clients=28)
    exchange = LocalExchange(clients(of, tmp_path, 28), {phase: {100 + at} for at, phase in enumerate(PHASES[1:])})
    found = run(of, exchange)
    summed = {number for kind, number, _, _ in exchange.sent if kind == "train"}
    rows, _ = plaintext(of, exchange, summed)
    assert (found.rows == of.fixed.decode(rows[:, :-1])).all()
    assert {phase: lost for phase, lost in found.lost.items() if lost} == {
        phase: [100 + at] for at, phase in enumerate(PHASES[1:])}


@pytest.mark.parametrize("phase", PHASES)
def test_below_the_threshold_the_round_is_abandoned(tmp_path, phase):
    of = plan("union", "cpp5")
    exchange = LocalExchange(clients(of, tmp_path), {phase: set(range(100, 112))})
    with pytest.raises(RoundAbandoned):
        run(of, exchange)


def test_the_union_is_what_the_clients_hold(tmp_path):
    of = plan("per_row", "cpp1")
    exchange = LocalExchange(clients(of, tmp_path), {"union": {103}})
    found = run(of, exchange)
    held = [client.trainer.held() for number, client in exchange.clients.items() if number != 103]
    assert (found.union == np.unique(np.concatenate(held))).all()


def test_rows_of_too_few_contributors_stay_out_of_the_union(tmp_path):
    of = plan("per_row", "cpp1", contributors=4)
    exchange = LocalExchange(clients(of, tmp_path))
    found = run(of, exchange)
    rows, counts = np.unique(np.concatenate([c.trainer.held() for c in exchange.clients.values()]), return_counts=True)
    assert (found.union == rows[counts >= 4]).all()
    assert (counts < 4).any()
    assert not found.row_weights[rows[counts < 4]].any()


def test_masked_words_are_uniform_and_hold_no_plaintext(tmp_path):
    """Chi-square over the 256 values of the bytes of all masked uploads: within 6 standard deviations of its mean."""
    of = plan("per_row", "cpp2", dense=3000)
    made = clients(of, tmp_path)
    for client in made.values():
        fixed_trainer(client).dense = 3000
    exchange = LocalExchange(made)
    server = RoundServer(of, 1, exchange, np.zeros((SPACE, WIDTH), np.float32), np.zeros(3000, np.float32))
    server.run(exchange.clients)
    uploads = [reply["words"] for phase, _, _, reply in exchange.sent if phase == "train"]
    counts = np.bincount(np.concatenate([u.view(np.uint8) for u in uploads]), minlength=256)
    expected = counts.sum() / 256
    assert abs(((counts - expected) ** 2 / expected).sum() - 255) < 6 * np.sqrt(2 * 255)
    for phase, number, _, reply in exchange.sent:
        if phase == "union":
            assert (reply["words"] == 0).mean() < 0.1  # in the clear four of five rows, which are not held, are 0
        if phase == "train":
            client = exchange.clients[number]
            places = client.places(exchange.memory[number])
            succinct = np.isin(places, np.concatenate([of.public_places, client.trainer.held()]))
            words = update_words(of, of.update_layout(places), succinct, fixed_trainer(client).last)
            assert (reply["words"] == words).mean() < 0.01

"""The oracle: opened sums equal, bit for bit, the plaintext sums of the survivors' quantised vectors."""

from __future__ import annotations

import pytest

from contracts.errors import RoundAbandoned
from federated.protocol.messages import PHASES
from federated.secure_aggregation.fixed_point import signed
from tests.federated.local_exchange import LocalExchange
from tests.federated.small_rounds import CLIENTS, DENSE, clients, plaintext, plan, run

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


@pytest.mark.parametrize("policy", ["scope", "all"])
def test_where_rows_are_public_no_union_is_asked_for_and_nobody_chooses(tmp_path, policy):
    exchange = LocalExchange(clients(plan("union", policy), tmp_path))
    found = run(plan("union", policy), exchange)
    assert {phase for phase, *_ in exchange.sent} == {"keys", "shares", "train", "agree_update", "open_update"}
    assert len({places.tobytes() for places in found.places.values()}) == 1


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

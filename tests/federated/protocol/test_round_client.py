"""Requests that a client refuses: past rounds, the same phase twice, phases out of order."""

from __future__ import annotations

import numpy as np
import pytest

from contracts.errors import ProtocolError
from federated.protocol.messages import PHASES, ROUND, Phase
from federated.protocol.round_client import RoundClient
from tests.federated.local_exchange import FixedTrainer, LocalExchange
from tests.federated.small_rounds import DENSE, WIDTH, clients, plan, run


def test_an_answer_given_twice_or_for_a_past_round_is_refused(tmp_path):
    of = plan("union", "cpp5")
    exchange = LocalExchange(clients(of, tmp_path))
    run(of, exchange, number=3)
    client, memory = exchange.clients[100], exchange.memory[100]
    given: tuple[tuple[int, Phase], ...] = ((3, "open_update"), (3, "keys"), (2, "keys"))
    for number, phase in given:
        with pytest.raises(ProtocolError, match="refused"):
            client.handle(phase, {ROUND: np.array(number), "clients": np.array(9, np.int32)}, memory)


@pytest.mark.parametrize("policy", ["cpp5", "cpp1"])
def test_where_the_whole_union_is_named_clients_that_hold_other_rows_say_the_same(tmp_path, policy):
    """And under cpp1 they do not: what is compared tells them apart."""
    exchange = LocalExchange(clients(plan("union" if policy == "cpp5" else "per_row", policy), tmp_path))
    run(exchange.clients[100].plan, exchange)
    assert len({client.trainer.held().tobytes() for client in exchange.clients.values()}) == len(exchange.clients)
    named = {reply["chosen"].tobytes() for phase, _, _, reply in exchange.sent if phase == "choose"}
    asked = {message["rows"].tobytes() for phase, _, message, _ in exchange.sent if phase == "train"}
    assert (len(named) == len(asked) == 1) == (policy == "cpp5")


def test_a_second_story_about_the_survivors_gets_nothing(tmp_path):
    of = plan("union", "cpp5")
    exchange = LocalExchange(clients(of, tmp_path))
    run(of, exchange)
    _, number, message, _ = next(sent for sent in exchange.sent if sent[0] == "open_update")
    for phase in ("agree_update", "open_update"):
        with pytest.raises(ProtocolError, match="has done it"):
            exchange.clients[number].handle(phase, message, exchange.memory[number])


@pytest.mark.parametrize("phase", [phase for phase in PHASES if phase != "keys"])
def test_a_phase_out_of_order_is_refused(tmp_path, phase):
    of = plan("per_row", "cpp1")
    client = clients(of, tmp_path, count=1)[100]
    with pytest.raises(ProtocolError):
        client.handle(phase, {ROUND: np.array(1)}, {})


def test_a_client_without_a_memory_refuses():
    with pytest.raises(ProtocolError, match="last gradient"):
        RoundClient(plan("union", "all", rule="latest"), FixedTrainer(np.empty(0, int), WIDTH, DENSE, 1), None)

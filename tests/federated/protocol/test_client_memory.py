"""A client remembers two rounds where they overlap, and of each no phase is done twice."""

from __future__ import annotations

import numpy as np
import pytest

from contracts.errors import ProtocolError
from federated.protocol.client_memory import memory_of, rounds_of
from federated.protocol.messages import PHASES, joined
from federated.protocol.round_server import RoundServer
from federated.rounds.overlap import Attempt, carried_through
from tests.federated.local_exchange import LocalExchange
from tests.federated.small_rounds import CLIENTS, DENSE, SPACE, WIDTH, clients, plan

EVERYBODY = range(100, 100 + CLIENTS)


def server(of, number, exchange):
    return RoundServer(of, number, exchange, np.zeros((SPACE, WIDTH), np.float32), np.zeros(DENSE, np.float32),
                       run=bytes(32))


def both(tmp_path, overlap=True):
    """An exchange after a round 5 that ended while round 10 was prepared up to `agree_union`."""
    of = plan("union", "cpp5", overlap=overlap)
    exchange = LocalExchange(clients(of, tmp_path))

    def attempt(number):
        return Attempt(server(of, number, exchange), list(EVERYBODY))

    _, ahead = carried_through(exchange, attempt(5), lambda: attempt(10))
    return of, exchange, ahead


def greeting(number):
    return {"round": np.array(number), "clients": np.array(CLIENTS, np.int32), "run": np.zeros(32, np.uint8)}


def test_memory_comes_apart_as_it_was_put_together():
    newest, before = {"round": np.array(10)}, {"round": np.array(5), "done keys": np.ones(1)}
    assert rounds_of(memory_of(newest, before)) == (newest, before)
    assert rounds_of({}) == ({}, {})


def test_of_a_round_that_is_done_nothing_is_left_while_the_next_is_prepared(tmp_path):
    _, exchange, _ = both(tmp_path)
    newest, before = rounds_of(exchange.memory[100])
    assert before == {}
    assert int(newest["round"]) == 10
    assert {name for name in newest if name.startswith("done")} == {f"done {phase}" for phase in PHASES[:4]}


def test_nothing_is_done_twice_in_either_round(tmp_path):
    """Every message that a client replied to, said again at the end: no second share, signature or upload."""
    _, exchange, _ = both(tmp_path)
    sent, memory = [each for each in exchange.sent if each[1] == 100], exchange.memory[100]
    assert len(sent) == 9
    for phase, _, message, _ in sent:
        with pytest.raises(ProtocolError, match="this client has done it"):
            exchange.clients[100].handle(phase, message, memory)


def test_of_a_third_round_nothing_is_remembered(tmp_path):
    of = plan("union", "cpp5", overlap=True)
    client, memory = clients(of, tmp_path)[100], dict[str, np.ndarray]()
    for number in (5, 10, 15):
        _, memory = client.handle("keys", greeting(number), memory)
    newest, before = rounds_of(memory)
    assert (int(newest["round"]), int(before["round"])) == (15, 10)
    with pytest.raises(ProtocolError, match="refused"):
        client.handle("shares", greeting(5), memory)


def test_who_trains_has_done_with_the_round_before(tmp_path):
    """Else a server could ask for another upload to a sum whose model it has moved on from."""
    of, exchange, ahead = both(tmp_path)
    exchange.sent.clear()
    later = Attempt(server(of, 15, exchange), list(EVERYBODY))
    carried_through(exchange, ahead, lambda: later)
    trained = next(memory for phase, client, _, memory in exchange.sent if phase == "train")
    assert "words" in trained
    for phase in ("agree_update", "open_update", "choose"):
        with pytest.raises(ProtocolError, match="refused"):
            exchange.clients[100].handle(phase, {"round": np.array(5)}, exchange.memory[100])


def test_where_rounds_do_not_overlap_one_is_remembered(tmp_path):
    of = plan("union", "cpp5")
    client, memory = clients(of, tmp_path)[100], dict[str, np.ndarray]()
    for number in (5, 10):
        _, memory = client.handle("keys", greeting(number), memory)
    assert rounds_of(memory)[1] == {}


def test_a_busy_client_ends_its_round_and_begins_none(tmp_path):
    """Also where both are asked in one message."""
    of = plan("union", "cpp5", overlap=True)
    client, asked = clients(of, tmp_path)[100], []

    def busy():
        asked.append(1)
        return False

    with pytest.raises(ProtocolError, match="takes part in no round now"):
        client.handle("keys", greeting(5), {}, busy)
    exchange = LocalExchange(clients(of, tmp_path / "more"))
    with pytest.raises(ProtocolError, match="takes part"):
        client.handle("keys", greeting(10), exchange.memory[100], busy)
    assert len(asked) == 2
    stopped = Attempt(server(of, 5, exchange), list(EVERYBODY))
    for _ in range(5):
        question = stopped.question()
        assert question is not None
        for number in EVERYBODY:
            reply, exchange.memory[number] = exchange.clients[number].handle(
                question.phase, question.message(number), exchange.memory[number])
            question.take(number, reply)
    question = stopped.question()
    assert question is not None
    assert question.phase == "choose"
    together = joined("choose", {"choose": question.message(100), "keys": greeting(10)})
    reply, memory = exchange.clients[100].handle("choose", together, exchange.memory[100], busy)
    assert set(reply) == {"chosen"}
    assert len(asked) == 3
    assert int(memory["round"]) == 5

from __future__ import annotations

import numpy as np
import pytest

from contracts.errors import ProtocolError
from federated.averaging.fedlaavg import Gradient, GradientMemory, LatestAverage

CLIENTS, DENSE, SPACE, WIDTH, RATE = 6, 3, 8, 2, 0.1


def quadratic(client: int, dense: np.ndarray) -> np.ndarray:
    """Gradient of |x - c|^2 / 2 with a centre of the client's own."""
    return dense - client


def test_the_longest_unseen_come_first():
    server = LatestAverage.of_dense(np.zeros(DENSE), CLIENTS, RATE)
    assert server.choose([4, 2, 5], 2) == [2, 4]
    server.apply(1, [2, 4], np.zeros(DENSE))
    assert server.choose([4, 2, 5], 2) == [2, 5]


@pytest.mark.parametrize("lost_share", [0.0, 0.5])
def test_the_mean_is_that_of_the_latest_gradients_also_after_lost_uploads(lost_share):
    """Against the mean recomputed from every accepted gradient; a client that forgot the commit rule would drift."""
    generator = np.random.default_rng(4)
    server = LatestAverage.of_dense(np.zeros(DENSE), CLIENTS, RATE)
    memories = [GradientMemory.empty(DENSE) for _ in range(CLIENTS)]
    latest = np.zeros((CLIENTS, DENSE))
    for number in range(1, 40):
        chosen = server.choose(sorted(generator.choice(CLIENTS, 4, replace=False).tolist()), 2)
        arrived, total = [], np.zeros(DENSE)
        for client in chosen:
            memories[client].settle(int(server.accepted[client]))
            gradient = quadratic(client, server.dense) + generator.normal(size=DENSE)
            difference = memories[client].difference(number, Gradient.of_dense(gradient)).dense
            if generator.random() >= lost_share:
                arrived.append(client)
                total += difference
                latest[client] = gradient
        before = server.dense
        server.apply(number, arrived, total)
        assert server.dense == pytest.approx(before - RATE * latest.mean(axis=0), abs=1e-12)


def test_rows_that_a_client_no_longer_uses_are_taken_back():
    memory = GradientMemory.empty(DENSE, WIDTH)
    first = Gradient(np.ones(DENSE), np.array([1, 4]), np.array([[1.0, 1.0], [2.0, 2.0]]))
    memory.difference(1, first)
    memory.settle(1)
    assert memory.declared(np.array([4, 6])).tolist() == [1, 4, 6]
    second = Gradient(np.zeros(DENSE), np.array([4, 6]), np.array([[5.0, 5.0], [7.0, 7.0]]))
    found = memory.difference(2, second)
    assert found.places.tolist() == [1, 4, 6]
    assert found.rows.tolist() == [[-1.0, -1.0], [3.0, 3.0], [7.0, 7.0]]


def test_rows_are_divided_by_those_that_hold_them():
    holders = np.array([1, 2, 0, 6])
    server = LatestAverage(np.zeros(1), np.zeros((4, 1)), CLIENTS, 1.0, holders)
    server.apply(1, [0], np.array([6.0]), np.array([[1.0], [1.0], [0.0], [3.0]]))
    assert server.rows.ravel().tolist() == [-1.0, -0.5, 0.0, -0.5]
    assert server.dense.tolist() == [-1.0]


def test_keys_of_clients_that_never_come_divide_nothing():
    """Thirty keys are published, six clients are there: descent is that of six. A seventh makes it that of seven."""
    holders, dense, rows = np.array([2.0]), np.array([6.0]), np.array([[4.0]])
    listed = LatestAverage(np.zeros(1), np.zeros((1, 1)), 30, 1.0, holders, clients=CLIENTS)
    there = LatestAverage(np.zeros(1), np.zeros((1, 1)), CLIENTS, 1.0, holders)
    for server in (listed, there):
        server.apply(1, range(CLIENTS), dense, rows)
    assert listed.dense.tolist() == there.dense.tolist() == [-1.0]
    assert listed.rows.tolist() == there.rows.tolist() == [[-2.0]]
    listed.apply(2, [20], np.array([7.0]), np.zeros((1, 1)))
    assert listed.dense == pytest.approx(-1.0 - 13 / 7)
    assert listed.rows == pytest.approx(-2.0 - 2.0 * 6 / 7)


def test_nobody_gets_the_whole_gradient_once_something_was_accepted():
    memory = GradientMemory.empty(1)
    memory.difference(1, Gradient.of_dense(np.array([3.0])))
    memory.settle(0)  # the upload was lost
    memory.difference(2, Gradient.of_dense(np.array([3.0])))
    memory.settle(2)
    with pytest.raises(ProtocolError, match="of round 0, it remembers"):
        memory.settle(0)


def test_what_a_client_helped_to_open_is_accepted_unless_it_is_void_for_all():
    memory = GradientMemory.empty(1)
    memory.difference(1, Gradient.of_dense(np.array([3.0])))
    memory.opened = True
    with pytest.raises(ProtocolError, match="helped to open its upload of round 1"):
        memory.settle(0)
    memory.settle(0, voided=True)
    assert memory.difference(2, Gradient.of_dense(np.array([5.0]))).dense.tolist() == [5.0]


def test_a_server_that_speaks_of_a_round_unknown_to_the_client_is_refused():
    memory = GradientMemory.empty(1)
    memory.difference(4, Gradient.of_dense(np.array([3.0])))
    with pytest.raises(ProtocolError, match=r"of round 3, it remembers \[0, 4\]"):
        memory.settle(3)
    memory.settle(4)
    memory.difference(9, Gradient.of_dense(np.array([4.0])))
    memory.settle(4)  # the upload of round 9 was lost
    assert memory.committed.dense.tolist() == [3.0]


def optimum(available, rounds=400):
    """Where full-gradient descent of the method ends; the true optimum is the mean of the centres."""
    server = LatestAverage.of_dense(np.zeros(1), CLIENTS, RATE)
    memories = [GradientMemory.empty(1) for _ in range(CLIENTS)]
    for number in range(1, rounds):
        chosen, total = server.choose(available(number), 2), np.zeros(1)
        for client in chosen:
            memories[client].settle(int(server.accepted[client]))
            total += memories[client].difference(number, Gradient.of_dense(quadratic(client, server.dense))).dense
        server.apply(number, chosen, total)
    return server.dense[0]


def test_clients_that_come_rarely_count_as_much_as_those_that_come_often():
    often = [0, 1, 2]
    assert optimum(lambda number: range(CLIENTS) if number % 10 == 0 else often) == pytest.approx(
        np.mean(range(CLIENTS)), abs=0.4)

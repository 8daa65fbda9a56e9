"""Holders are counted once, by rounds of groups, whatever clients are there later."""

from __future__ import annotations

import numpy as np
import pytest

from contracts.errors import RoundAbandoned
from federated.protocol.plan import ATTEMPTS
from federated.protocol.round_server import Holders
from federated.rounds import holder_counts
from federated.rounds.holder_counts import HolderCount
from federated.rounds.suspicion import Suspicion
from tests.federated.small_rounds import SPACE, plan


class Server:
    """Every client asked holds every second private row, and has three samples; `failures` attempts come first."""

    def __init__(self, of, failures=0):
        self.of, self.failures, self.asked = of, failures, []

    def __call__(self, number):
        return self

    def holders(self, clients):
        self.asked.append(list(clients))
        if len(self.asked) <= self.failures:
            raise RoundAbandoned("false boxes", accused=(2,))
        of_row = np.zeros(len(self.of.private_places), dtype=np.int64)
        of_row[::2] = len(clients)
        return Holders(of_row, 3 * len(clients), len(clients))


def count(of, server):
    accused = set[int]()
    return HolderCount(of, server, 1, Suspicion(of.min_clients), accused), accused


def test_groups_add_up_and_the_first_count_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(holder_counts, "TOGETHER", 4)
    of = plan("union", "cpp5", rule="latest")
    server = Server(of)
    counting, _ = count(of, server)
    found = counting.of(tmp_path / "run", range(10))
    assert [len(asked) for asked in server.asked] == [4, 3, 3]
    assert found.clients == 10
    assert found.mean_samples == 3
    assert (found.of_row[of.private_places[::2]] == 10).all()
    assert (found.of_row[of.private_places[1::2]] == 1).all()  # nobody: a row is divided by one at least
    assert (found.of_row[of.public_places] == 10).all()
    assert found.of_row.shape == (SPACE,)
    again = counting.of(tmp_path / "run", range(2))
    assert again.clients == 10
    assert (again.of_row == found.of_row).all()
    assert len(server.asked) == 3


def test_who_is_accused_is_left_out_of_the_next_attempt(tmp_path):
    of = plan("union", "cpp5", rule="latest")
    server = Server(of, failures=1)
    counting, accused = count(of, server)
    assert counting.of(tmp_path, range(6)).clients == 5
    assert accused == {2}


def test_after_as_many_attempts_as_a_round_has_it_is_given_up(tmp_path):
    of = plan("union", "cpp5", rule="latest")
    with pytest.raises(RoundAbandoned, match=f"in {ATTEMPTS} attempts"):
        count(of, Server(of, failures=99))[0].of(tmp_path, range(6))

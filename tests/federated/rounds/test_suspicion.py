"""Whoever spoils sums is found by leaving some out, and rounds are finished meanwhile."""

from __future__ import annotations

import random

import pytest

from federated.protocol.plan import ATTEMPTS
from federated.rounds.suspicion import Suspicion


def finished(suspicion, group, lies, drawn):
    """Who is in the sum of a round; None where all of its attempts were spoilt."""
    suspicion.begin_round()
    for _ in range(ATTEMPTS):
        asked = suspicion.without(group, drawn)
        assert len(asked) >= suspicion.least
        if not lies & set(asked):
            suspicion.fine(asked)
            return asked
        suspicion.spoilt(asked)
    return None


@pytest.mark.parametrize("size", [4, 5, 6, 7, 9, 12, 48, 95, 131])
def test_one_bad_client_stops_no_round_and_is_known_in_the_end(size):
    for seed in range(40):
        drawn, suspicion = random.Random(seed), Suspicion(3)
        group, liar = list(range(100, 100 + size)), 100 + seed % size
        sums = [finished(suspicion, group, {liar}, drawn) for _ in range(12)]
        assert all(sums)
        assert suspicion.found == {liar}
        assert sums[-1] == [client for client in group if client != liar]
        assert min(map(len, sums)) >= min(size - -(-size // 3), size - 1)


def test_nobody_is_left_out_of_rounds_that_are_not_spoilt():
    suspicion, drawn = Suspicion(3), random.Random(1)
    assert [finished(suspicion, [1, 2, 3, 4], set(), drawn) for _ in range(3)] == [[1, 2, 3, 4]] * 3
    assert not suspicion.found


def test_a_bad_client_in_each_of_two_groups_is_found():
    suspicion, drawn = Suspicion(3), random.Random(1)
    first, second = list(range(20)), list(range(20, 40))
    for _ in range(20):
        assert finished(suspicion, first, {7, 33}, drawn)
        assert finished(suspicion, second, {7, 33}, drawn)
    assert suspicion.found == {7, 33}


def test_no_sum_has_fewer_clients_than_the_least():
    suspicion = Suspicion(3)
    suspicion.begin_round()
    suspicion.spoilt([1, 2, 3])
    assert suspicion.without([1, 2, 3], random.Random(1)) == [1, 2, 3]

"""What elimination proves, on rounds whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest

from federated.privacy.leak_curve import Elimination, LeakWatch, of_rows, points_of

HELD = np.array([[True, False, True], [False, True, False], [False, False, True]])


def test_absence_from_a_union_rules_out_and_the_last_one_left_is_proven():
    known = Elimination(3, 3)
    known.observe([0, 1], np.ones((2, 3), bool), of_rows(np.array([0, 1, 2]), 3))
    assert known.proven(HELD) == 0.0
    known.observe([1, 2], np.ones((2, 3), bool), of_rows(np.array([1, 2]), 3))  # so 1 and 2 do not hold row 0: 0 does
    assert known.proven(HELD) == pytest.approx(1 / 4)
    known.observe([0], np.ones((1, 3), bool), of_rows(np.array([0, 2]), 3))  # a client alone is an open book
    assert known.proven(HELD) == pytest.approx(3 / 4)


def test_an_opened_count_of_zero_rules_out_those_alone_that_named_the_row():
    known = Elimination(3, 3)
    known.observe([0, 1], np.array([[False, True, False], [False, False, False]]), np.zeros(3, bool))
    assert known.ruled_out.tolist() == [[False, True, False], [False] * 3, [False] * 3]
    known.observe([0, 1], np.array([[False, True, False], [False, True, False]]), of_rows(np.array([1]), 3))
    assert known.proven(HELD) == pytest.approx(1 / 4)


def test_nothing_is_proven_that_is_not_true():
    """Rounds of drawn clients with random answers, on drawn sets: the attack makes no mistake, and learns with time."""
    drawn = np.random.default_rng(5)
    held = drawn.random((30, 40)) < 0.1
    watch, unions = LeakWatch(held, 60), Elimination(30, 40)
    for _ in range(60):
        who = drawn.choice(30, 6, replace=False)
        union = np.flatnonzero(held[who].any(axis=0))
        yes = drawn.random((30, len(union))) < np.where(held[:, union], 0.9, 0.1)
        named = {int(client): union[yes[client]] for client in who}
        unions.observe(who.tolist(), np.ones((6, 40), bool), of_rows(union, 40))
        counts = np.any([of_rows(mine, 40) & held[client] for client, mine in named.items()], axis=0)
        watch.observe(who.tolist(), union, named, np.flatnonzero(counts))
    assert unions.ruled_out.any()
    assert not (unions.ruled_out & held).any()
    curve = watch.curve()
    assert curve.rounds[-1] == 60
    for shares in (curve.unions, curve.sums, curve.both):
        assert list(shares) == sorted(shares)
    assert curve.both[-1] >= max(curve.unions[-1], curve.sums[-1]) > 0.05


def test_clients_that_always_come_together_are_not_told_apart_by_their_unions():
    """The same rounds prove more and more of clients that are drawn anew."""
    shares = {}
    for cohorts in (False, True):
        drawn = np.random.default_rng(6)
        held = drawn.random((24, 60)) < 0.1
        watch = LeakWatch(held, 100)
        groups = drawn.permutation(24).reshape(4, 6)
        for _ in range(100):
            who = groups[drawn.integers(4)] if cohorts else drawn.choice(24, 6, replace=False)
            union = np.flatnonzero(held[who].any(axis=0))
            watch.observe(who.tolist(), union, dict.fromkeys(who.tolist(), union), union)
        shares[cohorts] = watch.curve().both[-1]
    assert shares[False] > 0.5
    assert shares[True] == 0.0


def test_the_last_round_is_a_point_of_the_curve():
    assert max(points_of(150)) == 150
    assert points_of(1) == {1}
    assert len(points_of(1000)) <= 12

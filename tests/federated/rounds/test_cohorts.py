"""Who comes together, whoever is there."""

from __future__ import annotations

import math
import random
from itertools import chain

import pytest

from contracts.config.federated import Federated
from federated.privacy.index_policy import POLICIES
from federated.privacy.privacy_cost import RARELY, clients_that_hide, single_holder_seen
from federated.rounds.cohorts import Cohorts, of_rounds, whole_groups
from federated.secure_aggregation.fixed_point import FixedPoint

COHORTS = Cohorts(population=50, count=5, seed=3, least=6, most=20)


def test_all_are_in_one_cohort_each_and_always_in_the_same():
    whole = COHORTS.whole
    assert sorted(chain(*whole)) == list(range(50))
    assert {len(cohort) for cohort in whole} == {10}
    assert COHORTS.there(range(50)) == whole == Cohorts(50, 5, 3, 6, 20).there(range(50))
    assert Cohorts(50, 5, 4, 6, 20).whole != whole


def test_who_is_missing_changes_its_own_cohort_alone():
    missing = COHORTS.whole[2][0]
    there = COHORTS.there(set(range(50)) - {missing})
    assert [mine == theirs for mine, theirs in zip(there, COHORTS.whole, strict=True)] == [
        True,
        True,
        False,
        True,
        True,
    ]
    assert set(COHORTS.whole[2]) - set(there[2]) == {missing}


@pytest.mark.parametrize("left", [5, 1])
def test_cohorts_of_which_too_few_are_left_come_with_the_next(left):
    first, second = COHORTS.whole[:2]
    there = COHORTS.there([*first[:left], *second, *COHORTS.whole[4][:left]])
    assert there == [sorted([*first[:left], *second, *COHORTS.whole[4][:left]])]


def test_none_is_larger_than_the_words_have_room_for():
    few = [client for cohort in COHORTS.whole for client in cohort[:5]]
    groups = Cohorts(50, 5, 3, 6, 8).there(few)
    assert sorted(chain(*groups)) == sorted(few)
    assert max(map(len, groups)) <= 8


def test_nobody_is_no_cohort():
    assert COHORTS.there([]) == []


@pytest.mark.parametrize("least", [3, 5, 48])
def test_groups_are_of_at_least_a_rounds_clients_and_fewer_than_twice_as_many(least):
    for population in range(least, 12 * least):
        whole = Cohorts(population, whole_groups(population, least, 10**6), 1, 1, 10**6).whole
        assert least <= min(map(len, whole)) <= max(map(len, whole)) < 2 * least
        assert sum(map(len, whole)) == population


def test_no_group_is_larger_than_there_is_room_for():
    for population in range(1, 400):
        whole = Cohorts(population, whole_groups(population, 48, 60), 1, 1, 60).whole
        assert max(map(len, whole)) <= 60


@pytest.mark.parametrize("level", ["cpp2", "cpp3", "cpp4", "cpp5"])
def test_by_default_less_than_one_row_in_a_hundred_is_tied_to_its_only_holder_in_every_population(level):
    """That has as many clients as it takes (37 under cpp2), with all there, or some missing, or a fifth of a phase late
    (federated.enough)."""
    default, policy = Federated(), POLICIES[level]
    most, fewest = FixedPoint(default.clip).most_clients(default.max_samples), clients_that_hide(policy)
    assert fewest is not None
    assert fewest <= default.clients * default.enough
    drawn = random.Random(2)
    for population in range(default.clients, 700):
        cohorts = of_rounds(population, default.clients, policy, 1, most, default.min_clients)
        for there in (range(population), drawn.sample(range(population), max(fewest, population * 9 // 10))):
            smallest = min(map(len, cohorts.there(list(there))))
            assert single_holder_seen(policy, 1, smallest - 1) < RARELY
        late = math.ceil(default.enough * min(map(len, cohorts.whole)))
        assert single_holder_seen(policy, 1, late - 1) < RARELY

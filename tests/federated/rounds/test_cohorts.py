"""Who comes together, whoever is there."""

from __future__ import annotations

from itertools import chain

import pytest

from federated.rounds.cohorts import Cohorts

COHORTS = Cohorts(population=50, size=12, seed=3, least=6, most=20)


def test_all_are_in_one_cohort_each_and_always_in_the_same():
    whole = COHORTS.whole
    assert sorted(chain(*whole)) == list(range(50))
    assert {len(cohort) for cohort in whole} == {10}
    assert COHORTS.there(range(50)) == whole == Cohorts(50, 12, 3, 6, 20).there(range(50))
    assert Cohorts(50, 12, 4, 6, 20).whole != whole


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
    groups = Cohorts(50, 12, 3, 6, 8).there(few)
    assert sorted(chain(*groups)) == sorted(few)
    assert max(map(len, groups)) <= 8


def test_nobody_is_no_cohort():
    assert COHORTS.there([]) == []

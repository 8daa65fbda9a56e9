"""Who has yet to hear that an attempt is void, and who of them believes it."""

from __future__ import annotations

from federated.rounds.voids import Voids

EVERYBODY = list(range(12))


def noted():
    voids = Voids()
    voids.note(10, range(9))
    return voids


def test_those_of_an_attempt_come_together_or_not_at_all():
    voids = noted()
    assert voids.together(EVERYBODY) == list(range(9))
    assert voids.together(range(7)) == list(range(7))  # more than two thirds of nine
    assert voids.together(range(6)) == []
    assert voids.spare(range(9)) == 2
    assert Voids().together(EVERYBODY) == []
    assert Voids().spare(EVERYBODY) == len(EVERYBODY)


def test_all_are_told_of_what_one_of_them_has_to_hear():
    voids = noted()
    voids.note(11, range(7))  # without two of the nine
    assert voids.told(EVERYBODY) == [10, 11]
    assert voids.told(range(7)) == [11]
    assert voids.together(EVERYBODY) == list(range(9))
    assert voids.spare(range(9)) == 2


def test_who_took_part_in_a_sum_owes_nothing_and_still_counts_for_the_others():
    voids = noted()
    voids.heard(range(8))
    assert voids.owed == {8: 10}
    assert voids.together(EVERYBODY) == list(range(9))
    assert voids.together([8]) == []
    voids.heard([8])
    assert not voids.uploads


def test_a_server_that_is_started_again_knows_what_is_void_and_who_owes_hearing():
    voids, again = noted(), Voids()
    voids.note(11, range(7))
    voids.heard([0])
    again.restore(voids.state())
    assert again == voids
    again.restore(Voids().state())
    assert again == Voids()
    again.restore({})  # of a server that kept none
    assert again == Voids()


def test_who_would_not_believe_it_stays_away_and_the_others_come():
    voids = Voids()
    voids.note(10, range(4))
    voids.note(11, [6, 7, 8])
    assert voids.together([0, 1, 2, 3, 6, 7]) == [0, 1, 2, 3]

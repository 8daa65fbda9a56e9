"""Everybody signs for the same uploads of the same roster, or nothing is opened."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.errors import ProtocolError
from federated.secure_aggregation.identity import Identity
from federated.secure_aggregation.neighbour_graph import graph_seed, ring
from federated.secure_aggregation.roster_consistency import (
    HASH_BYTES,
    among,
    announcement_hash,
    finished_bits,
    quorum,
    require_agreed,
    require_finished_signed,
    require_roster,
    roster_context,
    sign_finished,
)
from federated.secure_aggregation.round_secrets import Instance

IDENTITIES = [Identity.draw(number) for number in range(12)]
PUBLISHED = [identity.public() for identity in IDENTITIES]
ROSTER = np.arange(0, 12, dtype=np.int32)
BITS = finished_bits(ROSTER, range(10))


def signatures(signers, bits=BITS, context=b"round 1"):
    signed = [sign_finished(IDENTITIES[number], "update", bits, context) for number in signers]
    return np.array([np.frombuffer(signature, np.uint8) for signature in signed]).reshape(len(signed), 64)


def agreed(signers, given):
    require_agreed(PUBLISHED, "update", BITS, b"round 1", ROSTER, signers, given)


@given(st.sets(st.integers(0, 200), min_size=1), st.data())
def test_bits_say_who_is_in_the_sum(numbers, data):
    roster = np.array(sorted(numbers), dtype=np.int32)
    finished = data.draw(st.sets(st.sampled_from(sorted(numbers))))
    assert among(roster, finished_bits(roster, finished)) == finished


@pytest.mark.parametrize("roster", range(1, 60))
def test_two_quorums_share_more_than_a_third_of_the_roster(roster):
    assert quorum(roster) <= roster
    assert 2 * quorum(roster) - roster > roster / 3


def test_a_quorum_of_good_signatures_is_enough():
    signers = list(range(quorum(12)))
    agreed(signers, signatures(signers))


@pytest.mark.parametrize(("signers", "signed_by", "reason"), [
    (list(range(8)), list(range(8)), "8 of 12 clients signed"),
    ([0, *range(8)], [0, *range(8)], "not each of another client"),
    ([*range(8), 11], [*range(8), 11], "not each of another client"),
    (list(range(9)), [*range(8), 9], "not signed by client 8"),
])
def test_too_few_signatures_or_those_of_others_are_refused(signers, signed_by, reason):
    with pytest.raises(ProtocolError, match=reason):
        agreed(signers, signatures(signed_by))


def test_a_signature_holds_for_one_sum_of_one_round():
    signed = signatures([3])[0].tobytes()
    require_finished_signed(PUBLISHED, "update", BITS, b"round 1", 3, signed)
    others: tuple[tuple[Instance, np.ndarray, bytes, int], ...] = (
        ("union", BITS, b"round 1", 3), ("update", BITS ^ 1, b"round 1", 3), ("update", BITS, b"round 2", 3),
        ("update", BITS, b"round 1", 4),
    )
    for instance, bits, context, signer in others:
        with pytest.raises(ProtocolError, match="not signed by"):
            require_finished_signed(PUBLISHED, instance, bits, context, signer, signed)


def test_neighbours_are_those_of_the_roster():
    peers = ring(ROSTER.tolist(), 4, graph_seed(b"round"))[5]
    require_roster(ROSTER, 12, 5, peers, 4, b"round")
    for roster, me, told in (
        (ROSTER[::-1], 5, peers), (ROSTER, 12, peers), (np.append(ROSTER, 12), 5, peers), (ROSTER, 5, peers[1:]),
        (ROSTER, 5, [*peers[1:], peers[1]]),
    ):
        with pytest.raises(ProtocolError, match="refused"):
            require_roster(roster.astype(np.int32), 12, me, told, 4, b"round")


def test_keys_are_bound_to_the_plan_the_roster_and_what_each_announced():
    hashes = np.frombuffer(b"".join(announcement_hash(b"%d" % n) for n in ROSTER), np.uint8).reshape(-1, HASH_BYTES)
    contexts = {
        roster_context(b"round 1", b"plan", ROSTER, hashes), roster_context(b"round 2", b"plan", ROSTER, hashes),
        roster_context(b"round 1", b"other", ROSTER, hashes), roster_context(b"round 1", b"plan", ROSTER + 1, hashes),
        roster_context(b"round 1", b"plan", ROSTER, hashes ^ 1),
    }
    assert len(contexts) == 5

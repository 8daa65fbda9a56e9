"""Shares reach the neighbour they were cut for, and enough of them open the seed."""

from __future__ import annotations

import pytest

from federated.secure_aggregation.round_secrets import SHARED, Announcement, RoundSecrets
from federated.secure_aggregation.secret_sharing import combine
from federated.secure_aggregation.share_exchange import BOX_BYTES, NO_SHARES, deal, receive, share_of

SECRETS = [RoundSecrets.draw() for _ in range(4)]
ANNOUNCED = {number: Announcement(secrets.announcement()) for number, secrets in enumerate(SECRETS)}
PEERS = {number: ANNOUNCED[number] for number in (1, 2, 3)}
BOXES = deal(SECRETS[0], 0, PEERS, 2, b"round 1")


def received(number, box, context=b"round 1", sender=0):
    return receive(SECRETS[number], number, ANNOUNCED, {sender: box}, context)[sender]


@pytest.mark.parametrize(("instance", "kind"), SHARED)
def test_two_of_three_neighbours_open_each_seed(instance, kind):
    shares = {number: share_of(received(number, BOXES[number]), instance, kind) for number in (1, 2, 3)}
    for chosen in ((1, 2), (2, 3), (1, 3)):
        assert combine({number: shares[number] for number in chosen}, 2) == SECRETS[0].shared(instance, kind)


def test_a_box_is_for_one_neighbour_from_one_sender_in_one_round():
    assert {len(box) for box in BOXES.values()} == {BOX_BYTES}
    for number, box, context, sender in (
        (2, BOXES[1], b"round 1", 0), (1, BOXES[1], b"round 2", 0), (1, BOXES[1], b"round 1", 3),
        (1, BOXES[1][:-1] + bytes([BOXES[1][-1] ^ 1]), b"round 1", 0),
    ):
        assert received(number, box, context, sender) == NO_SHARES

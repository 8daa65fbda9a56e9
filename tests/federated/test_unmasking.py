"""What a client refuses to reveal."""

from __future__ import annotations

import pytest

from contracts.errors import ProtocolError
from federated.share_exchange import SHARES_BYTES, share_of
from federated.unmasking import reveal

PEERS = list(range(6))
HELD = {peer: bytes(range(SHARES_BYTES)) for peer in PEERS}


def test_self_masks_of_survivors_and_keys_of_the_lost():
    shares = reveal("update", [0, 1, 2, 3], [4], PEERS, HELD, 6)
    assert shares == [share_of(HELD[0], "update", "self")] * 4 + [share_of(HELD[4], "update", "mask")]


@pytest.mark.parametrize(("survivors", "lost", "reason"), [
    ([0, 1, 2, 3], [3], "both secrets of client 3"),
    ([0, 1, 2], [3, 4], "only 3 of 6"),
    ([0, 1, 2, 3, 9], [], "client 9"),
])
def test_a_request_that_would_uncover_somebody_is_refused(survivors, lost, reason):
    with pytest.raises(ProtocolError, match=reason):
        reveal("union", survivors, lost, PEERS, HELD, 6)

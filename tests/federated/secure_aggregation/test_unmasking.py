"""What a client refuses to reveal."""

from __future__ import annotations

import numpy as np
import pytest

from contracts.errors import ProtocolError
from federated.secure_aggregation.share_exchange import SHARES_BYTES, share_of
from federated.secure_aggregation.unmasking import SecureSum, parted, reveal
from tests.federated.small_rounds import plan

PEERS = list(range(6))
HELD = {peer: bytes(range(SHARES_BYTES)) for peer in PEERS}


def test_self_masks_of_survivors_and_keys_of_the_lost():
    shares = reveal("update", *parted(PEERS[:5], {0, 1, 2, 3, 99}, 6), HELD)
    assert shares == [share_of(HELD[0], "update", "self")] * 4 + [share_of(HELD[4], "update", "mask")]


@pytest.mark.parametrize("masked_with", [[0, 1, 2, 3, 4], [0] * 9 + [1, 2, 3, 4]])
def test_a_sum_with_too_few_neighbours_in_it_is_refused(masked_with):
    with pytest.raises(ProtocolError, match="only 3 of 6"):
        parted(masked_with, {0, 1, 2, 77, 78}, 6)


def test_a_sum_refuses_an_upload_of_another_shape():
    of = plan("union", "all")
    layout = of.update_layout(np.arange(of.space))
    secure = SecureSum(instance="update", base=layout, context=b"", announcements={}, graph={}, dealt={})
    with pytest.raises(ProtocolError, match="client 1 sent"):
        secure.accept(1, layout, np.zeros(3, dtype=np.uint32))

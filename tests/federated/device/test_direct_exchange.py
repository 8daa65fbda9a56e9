"""Messages handed over instead of sent: the same sums, one client made a number, and refusals that are raised."""

from __future__ import annotations

import numpy as np
import pytest

from contracts.errors import ProtocolError
from federated.device.direct_exchange import DirectExchange
from federated.protocol.messages import ROUND, Message
from federated.protocol.round_server import RoundServer
from tests.federated.local_exchange import LocalExchange
from tests.federated.small_rounds import CLIENTS, DENSE, SPACE, WIDTH, clients, plan, run


def test_a_round_opens_what_it_does_elsewhere(tmp_path):
    of = plan("union", "cpp5")
    tables = np.random.default_rng(0).normal(size=(SPACE, WIDTH)).astype(np.float32)

    here = clients(of, tmp_path / "one")
    server = RoundServer(of, 1, DirectExchange(here.__getitem__), tables, np.zeros(DENSE, dtype=np.float32))
    opened, expected = server.run(here), run(of, LocalExchange(clients(of, tmp_path / "other")))
    assert (opened.rows == expected.rows).all()
    assert (opened.dense == expected.dense).all()
    assert len(opened.finished) == CLIENTS


def test_a_client_is_made_once_and_remembers(tmp_path):
    of = plan("union", "cpp5")
    made: list[int] = []

    def client_of(number):
        made.append(number)
        return clients(of, tmp_path)[100]

    exchange = DirectExchange(client_of)
    keys: dict[int, Message] = {0: {ROUND: np.array(1), "clients": np.array(9, np.int32),
                                     "run": np.zeros(32, np.uint8)}}
    assert set(dict(exchange("keys", keys))[0]) == {"announcement", "signer", "signature", "signed_at"}
    with pytest.raises(ProtocolError, match="has done it"):
        list(exchange("keys", keys))
    assert made == [0]

"""Whom a server takes into a round: clients that sign for themselves, each once."""

from __future__ import annotations

import numpy as np
import pytest

from federated.protocol.client_masks import SIGNED_AT, announced_context, round_context
from federated.protocol.messages import text
from federated.secure_aggregation.identity import ANNOUNCEMENT
from federated.secure_aggregation.round_secrets import RoundSecrets
from tests.federated.local_exchange import IDENTITIES, PUBLISHED, LocalExchange
from tests.federated.meddling import Meddling
from tests.federated.small_rounds import CLIENTS, clients, plan, run


def stranger(reply):
    """Keys of somebody else under the client's name."""
    return {**reply, "announcement": text(RoundSecrets.draw().announcement())}


def of_another(reply):
    """A client signs well, and says that it is another."""
    return {**reply, "signer": np.int32(7).reshape(())}


def of_nobody(reply):
    return {**reply, "signer": np.int32(len(PUBLISHED)).reshape(())}


def without_keys(reply):
    """Well signed, and a public key of small order: whoever agrees on a mask with it fails."""
    announced = reply["announcement"].copy()
    announced[32:64] = 0
    signature = IDENTITIES[4].sign(ANNOUNCEMENT, announced.tobytes(), announced_context(
        plan("union", "cpp5"), round_context(1, bytes(32)), int(reply[SIGNED_AT])))
    return {**reply, "announcement": announced, "signature": text(signature)}


@pytest.mark.parametrize("change", [stranger, of_another, of_nobody, without_keys])
def test_a_client_that_does_not_sign_for_itself_is_lost(tmp_path, change):
    of = plan("union", "cpp5")
    found = run(of, Meddling(clients(of, tmp_path), "keys", 104, change))
    assert found.lost["keys"] == [104]
    assert len(found.finished) == CLIENTS - 1


def test_one_identity_takes_part_once(tmp_path):
    of = plan("union", "cpp5")
    made = clients(of, tmp_path)
    made[105].masks.identity = made[104].masks.identity
    assert run(of, LocalExchange(made)).lost["keys"] == [105]

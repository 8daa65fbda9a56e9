"""When a sum is opened, and when the round is abandoned instead."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from contracts.errors import RoundAbandoned
from federated.protocol.messages import ROUND
from tests.federated.local_exchange import LocalExchange
from tests.federated.meddling import Lying, Meddling
from tests.federated.small_rounds import CLIENTS, DENSE, clients, plaintext, plan, run


@pytest.mark.parametrize("instance", ["union", "update"])
@pytest.mark.parametrize("liars", [{101}, {101, 104, 109}])
def test_false_shares_of_some_change_nothing(tmp_path, instance, liars):
    """Each owner has committed to its seed: what some neighbours reveal is told apart from what others do."""
    of = plan("union", "cpp5", neighbours=13)

    class Liars(LocalExchange):
        def replies(self, phase, messages):
            lied = liars if phase == f"open_{instance}" else set()
            return {client: {"shares": reply["shares"] ^ 1} if client in lied else reply
                    for client, reply in super().replies(phase, messages).items()}

    exchange = Liars(clients(of, tmp_path), {"train": {106}})
    found = run(of, exchange)
    rows, common = plaintext(of, exchange, set(exchange.clients) - {106})
    assert (found.rows == of.fixed.decode(rows[:, :-1])).all()
    assert (found.dense == of.fixed.decode(common[:DENSE])).all()


def test_boxes_that_do_not_open_abandon_the_round_and_name_who_sealed_them(tmp_path):
    """One client's boxes were enough to make all its neighbours refuse, whatever the next attempt."""
    of = plan("union", "cpp5")
    exchange = Meddling(clients(of, tmp_path), "shares", 101, lambda reply: {"boxes": reply["boxes"] ^ 1})
    with pytest.raises(RoundAbandoned, match="secret of client 101") as abandoned:
        run(of, exchange)
    assert abandoned.value.accused == (101,)
    assert not exchange.refusals


def test_one_box_that_does_not_open_costs_nothing(tmp_path):
    of = plan("union", "cpp5")

    def one(reply):
        boxes = reply["boxes"].copy()
        boxes[0] ^= 1
        return {"boxes": boxes}

    assert len(run(of, Meddling(clients(of, tmp_path), "shares", 101, one)).finished) == CLIENTS


TOLD = itertools.count()


def at_odds(message):
    """Every other client is told of another sum."""
    finished = np.unpackbits(message["finished"])
    if next(TOLD) % 2:
        finished[CLIENTS - 1] = 0
    return {**message, "finished": np.packbits(finished)}


def one_many_times(message):
    """A single signature stands for all."""
    return {name: np.repeat(message[name][:1], len(message[name]), axis=0) for name in ("signers", "signatures")} | {
        ROUND: message[ROUND]}


def few(message):
    return {**message, "signers": message["signers"][:9], "signatures": message["signatures"][:9]}


def false(message):
    """Names enough clients, a third of which signed for another sum."""
    signatures = message["signatures"].copy()
    signatures[::3] ^= 1
    return {**message, "signatures": signatures}


@pytest.mark.parametrize("instance", ["union", "update"])
@pytest.mark.parametrize(("phase", "change", "reason"), [
    ("agree", at_odds, "clients are left"), ("open", one_many_times, "each of another client"),
    ("open", few, "9 of 14 clients signed"), ("open", false, "is not signed by"),
])
def test_a_sum_that_clients_do_not_agree_on_is_not_opened(tmp_path, instance, phase, change, reason):
    """Else a server could have both secrets of a client: its self mask from some neighbours, its keys from others."""
    exchange = Lying(clients(plan("union", "cpp5", neighbours=13), tmp_path), f"{phase}_{instance}", change)
    with pytest.raises(RoundAbandoned) as abandoned:
        run(plan("union", "cpp5", neighbours=13), exchange)
    assert reason in str(abandoned.value) + " ".join(exchange.refusals)
    assert not [sent for sent in exchange.sent if sent[0] == f"open_{instance}"]

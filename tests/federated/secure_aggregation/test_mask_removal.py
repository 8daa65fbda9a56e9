"""Masks come off while shares still come: as soon as enough have, in whatever order, and the sum is the same."""

from __future__ import annotations

import random

import pytest

from contracts.errors import RoundAbandoned
from federated.secure_aggregation import mask_removal, secret_sharing
from tests.federated.local_exchange import LocalExchange
from tests.federated.small_rounds import CLIENTS, DENSE, clients, plaintext, plan, run


class Shuffled(LocalExchange):
    """Replies come in another order each time; `changed` may change what one client reveals."""

    def __init__(self, made, deaths=None, seed=0, changed=lambda client, reply: reply):
        super().__init__(made, deaths)
        self.drawn, self.changed = random.Random(seed), changed

    def __call__(self, phase, messages):
        replies = list(self.replies(phase, messages).items())
        self.drawn.shuffle(replies)
        return [(client, self.changed(client, reply) if phase.startswith("open") else reply)
                for client, reply in replies]


def require_plaintext(of, exchange, found):
    rows, common = plaintext(of, exchange, {number for kind, number, *_ in exchange.sent if kind == "train"})
    assert (found.rows == of.fixed.decode(rows[:, :-1])).all()
    assert (found.dense == of.fixed.decode(common[:DENSE])).all()


@pytest.mark.parametrize(("masking", "policy"), [("union", "cpp5"), ("per_row", "cpp2")])
@pytest.mark.parametrize("seed", range(3))
def test_the_sum_is_the_same_in_whatever_order_shares_come(tmp_path, masking, policy, seed):
    of = plan(masking, policy)
    exchange = Shuffled(clients(of, tmp_path), {"union": {101}, "train": {105}, "open_update": {110}}, seed)
    require_plaintext(of, exchange, run(of, exchange))


@pytest.mark.parametrize("seed", range(3))
def test_false_shares_that_come_first_are_told_apart_when_all_have_come(tmp_path, seed):
    def changed(client, reply):
        return {"shares": reply["shares"] ^ 1} if client in {100, 107} else reply

    of = plan("union", "cpp5", neighbours=13)
    exchange = Shuffled(clients(of, tmp_path), {"train": {106}}, seed, changed)
    require_plaintext(of, exchange, run(of, exchange))


def test_secrets_open_before_the_last_client_has_replied(tmp_path, monkeypatch):
    """All 14 are each other's neighbours, 7 shares open a secret: with the eighth reply all are open, and the other
    six cost nothing more."""
    of, opened = plan("union", "all", neighbours=13), list[int]()
    combined, asked = secret_sharing.combine, list[int]()

    class Counting(LocalExchange):
        def __call__(self, phase, messages):
            for client, reply in self.replies(phase, messages).items():
                yield client, reply
                if phase == "open_update":
                    opened.append(len(asked))

    def counted(shares, threshold):
        asked.append(threshold)
        return combined(shares, threshold)

    monkeypatch.setattr(mask_removal.secret_sharing, "combine", counted)
    exchange = Counting(clients(of, tmp_path))
    found = run(of, exchange)
    assert opened[5] == 0
    assert opened[7] == opened[-1] == len(asked) == CLIENTS
    require_plaintext(of, exchange, found)


def test_below_the_threshold_nothing_is_opened_and_no_owner_is_accused(tmp_path):
    of = plan("union", "all", neighbours=13)
    with pytest.raises(RoundAbandoned, match="5 shares of a seed are left and 7 are needed") as abandoned:
        run(of, LocalExchange(clients(of, tmp_path), {"open_update": set(range(106, 114))}))
    assert abandoned.value.accused == ()

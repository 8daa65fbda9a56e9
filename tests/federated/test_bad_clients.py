"""Clients and servers that do what they should not: each is refused, and the round goes on or is abandoned."""

from __future__ import annotations

import numpy as np
import pytest

from contracts.errors import ConfigError, ProtocolError, RoundAbandoned
from federated.local_update import LocalUpdate
from federated.messages import ROUND
from federated.unmasking import SecureSum
from tests.federated.local_exchange import LocalExchange
from tests.federated.test_secure_round import CLIENTS, clients, plaintext, plan, run


class Meddling(LocalExchange):
    """Changes one client's reply of one phase."""

    def __init__(self, made, phase, client, change):
        super().__init__(made)
        self.phase, self.client, self.change = phase, client, change

    def __call__(self, phase, messages):
        replies = super().__call__(phase, messages)
        if phase == self.phase and self.client in replies:
            changed = self.change(dict(replies[self.client]))
            replies = {**replies, self.client: changed}
        return replies


def longer(reply):
    return {"words": np.append(reply["words"], np.zeros(4, dtype=np.uint32))}


def of_floats(reply):
    return {"words": np.full(reply["words"].shape, np.nan, dtype=np.float32)}


@pytest.mark.parametrize("change", [longer, of_floats, lambda reply: {}])
def test_rows_that_were_not_declared_or_words_that_are_none_lose_the_client(tmp_path, change):
    of = plan("per_row", "cpp2")
    exchange = Meddling(clients(of, tmp_path), "train", 104, change)
    found = run(of, exchange)
    assert found.lost["train"] == [104]
    rows, _ = plaintext(of, exchange, set(exchange.clients) - {104})
    assert (found.rows == of.fixed.decode(rows[:, :-1])).all()


def test_a_client_whose_training_diverges_sends_nothing(tmp_path):
    of = plan("union", "cpp5")
    made = clients(of, tmp_path)
    honest = made[105].trainer.train

    def diverged(*arguments):
        update = honest(*arguments)
        return LocalUpdate(update.rows * np.nan, update.row_samples, update.dense, update.kept, update.held, 0.0)

    made[105].trainer.train = diverged
    exchange = LocalExchange(made)
    assert run(of, exchange).lost["train"] == [105]
    assert "NaN" in exchange.refusals[0]


def test_false_shares_are_noticed_and_the_round_is_abandoned(tmp_path):
    of = plan("union", "cpp5")
    exchange = Meddling(clients(of, tmp_path), "open_update", 101, lambda reply: {"shares": reply["shares"] ^ 1})
    with pytest.raises(RoundAbandoned, match="false shares"):
        run(of, exchange)


def test_an_answer_given_twice_or_for_a_past_round_is_refused(tmp_path):
    of = plan("union", "cpp5")
    exchange = LocalExchange(clients(of, tmp_path))
    run(of, exchange, number=3)
    client, memory = exchange.clients[100], exchange.memory[100]
    for number, phase in ((3, "open_update"), (3, "keys"), (2, "keys")):
        with pytest.raises(ProtocolError, match="refused"):
            client.handle(phase, {ROUND: np.int64(number).reshape(()), "clients": np.int32(9).reshape(())}, memory)


def test_a_second_story_about_the_survivors_gets_nothing(tmp_path):
    of = plan("union", "cpp5")
    exchange = LocalExchange(clients(of, tmp_path))
    run(of, exchange)
    _, number, message, _ = next(sent for sent in exchange.sent if sent[0] == "open_update")
    changed = {**message, "lost": message["survivors"][:1], "survivors": message["survivors"][1:]}
    with pytest.raises(ProtocolError, match="has done it"):
        exchange.clients[number].handle("open_update", changed, exchange.memory[number])


def test_a_round_of_too_few_clients_is_refused_by_every_client(tmp_path):
    of = plan("union", "cpp5", least_clients=5)
    exchange = LocalExchange(clients(of, tmp_path, count=4))
    with pytest.raises(RoundAbandoned):
        run(of, exchange)
    assert len(exchange.refusals) == 4
    assert "5 are the least" in exchange.refusals[0]


@pytest.mark.parametrize("phase", ["union", "choose", "train", "open_union", "open_update", "shares"])
def test_a_phase_out_of_order_is_refused(tmp_path, phase):
    of = plan("per_row", "cpp1")
    client = clients(of, tmp_path, count=1)[100]
    with pytest.raises(ProtocolError):
        client.handle(phase, {ROUND: np.int64(1).reshape(())}, {})


def test_a_sum_refuses_an_upload_of_another_shape():
    of = plan("union", "all")
    layout = of.update_layout(np.arange(of.space))
    secure = SecureSum("update", layout, b"", {}, {}, {})
    with pytest.raises(ProtocolError, match="client 1 sent"):
        secure.accept(1, layout, np.zeros(3, dtype=np.uint32))


def test_masking_one_vector_needs_one_set_of_rows():
    with pytest.raises(ConfigError, match="per_row"):
        plan("union", "cpp2")
    assert CLIENTS > 3

"""What clients are sent to train from is bound into their masks, and no update is read alone."""

from __future__ import annotations

import numpy as np
import pytest

from contracts.errors import RoundAbandoned
from federated.protocol import round_server
from federated.protocol.local_update import update_words
from federated.protocol.round_server import RoundServer
from tests.federated.local_exchange import LocalExchange, fixed_trainer
from tests.federated.small_rounds import SPACE, WIDTH, clients, plaintext, plan, run


def test_a_sum_of_clients_that_trained_from_other_models_does_not_open(tmp_path, monkeypatch):
    """Else a server could send all but one client a model without gradients, and read that one's update."""
    of = plan("union", "cpp5", neighbours=13)

    class TwoModels(LocalExchange):
        def replies(self, phase, messages):
            if phase == "train":
                messages = {client: message if client == 104 else {**message, "dense": message["dense"] + 1}
                            for client, message in messages.items()}
            return super().replies(phase, messages)

    with pytest.raises(RoundAbandoned, match="no sum of 14 clients"):
        run(of, TwoModels(clients(of, tmp_path / "refused")))
    monkeypatch.setattr(round_server, "require_plausible", lambda *given: None)  # a server that looks all the same
    exchange = TwoModels(clients(of, tmp_path / "read"))
    found = run(of, exchange)
    rows, _ = plaintext(of, exchange, set(exchange.clients))
    assert (found.rows != of.fixed.decode(rows[:, :-1])).mean() > 0.9


def test_masked_words_are_uniform_and_hold_no_plaintext(tmp_path):
    """Chi-square over the 256 values of the bytes of all masked uploads: within 6 standard deviations of its mean."""
    of = plan("per_row", "cpp2", dense=3000)
    made = clients(of, tmp_path)
    for client in made.values():
        fixed_trainer(client).dense = 3000
    exchange = LocalExchange(made)
    server = RoundServer(of, 1, exchange, np.zeros((SPACE, WIDTH), np.float32), np.zeros(3000, np.float32))
    server.run(exchange.clients)
    uploads = [reply["words"] for phase, _, _, reply in exchange.sent if phase == "train"]
    counts = np.bincount(np.concatenate([u.view(np.uint8) for u in uploads]), minlength=256)
    expected = counts.sum() / 256
    assert abs(((counts - expected) ** 2 / expected).sum() - 255) < 6 * np.sqrt(2 * 255)
    for phase, number, _, reply in exchange.sent:
        if phase == "union":
            assert (reply["words"] == 0).mean() < 0.1  # in the clear four of five rows, which are not held, are 0
        if phase == "train":
            client = exchange.clients[number]
            places = client.places(exchange.memory[number])
            succinct = np.isin(places, np.concatenate([of.public_places, client.trainer.held()]))
            words = update_words(of, of.update_layout(places), succinct, fixed_trainer(client).last)
            assert (reply["words"] == words).mean() < 0.01

"""Who is lost in a phase: clients that are silent, and clients whose reply does not hold what it should."""

from __future__ import annotations

import numpy as np
import pytest

from federated.protocol.local_update import LocalUpdate
from tests.federated.local_exchange import LocalExchange
from tests.federated.meddling import Meddling
from tests.federated.small_rounds import clients, plaintext, plan, run


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


def test_a_client_whose_training_diverges_sends_nothing(tmp_path, monkeypatch):
    of = plan("union", "cpp5")
    made = clients(of, tmp_path)
    honest = made[105].trainer.train

    def diverged(*arguments):
        update = honest(*arguments)
        return LocalUpdate(update.rows * np.nan, update.row_samples, update.dense, update.kept, update.held, 0.0)

    monkeypatch.setattr(made[105].trainer, "train", diverged)
    exchange = LocalExchange(made)
    assert run(of, exchange).lost["train"] == [105]
    assert "NaN" in exchange.refusals[0]

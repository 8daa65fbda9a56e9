"""Who is lost in a phase: clients that are silent, and clients whose reply does not hold what it should."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

from federated.protocol.local_update import LocalUpdate
from federated.protocol.messages import PHASES
from federated.protocol.round_phases import RoundPhases
from tests.federated.local_exchange import LocalExchange
from tests.federated.meddling import Meddling
from tests.federated.small_rounds import CLIENTS, DENSE, clients, plaintext, plan, run


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


def test_replies_are_handled_as_they_come_and_a_late_client_holds_up_none(tmp_path, monkeypatch):
    """When a client replies, those before it are checked and in the sum already, in every phase."""
    of, handled = plan("union", "cpp5"), list[int]()
    asked, added = RoundPhases.ask, dict[str, list[int]]()

    class Late(LocalExchange):
        def __call__(self, phase, messages):
            replies = self.replies(phase, messages)
            handled.clear()
            for came, client in enumerate(reversed(replies)):
                assert len(handled) == came
                yield client, replies[client]
            added[phase] = list(handled)

    def noted(self, phase, messages, check):
        def checked(client, reply):
            made = check(client, reply)
            handled.append(client)
            return made

        return asked(self, phase, messages, checked)

    monkeypatch.setattr(RoundPhases, "ask", noted)
    exchange = Late(clients(of, tmp_path))
    found = run(of, exchange)
    assert set(added) == set(PHASES)
    assert added["train"] == sorted(exchange.clients, reverse=True)
    rows, common = plaintext(of, exchange, set(exchange.clients))
    assert (found.rows == of.fixed.decode(rows[:, :-1])).all()
    assert (found.dense == of.fixed.decode(common[:DENSE])).all()


def test_of_uploads_nothing_is_kept_but_their_sum(tmp_path):
    """Else a round of a thousand would hold a thousand models at once."""
    of, words = plan("union", "cpp5"), list[weakref.ref[object]]()

    class Watched(LocalExchange):
        def __call__(self, phase, messages):
            for client in messages:
                reply = {name: value.copy() for name, value in
                         self.replies(phase, {client: messages[client]})[client].items()}
                self.sent.clear()
                if phase in ("union", "train"):
                    assert [there for there in words[:-1] if there() is not None] == []
                    words.append(weakref.ref(reply["words"]))
                yield client, reply

    assert len(run(of, Watched(clients(of, tmp_path))).finished) == CLIENTS
    assert len(words) == 2 * CLIENTS

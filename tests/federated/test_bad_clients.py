"""Clients and servers that do what they should not: each is refused, and the round goes on or is abandoned."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from contracts.errors import ConfigError, ProtocolError, RoundAbandoned
from federated.protocol.client_masks import round_context
from federated.protocol.local_update import LocalUpdate
from federated.protocol.messages import PHASES, ROUND, Phase, text
from federated.protocol.round_client import RoundClient
from federated.secure_aggregation.identity import ANNOUNCEMENT, Identity
from federated.secure_aggregation.round_secrets import RoundSecrets
from federated.secure_aggregation.unmasking import SecureSum
from tests.federated.local_exchange import IDENTITIES, PUBLISHED, FixedTrainer, LocalExchange
from tests.federated.small_rounds import CLIENTS, clients, plaintext, plan, run


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
    given: tuple[tuple[int, Phase], ...] = ((3, "open_update"), (3, "keys"), (2, "keys"))
    for number, phase in given:
        with pytest.raises(ProtocolError, match="refused"):
            client.handle(phase, {ROUND: np.array(number), "clients": np.array(9, np.int32)}, memory)


def test_a_second_story_about_the_survivors_gets_nothing(tmp_path):
    of = plan("union", "cpp5")
    exchange = LocalExchange(clients(of, tmp_path))
    run(of, exchange)
    _, number, message, _ = next(sent for sent in exchange.sent if sent[0] == "open_update")
    for phase in ("agree_update", "open_update"):
        with pytest.raises(ProtocolError, match="has done it"):
            exchange.clients[number].handle(phase, message, exchange.memory[number])


def stranger(reply):
    """Keys of somebody else under the client's name."""
    return {**reply, "announcement": text(RoundSecrets.draw().announcement())}


def of_another(reply):
    """A client signs well, and says that it is another."""
    return {**reply, "signer": np.int32(7).reshape(())}


def of_nobody(reply):
    return {**reply, "signer": np.int32(len(PUBLISHED)).reshape(())}


@pytest.mark.parametrize("change", [stranger, of_another, of_nobody])
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


class Lying(LocalExchange):
    """A server that changes what it tells clients in one phase."""

    def __init__(self, made, phase, change):
        super().__init__(made)
        self.phase, self.change = phase, change

    def __call__(self, phase, messages):
        if phase == self.phase:
            messages = {client: self.change(dict(message)) for client, message in messages.items()}
        return super().__call__(phase, messages)


def own_keys(message):
    """In the place of a neighbour's."""
    return {**message, "announcements": with_first(message["announcements"], RoundSecrets.draw().announcement())}


def with_first(rows, first):
    changed = rows.copy()
    changed[0] = text(first)
    return changed


def own_client(message):
    """Signed well, with a key that is not the neighbour's."""
    secrets = RoundSecrets.draw().announcement()
    ghost = Identity.draw(int(message["signers"][0]))
    signatures = message["signatures"].copy()
    signatures[0] = text(ghost.sign(ANNOUNCEMENT, secrets, round_context(1)))
    return {**message, "announcements": with_first(message["announcements"], secrets), "signatures": signatures}


def of_another_round(message):
    """What a neighbour announced before."""
    announced = RoundSecrets.draw().announcement()
    signature = IDENTITIES[int(message["signers"][0])].sign(ANNOUNCEMENT, announced, round_context(0))
    return {**message, "announcements": with_first(message["announcements"], announced),
            "signatures": with_first(message["signatures"], signature)}


def twice(message):
    return {**message, **{name: np.repeat(message[name][:1], len(message[name]), axis=0)
                          for name in ("announcements", "signers", "signatures")}}


def of_own_choice(message):
    """Neighbours that the server would like a client to have."""
    return {**message, **{name: message[name][:-1] for name in ("announcements", "signers", "signatures", "peers")}}


def in_disorder(message):
    return {**message, "roster": message["roster"][::-1].copy()}


@pytest.mark.parametrize("change", [own_keys, own_client, of_another_round, twice, of_own_choice, in_disorder])
def test_a_server_that_poses_as_a_neighbour_is_refused_by_every_client(tmp_path, change):
    of = plan("union", "cpp5")
    exchange = Lying(clients(of, tmp_path), "shares", change)
    with pytest.raises(RoundAbandoned):
        run(of, exchange)
    assert len(exchange.refusals) == CLIENTS
    assert all("not signed by" in said or "the roster" in said for said in exchange.refusals)


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


def of_other_lives(message):
    """What a neighbour announced in another run at the same time."""
    return {**message, "announced": message["announced"] ^ 1}


def with_a_phantom(message):
    """A client that the list does not have."""
    return {**message, "roster": np.append(message["roster"][:-1], np.int32(len(PUBLISHED)))}


@pytest.mark.parametrize(("change", "reason"), [(of_other_lives, "other announcements"), (with_a_phantom, "roster")])
def test_a_roster_of_others_than_those_that_announced_is_refused(tmp_path, change, reason):
    exchange = Lying(clients(plan("union", "cpp5"), tmp_path), "shares", change)
    with pytest.raises(RoundAbandoned):
        run(plan("union", "cpp5"), exchange)
    assert all(reason in said for said in exchange.refusals)


def test_a_sum_of_clients_that_trained_from_other_models_does_not_open(tmp_path):
    """Else a server could send all but one client a model without gradients, and read that one's update."""
    of = plan("union", "cpp5", neighbours=13)

    class TwoModels(LocalExchange):
        def __call__(self, phase, messages):
            if phase == "train":
                messages = {client: message if client == 104 else {**message, "dense": message["dense"] + 1}
                            for client, message in messages.items()}
            return super().__call__(phase, messages)

    exchange = TwoModels(clients(of, tmp_path))
    found = run(of, exchange)
    rows, _ = plaintext(of, exchange, set(exchange.clients))
    assert (found.rows != of.fixed.decode(rows[:, :-1])).mean() > 0.9


@pytest.mark.parametrize("kept", [9, 13])
def test_neighbours_in_a_sum_that_nothing_was_masked_with_are_noticed(tmp_path, kept):
    """Else the uploads of some could be opened alone, while all sign that everybody is in the sum."""
    of = plan("union", "cpp5", neighbours=13)

    class Parted(LocalExchange):
        def __call__(self, phase, messages):
            if phase == "train":
                messages = {client: {**message, "peers": message["peers"][:kept]}
                            for client, message in messages.items()}
            return super().__call__(phase, messages)

    exchange = Parted(clients(of, tmp_path))
    if kept == 13:
        assert len(run(of, exchange).finished) == CLIENTS
        return
    with pytest.raises(RoundAbandoned):
        run(of, exchange)
    assert all("nothing was masked with them" in said for said in exchange.refusals)


def test_a_sum_of_fewer_clients_than_agreed_is_refused(tmp_path):
    of = plan("union", "all", min_clients=14)
    exchange = LocalExchange(clients(of, tmp_path), {"train": {103}})
    with pytest.raises(RoundAbandoned):
        run(of, exchange)
    careless = LocalExchange(clients(of, tmp_path / "again"), {"train": {103}})
    with pytest.raises(RoundAbandoned):
        run(replace(of, min_clients=3), careless)  # a server that goes on all the same
    assert len(careless.refusals) == CLIENTS - 1
    assert all("of 13 clients" in refusal and "14 are the least" in refusal for refusal in careless.refusals)


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


def test_a_client_that_is_said_to_be_lost_and_asked_all_the_same_refuses(tmp_path):
    of = plan("union", "cpp5")
    exchange = LocalExchange(clients(of, tmp_path))
    run(of, exchange)
    phase, number, message, _ = next(sent for sent in exchange.sent if sent[0] == "agree_update")
    memory = {name: value for name, value in exchange.memory[number].items() if name != f"done {phase}"}
    with pytest.raises(ProtocolError, match="lack this client's upload"):
        exchange.clients[number].handle(phase, {**message, "finished": message["finished"] * 0}, memory)


def test_a_client_without_an_identity_takes_no_part():
    of = plan("union", "cpp5")
    with pytest.raises(ProtocolError, match="no identity"):
        RoundClient(of, FixedTrainer(np.empty(0, int), 3, 11, 1), None)


def test_a_round_of_too_few_clients_is_refused_by_every_client(tmp_path):
    of = plan("union", "cpp5", min_clients=5)
    exchange = LocalExchange(clients(of, tmp_path, count=4))
    with pytest.raises(RoundAbandoned):
        run(of, exchange)
    assert len(exchange.refusals) == 4
    assert "5 are the least" in exchange.refusals[0]


@pytest.mark.parametrize("phase", [phase for phase in PHASES if phase != "keys"])
def test_a_phase_out_of_order_is_refused(tmp_path, phase):
    of = plan("per_row", "cpp1")
    client = clients(of, tmp_path, count=1)[100]
    with pytest.raises(ProtocolError):
        client.handle(phase, {ROUND: np.array(1)}, {})


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

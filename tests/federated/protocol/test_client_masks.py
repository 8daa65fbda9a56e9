"""Servers that do what they should not: every client refuses them."""

from __future__ import annotations

import time

import numpy as np
import pytest

from contracts.errors import ProtocolError, RoundAbandoned
from federated.protocol.client_masks import FRESH, SIGNED_AT, announced_context, require_announced, round_context
from federated.protocol.messages import ROUND, text
from federated.protocol.round_client import RoundClient
from federated.protocol.round_server import RoundServer
from federated.secure_aggregation.identity import ANNOUNCEMENT, Identity
from federated.secure_aggregation.round_secrets import RoundSecrets
from tests.federated.local_exchange import IDENTITIES, PUBLISHED, FixedTrainer, LocalExchange
from tests.federated.meddling import Lying, with_first
from tests.federated.small_rounds import CLIENTS, DENSE, SPACE, WIDTH, clients, plan, run

OF, SAME = plan("union", "cpp5"), bytes(32)


def own_keys(message):
    """In the place of a neighbour's."""
    return {**message, "announcements": with_first(message["announcements"], RoundSecrets.draw().announcement())}


def own_client(message):
    """Signed well, with a key that is not the neighbour's."""
    secrets = RoundSecrets.draw().announcement()
    ghost = Identity.draw(int(message["signers"][0]))
    signatures = message["signatures"].copy()
    now = int(message[SIGNED_AT][0])
    signatures[0] = text(ghost.sign(ANNOUNCEMENT, secrets, announced_context(OF, round_context(1, SAME), now)))
    return {**message, "announcements": with_first(message["announcements"], secrets), "signatures": signatures}


def of_another_round(message):
    """What a neighbour announced before."""
    announced, now = RoundSecrets.draw().announcement(), int(message[SIGNED_AT][0])
    signature = IDENTITIES[int(message["signers"][0])].sign(
        ANNOUNCEMENT, announced, announced_context(OF, round_context(0, SAME), now))
    return {**message, "announcements": with_first(message["announcements"], announced),
            "signatures": with_first(message["signatures"], signature)}


def twice(message):
    return {**message, **{name: np.repeat(message[name][:1], len(message[name]), axis=0)
                          for name in ("announcements", "signers", "signatures", SIGNED_AT)}}


def of_own_choice(message):
    """Neighbours that the server would like a client to have."""
    return {**message, **{name: message[name][:-1]
                          for name in ("announcements", "signers", "signatures", "peers", SIGNED_AT)}}


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


@pytest.mark.parametrize("kept", [9, 13])
def test_neighbours_in_a_sum_that_nothing_was_masked_with_are_noticed(tmp_path, kept):
    """Else the uploads of some could be opened alone, while all sign that everybody is in the sum."""
    of = plan("union", "cpp5", neighbours=13)

    class Parted(LocalExchange):
        def replies(self, phase, messages):
            if phase == "train":
                messages = {client: {**message, "peers": message["peers"][:kept]}
                            for client, message in messages.items()}
            return super().replies(phase, messages)

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
    server = RoundServer(of, 1, careless, np.zeros((SPACE, WIDTH), np.float32), np.zeros(DENSE, np.float32))
    server.phases.min_clients = 3  # a server that goes on all the same
    with pytest.raises(RoundAbandoned):
        server.run(careless.clients)
    assert len(careless.refusals) == CLIENTS - 1
    assert all("of 13 clients" in refusal and "14 are the least" in refusal for refusal in careless.refusals)


def test_a_client_that_is_said_to_be_lost_and_asked_all_the_same_refuses(tmp_path):
    of = plan("union", "cpp5")
    exchange = LocalExchange(clients(of, tmp_path), {"open_update": set(range(100, 114))})
    with pytest.raises(RoundAbandoned):
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


def recorded(announcement, of_run):
    """A server, or a node in a client's seat, that tells what the client announced in another run."""
    class Replaying(LocalExchange):
        def replies(self, phase, messages):
            replies = super().replies(phase, messages)
            return {**replies, 103: announcement} if phase == "keys" else replies

    return Replaying(of_run)


@pytest.mark.parametrize("name", [bytes(32), b"another run, or start of it.    "])
def test_what_a_client_announced_in_another_run_takes_nobodys_seat(tmp_path, name):
    """Round for round the numbers of a run that is started again are the same."""
    of = plan("union", "cpp5")
    first = LocalExchange(clients(of, tmp_path))
    run(of, first)
    said = next(reply for phase, number, _, reply in first.sent if (phase, number) == ("keys", 103))
    found = run(of, recorded(said, clients(of, tmp_path / "again")), name=name)
    assert found.lost["keys"] == ([] if name == bytes(32) else [103])


def at_keys(announce, handle):
    def handled(phase, message, memory):
        if phase != "keys":
            return handle(phase, message, memory)
        memory = {ROUND: message[ROUND]}
        return announce(message, memory), memory

    return handled


@pytest.mark.parametrize("days", [-2, 2])
def test_announcements_of_another_day_are_refused_by_server_and_neighbours(tmp_path, days, monkeypatch):
    of = plan("union", "cpp5")
    made = clients(of, tmp_path)
    honest, real = made[103].masks.announce, time.time

    def announce(message, memory):
        with monkeypatch.context() as patched:
            patched.setattr(time, "time", lambda: real() + days * FRESH)
            return honest(message, memory)

    monkeypatch.setattr(made[103], "handle", at_keys(announce, made[103].handle))
    assert run(of, LocalExchange(made)).lost["keys"] == [103]
    with pytest.raises(ProtocolError, match="from now"):
        require_announced(of, b"", 3, b"", int(time.time()) + days * FRESH, b"")


def test_a_roster_that_was_long_in_the_making_is_refused(tmp_path, monkeypatch):
    """Who sees all announcements may draw its own again and again until it likes the neighbours."""
    of = plan("union", "cpp5", timeout=100.0)
    real = time.time

    def late(message):
        monkeypatch.setattr(time, "time", lambda: real() + 300)
        return message

    exchange = Lying(clients(of, tmp_path), "shares", late)
    with pytest.raises(RoundAbandoned):
        run(of, exchange)
    assert all("200 s are the most" in said for said in exchange.refusals)


def test_what_a_round_no_longer_needs_is_forgotten(tmp_path):
    of = plan("per_row", "cpp2")
    exchange = LocalExchange(clients(of, tmp_path), {"agree_update": {104}})
    run(of, exchange)
    assert "seeds" not in exchange.memory[104]
    assert "shares" in exchange.memory[104]
    assert not {"seeds", "shares"} & exchange.memory[103].keys()

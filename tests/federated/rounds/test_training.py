"""FedLaAvg through real rounds: the server's mean is the mean of what the clients remember, whoever was lost."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

from contracts.bundle.bundle import load_weights
from contracts.errors import RoundAbandoned
from federated.averaging.server_optimizer import ServerOptimizer
from federated.clients.availability import alternating
from federated.protocol.gradient_store import NO_RUN, GradientStore
from federated.protocol.plan import ATTEMPTS
from federated.protocol.round_client import RoundClient
from federated.protocol.round_server import OpenedRound
from federated.rounds import holder_counts
from federated.rounds.run_folder import POPULATION, RUN_NAME
from federated.rounds.training import FederatedRun
from tests.federated.local_exchange import IDENTITIES, FixedTrainer, LocalExchange
from tests.federated.meddling import Meddling
from tests.federated.small_rounds import DENSE, SPACE, WIDTH, plan

CLIENTS = 12


def made(of, folder):
    """Clients of different numbers of samples; each holds nine private rows."""
    clients = {}
    for number in range(CLIENTS):
        held = np.sort(np.random.default_rng(number).choice(of.private_places, 9, replace=False))
        trainer = FixedTrainer(held, WIDTH, DENSE, number, samples=3 + number)
        (folder / str(number)).mkdir(parents=True, exist_ok=True)
        store = GradientStore(folder / str(number) / "gradient.safetensors", DENSE, WIDTH)
        clients[number] = RoundClient(of, trainer, None, store, IDENTITIES[number] if of.identities else None)
    return clients


class Losing(LocalExchange):
    """Loses clients of a round anew in each round: {round of the model: {phase: clients}}."""

    def __init__(self, clients, losses):
        super().__init__(clients)
        self.losses = losses

    def replies(self, phase, messages):
        number = int(next(iter(messages.values()))["round"][()]) // ATTEMPTS
        replies = super().replies(phase, messages)
        return {client: reply for client, reply in replies.items()
                if client not in self.losses.get(number, {}).get(phase, set())}


def started(of, exchange, folder):
    run = FederatedRun(
        plan=of, exchange=exchange, population=CLIENTS, folder=folder / "run", seed=1,
        rows=np.zeros((SPACE, WIDTH), np.float32), dense=np.zeros(DENSE, np.float32),
        available=alternating([n % 2 for n in range(CLIENTS)], 4),
    )
    run.count_population()
    return run


@pytest.mark.parametrize(("masking", "policy"), [("union", "cpp5"), ("none", "cpp5"), ("union", "all")])
@pytest.mark.parametrize("lost", [{}, {2: {"train": {1, 3}}, 5: {"open_update": {2}, "train": {4}}, 6: {"union": {0}}}])
def test_the_running_mean_is_that_of_what_the_clients_remember(tmp_path, masking, policy, lost):
    of = plan(masking, policy, rule="latest", clients=4, clip=4.0)
    exchange = Losing(made(of, tmp_path), lost)
    run = started(of, exchange, tmp_path)
    run.run(9, lambda rows, dense: {}, 99, lambda entry: None)
    dense, rows = np.zeros(DENSE), np.zeros((SPACE, WIDTH))
    for number, client in exchange.clients.items():
        assert client.gradients is not None
        memory = client.gradients.read((tmp_path / "run" / RUN_NAME).read_bytes() if of.masked else NO_RUN)
        memory.settle(int(run.latest.accepted[number]))
        dense += memory.committed.dense
        rows += memory.committed.at(np.arange(SPACE))
    state = run.latest.state()
    assert state["mean_dense"] == pytest.approx(dense / CLIENTS, abs=1e-9)
    assert state["mean_rows"] == pytest.approx(rows / run.latest.holders[:, None], abs=1e-9)
    assert np.abs(dense).max() > 0.1


def test_a_row_is_divided_by_its_holders_and_in_the_full_model_by_all(tmp_path):
    for policy in ("cpp5", "all"):
        of = plan("union", policy, rule="latest", clients=4)
        run = started(of, LocalExchange(made(of, tmp_path / policy)), tmp_path)
        held = [client.trainer.held() for client in run.exchange.clients.values()]
        holders = np.bincount(np.concatenate(held), minlength=SPACE)[of.private_places]
        expected = np.maximum(holders, 1) if policy == "cpp5" else np.full(len(holders), CLIENTS)
        assert (run.latest.holders[of.private_places] == expected).all()
        assert run.mean_samples == pytest.approx(np.mean([3 + n for n in range(CLIENTS)]))


def test_the_mean_is_of_those_who_were_there_to_be_counted(tmp_path):
    """Half of the published keys are of nobody who ever comes."""
    of, half = plan("union", "cpp5", rule="latest", clients=6, clip=4.0), list(range(CLIENTS // 2))
    moved = []
    for population, folder in ((CLIENTS, "published"), (len(half), "alone")):
        run = FederatedRun(
            plan=of,
            exchange=LocalExchange(made(of, tmp_path / folder)),
            population=population,
            folder=tmp_path / folder / "run",
            seed=1,
            rows=np.zeros((SPACE, WIDTH), np.float32),
            dense=np.zeros(DENSE, np.float32),
            available=lambda number: half,
        )
        run.count_population(half)
        run.run(3, lambda rows, dense: {}, 99, lambda entry: None)
        assert run.latest is not None
        moved.append((run.dense, run.rows, run.latest.holders))
    assert (moved[0][2] == moved[1][2]).all()
    assert moved[0][0] == pytest.approx(moved[1][0])
    assert moved[0][1] == pytest.approx(moved[1][1])
    assert np.abs(moved[1][0]).max() > 0


def test_a_server_started_again_ends_where_one_in_a_piece_does(tmp_path):
    of = plan("union", "cpp5", rule="latest", clients=4)
    ends = []
    for name, stops in (("whole", (7,)), ("halves", (3, 7))):
        for stop in stops:
            run = started(of, LocalExchange(made(of, tmp_path / name)), tmp_path / name)
            run.run(stop, lambda rows, dense: {}, 99, lambda entry: None)
        ends.append((run.rows, run.dense, len(run.history)))
    assert (ends[0][0] == ends[1][0]).all()
    assert (ends[0][1] == ends[1][1]).all()
    assert ends[0][2] == ends[1][2] == 7


def test_who_deals_shares_that_do_not_open_costs_one_attempt_and_is_asked_no_more(tmp_path):
    of = plan("union", "cpp5", clients=CLIENTS)
    sound = {n: RoundClient(of, c.trainer, None, identity=c.masks.identity)
             for n, c in made(replace(of, rule="latest"), tmp_path).items()}
    exchange = Meddling(sound, "shares", 4, lambda reply: {"boxes": reply["boxes"] ^ 1})
    run = FederatedRun(plan=of, exchange=exchange, population=CLIENTS, folder=tmp_path / "run", seed=1,
                       rows=np.zeros((SPACE, WIDTH), np.float32), dense=np.zeros(DENSE, np.float32))
    run.run(3, lambda rows, dense: {}, 99, lambda entry: None)
    assert [entry.abandoned for entry in run.history] == [1, 0, 0]
    assert [entry.clients for entry in run.history] == [CLIENTS - 1] * 3


def test_who_sends_words_that_are_no_update_spoils_no_model_and_is_asked_no_more(tmp_path):
    """Nobody sees whose words they are: it is found by leaving some out, while rounds go on."""
    of, liar = plan("union", "cpp5", clients=CLIENTS), 4
    sound = {n: RoundClient(of, c.trainer, None, identity=c.masks.identity)
             for n, c in made(replace(of, rule="latest"), tmp_path).items()}
    exchange = Meddling(sound, "train", liar, lambda reply: {"words": reply["words"] ^ np.uint32(0x5A5A5A5A)})
    opened: list[OpenedRound] = []
    run = FederatedRun(plan=of, exchange=exchange, population=CLIENTS, folder=tmp_path / "run", seed=1,
                       rows=np.zeros((SPACE, WIDTH), np.float32), dense=np.zeros(DENSE, np.float32), cohorts=True,
                       on_opened=opened.append)
    run.run(6, lambda rows, dense: {}, 99, lambda entry: None)
    assert run.suspicion.found == {liar}
    assert run.history[0].abandoned
    assert not any(liar in each.finished for each in opened)
    assert opened[-1].finished == [n for n in range(CLIENTS) if n != liar]
    assert run.history[-1].left_out == (liar,)
    assert all(liar in entry.left_out for entry in run.history)
    for each in opened:
        assert each.samples == sum(3 + n for n in each.finished)


def test_under_noise_an_optimiser_of_the_server_moves_all_rows_that_a_round_named(tmp_path):
    """Counts are not sent: what lies in their place is noise, of either sign."""
    of = plan("union", "scope", rule="plain", clients=CLIENTS, noise=100.0, noise_norm=1e6)
    sound = {n: RoundClient(of, c.trainer, None, identity=c.masks.identity)
             for n, c in made(plan("union", "scope", rule="latest"), tmp_path).items()}
    opened: list[OpenedRound] = []
    run = FederatedRun(plan=of, exchange=LocalExchange(sound), population=CLIENTS, folder=tmp_path / "run", seed=1,
                       rows=np.zeros((SPACE, WIDTH), np.float32), dense=np.zeros(DENSE, np.float32),
                       optimizer=ServerOptimizer("adam", 0.1), on_opened=opened.append)
    run.run(1, lambda rows, dense: {}, 99, lambda entry: None)
    named = opened[0].places[0]
    assert 0 < len(named) < SPACE
    assert (run.rows.any(axis=1) == np.isin(np.arange(SPACE), named)).all()


def test_a_round_waits_while_too_few_clients_are_there(tmp_path):
    of = plan("union", "cpp5", rule="holders", clients=4)
    exchange = LocalExchange(made(replace(of, rule="latest"), tmp_path))
    exchange.clients = {
        n: RoundClient(of, c.trainer, None, identity=c.masks.identity) for n, c in exchange.clients.items()}
    run = FederatedRun(
        plan=of, exchange=exchange, population=CLIENTS,
        folder=tmp_path / "run", seed=1, rows=np.zeros((SPACE, WIDTH), np.float32), dense=np.zeros(DENSE, np.float32),
        available=lambda slot: list(range(CLIENTS)) if slot % 3 == 0 else [0],
    )
    run.run(3, lambda rows, dense: {}, 99, lambda entry: None)
    assert [entry.round + entry.waited for entry in run.history] == [3, 6, 9]
    run.available = lambda slot: [0]
    with pytest.raises(RoundAbandoned, match="could be reached"):
        run.run(4, lambda rows, dense: {}, 99, lambda entry: None)


class Replaying(LocalExchange):
    """A server that sends one model again, and says that it lacks one client's upload."""

    victim = 3

    def replies(self, phase, messages):
        if phase == "train" and self.victim in messages:
            self.dense = getattr(self, "dense", next(iter(messages.values()))["dense"])
            told = {client: {**message, "dense": self.dense} for client, message in messages.items()}
            told[self.victim]["accepted"] = np.zeros_like(told[self.victim]["accepted"])
            messages = told
        return super().replies(phase, messages)


def test_a_server_that_denies_one_clients_upload_does_not_get_its_gradient(tmp_path):
    """With all others' differences near zero the sum of the second round was that client's gradient."""
    of = plan("union", "all", rule="latest", clients=CLIENTS)
    exchange = Replaying(made(of, tmp_path))
    run = started(of, exchange, tmp_path)
    run.available = None
    with suppress(RoundAbandoned):  # with the victim, a sum is of another model than the server takes its masks off for
        run.run(2, lambda rows, dense: {}, 99, lambda entry: None)
    assert run.history[0].lost == {}
    assert sum("helped to open its upload" in refusal for refusal in exchange.refusals) > 0
    assert [client for phase, client, *_ in exchange.sent if phase == "train"].count(exchange.victim) == 1


def test_a_run_of_another_name_begins_anew_for_all_its_clients(tmp_path):
    of = plan("union", "all", rule="latest", clients=CLIENTS)
    for folder in ("first", "second"):
        exchange = LocalExchange(made(of, tmp_path))
        run = started(of, exchange, tmp_path / folder)
        run.available = None
        run.run(1, lambda rows, dense: {}, 99, lambda entry: None)
        assert run.history[0].clients == CLIENTS
        assert not exchange.refusals


def test_who_sends_nonsense_under_fedlaavg_spoils_no_mean_and_is_asked_no_more(tmp_path):
    """All that helped to open a spoilt sum have to hear of it together, the liar among them: it stopped the run."""
    of, liar = plan("union", "cpp5", rule="latest", clients=CLIENTS, clip=4.0), 4
    exchange = Meddling(
        made(of, tmp_path), "train", liar, lambda reply: {"words": reply["words"] ^ np.uint32(0x5A5A5A5A)})
    opened: list[OpenedRound] = []
    run = started(of, exchange, tmp_path)
    run.available, run.on_opened = None, opened.append
    run.run(8, lambda rows, dense: {}, 99, lambda entry: None)
    assert run.suspicion.found == {liar}
    assert run.history[0].abandoned
    assert not any(liar in each.finished for each in opened)
    assert opened[-1].finished == [n for n in range(CLIENTS) if n != liar]
    assert set(run.voids.owed) <= {liar}
    dense, name = np.zeros(DENSE), (tmp_path / "run" / RUN_NAME).read_bytes()
    for number, client in exchange.clients.items():
        assert client.gradients is not None
        memory = client.gradients.read(name)
        memory.settle(int(run.latest.accepted[number]), voided=number == liar)
        dense += memory.committed.dense
    assert run.latest.state()["mean_dense"] == pytest.approx(dense / CLIENTS, abs=1e-9)


def test_who_sends_nonsense_before_anybody_uploads_under_fedlaavg_is_left_out_all_the_same(tmp_path):
    """Nothing is void then, and nobody has to hear of anything: any third may be left out. The run stopped."""
    of, liar = plan("union", "cpp5", rule="latest", clients=CLIENTS, clip=4.0, contributors=2), 4
    exchange = Meddling(made(of, tmp_path), "nothing yet", liar,
                        lambda reply: {"words": reply["words"] ^ np.uint32(0x5A5A5A5A)})
    run = started(of, exchange, tmp_path)
    run.available, exchange.phase = None, "union"
    run.run(6, lambda rows, dense: {}, 99, lambda entry: None)
    assert run.suspicion.found == {liar}
    assert run.history[0].abandoned
    assert not run.voids.uploads
    assert run.history[-1].clients == CLIENTS - 1
    assert run.latest.accepted[liar] == 0


@pytest.mark.slow
@pytest.mark.parametrize("attempts", [1, 2, 3])
def test_a_server_started_again_tells_of_what_was_void_to_who_has_yet_to_hear(tmp_path, attempts):
    """It ends when so many attempts of the first round were abandoned or done, each of which left somebody out."""
    of, liar = plan("union", "cpp5", rule="latest", clients=CLIENTS, clip=4.0), 4
    clients, numbers = made(of, tmp_path), set[int]()

    class Ending(Meddling):
        def replies(self, phase, messages):
            numbers.update(int(message["round"][()]) for message in messages.values())
            if len({number for number in numbers if number >= ATTEMPTS}) > attempts:
                raise KeyboardInterrupt
            return super().replies(phase, messages)

    first = started(of, Ending(clients, "train", liar, lambda reply: {"words": reply["words"] ^ np.uint32(0x5A5A5A5A)}),
                    tmp_path)
    first.available = None
    with suppress(KeyboardInterrupt):
        first.run(8, lambda rows, dense: {}, 99, lambda entry: None)
    assert first.voids.owed
    exchange = LocalExchange(clients)
    run = started(of, exchange, tmp_path)
    run.available = None
    run.run(len(first.history) + 3, lambda rows, dense: {}, 99, lambda entry: None)
    assert not exchange.refusals
    assert not run.voids.owed
    assert [entry.clients for entry in run.history[len(first.history):]] == [CLIENTS] * 3
    assert [entry.abandoned for entry in run.history[len(first.history):]] == [0] * 3
    assert min(number for number in (int(message["round"][()]) for _, _, message, _ in exchange.sent)
               if number >= ATTEMPTS) > max(first.voids.uploads)


def test_an_attempt_that_opened_nothing_is_void_for_all_that_were_in_it(tmp_path):
    """One client's false boxes abandon it after the others revealed shares; together they hear that it is void."""
    of = plan("union", "all", rule="latest", clients=CLIENTS)
    exchange = Meddling(made(of, tmp_path), "shares", 4, lambda reply: {"boxes": reply["boxes"] ^ 1})
    run = FederatedRun(plan=of, exchange=exchange, population=CLIENTS, folder=tmp_path / "run", seed=1,
                       rows=np.zeros((SPACE, WIDTH), np.float32), dense=np.zeros(DENSE, np.float32))
    exchange.phase = "nothing yet"
    run.count_population()
    exchange.phase = "shares"
    run.run(2, lambda rows, dense: {}, 99, lambda entry: None)
    assert [(entry.clients, entry.abandoned) for entry in run.history] == [(CLIENTS - 1, 1), (CLIENTS - 1, 0)]


def counted_by(of, exchange, folder, clients=None):
    run = FederatedRun(plan=of, exchange=exchange, population=CLIENTS, folder=folder, seed=1,
                       rows=np.zeros((SPACE, WIDTH), np.float32), dense=np.zeros(DENSE, np.float32))
    run.count_population(clients)
    return run, load_weights(folder / POPULATION)["holders"]


def test_who_deals_false_boxes_costs_an_attempt_of_the_count_and_is_not_counted(tmp_path):
    of = plan("union", "cpp5", rule="latest", clients=CLIENTS)
    exchange = Meddling(made(of, tmp_path), "shares", 4, lambda reply: {"boxes": reply["boxes"] ^ 1})
    run, holders = counted_by(of, exchange, tmp_path / "run")
    assert run.accused == {4}
    _, others = counted_by(of, LocalExchange(made(of, tmp_path)), tmp_path / "others",
                           [client for client in range(CLIENTS) if client != 4])
    assert holders.tolist() == others.tolist()


def test_counts_of_groups_add_up_to_the_whole(tmp_path, monkeypatch):
    of = plan("union", "cpp5", rule="latest", clients=CLIENTS)
    _, whole = counted_by(of, LocalExchange(made(of, tmp_path)), tmp_path / "whole")
    monkeypatch.setattr(holder_counts, "TOGETHER", 5)
    _, groups = counted_by(of, LocalExchange(made(of, tmp_path)), tmp_path / "groups")
    assert groups.tolist() == whole.tolist()
    assert whole.sum() == 9 * CLIENTS


@pytest.mark.parametrize(("there", "groups"), [
    (range(CLIENTS), 3),  # twelve clients in rounds of at least four: three groups, each of which comes
    ((0, 4, 7, 11), 1),  # too few of each: they come together all the same
    ((0, 1, 2, 3, 5, 6, 8), 2),  # too few of some
])
def test_clients_of_cohorts_always_come_together(tmp_path, there, groups):
    of = plan("union", "all", clients=4)
    sound = {n: RoundClient(of, c.trainer, None, identity=c.masks.identity)
             for n, c in made(replace(of, rule="latest"), tmp_path).items()}
    seen = set()
    run = FederatedRun(
        plan=of, exchange=LocalExchange(sound), population=CLIENTS, folder=tmp_path / "run", seed=1, cohorts=True,
        rows=np.zeros((SPACE, WIDTH), np.float32), dense=np.zeros(DENSE, np.float32),
        available=lambda number: list(there), on_opened=lambda opened: seen.add(tuple(opened.finished)))
    run.run(12, lambda rows, dense: {}, 99, lambda entry: None)
    assert sorted(sum(seen, ())) == list(there)
    assert len(seen) == groups
    assert min(len(each) for each in seen) >= of.min_clients


def test_a_servers_optimiser_goes_on_after_a_restart_as_if_there_had_been_none(tmp_path):
    of = plan("none", "all", rule="holders", clients=4)

    def run(folder, rounds):
        clients = {n: RoundClient(of, c.trainer, None) for n, c in made(replace(of, rule="latest"), tmp_path).items()}
        made_run = FederatedRun(
            plan=of, exchange=LocalExchange(clients), population=CLIENTS, folder=tmp_path / folder, seed=1,
            rows=np.zeros((SPACE, WIDTH), np.float32), dense=np.zeros(DENSE, np.float32),
            optimizer=ServerOptimizer("adam", rate=0.1))
        made_run.run(8, lambda rows, dense: {}, 99, lambda entry: None)
        return made_run

    run("halved", 2)
    halved, whole = run("halved", 4), run("whole", 4)
    assert (halved.rows == whole.rows).all()
    assert (halved.dense == whole.dense).all()
    assert np.abs(whole.rows).max() > 0

"""Two rounds at a time: the same model bit for bit in fewer exchanges, whoever dies or lies in whichever of the two."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from contracts.errors import FederatedError, RoundAbandoned
from federated.flower.flower_exchange import FlowerExchange
from federated.flower.in_process_grid import InProcessGrid
from federated.protocol.messages import PHASES, joined, parted_phases
from federated.protocol.round_server import OpenedRound, RoundServer
from federated.rounds.byte_count import MESSAGE_FRAMING, ByteCount, both_ways
from federated.rounds.overlap import Attempt, carried_through
from federated.rounds.training import FederatedRun
from tests.federated.flower_clients import app_of
from tests.federated.local_exchange import LocalExchange
from tests.federated.small_rounds import CLIENTS, DENSE, SPACE, WIDTH, clients, plan

BESIDE = {"choose": "keys", "train": "shares", "agree_update": "union", "open_update": "agree_union"}


class Counting(LocalExchange):
    """Keeps which phases travelled together. Of a `victim`, what is said in the `phase` of a round of the protocol from
    `since` on is changed, wherever in a message it stands."""

    def __init__(self, made, victim=None, phase="", change=lambda reply: {}, since=0):
        super().__init__(made)
        self.waves: list[tuple[str, ...]] = []
        self.victim, self.phase, self.change, self.since = victim, phase, change, since

    def replies(self, phase, messages):
        asked = {client: parted_phases(phase, message) for client, message in messages.items()}
        self.waves.append(max((tuple(parts) for parts in asked.values()), key=len))
        replies = super().replies(phase, messages)
        number = int(asked.get(self.victim, {}).get(self.phase, {"round": -1})["round"])
        if self.victim in replies and number >= max(self.since, 0):
            parts = parted_phases(phase, replies[self.victim])
            parts[self.phase] = self.change(dict(parts.get(self.phase, {})))
            replies[self.victim] = joined(phase, parts)
        return replies


def numbered(made):
    return {number - 100: client for number, client in made.items()}


def trained(of, exchange, folder, overlap, rounds=4, **further):
    opened: list[OpenedRound] = []
    run = FederatedRun(plan=of, exchange=exchange, population=CLIENTS, folder=folder, seed=1, cohorts=True,
                       rows=np.zeros((SPACE, WIDTH), np.float32), dense=np.zeros(DENSE, np.float32), overlap=overlap,
                       on_opened=opened.append, **further)
    run.run(rounds, lambda rows, dense: {}, 99, lambda entry: None)
    return run, opened


@pytest.mark.parametrize(("masking", "policy", "size", "exchanges"), [
    ("union", "cpp5", CLIENTS, 9 + 3 * 5), ("per_row", "cpp1", CLIENTS, 9 + 3 * 5),
    ("union", "all", CLIENTS, 5 + 3 * 3),
    ("union", "cpp5", 5, 9 + 3 * 5), ("union", "scope", 5, 5 + 3 * 3),  # cohorts: the next round is of other clients
])
def test_the_model_is_the_same_bit_for_bit_in_fewer_exchanges(tmp_path, masking, policy, size, exchanges):
    of = plan(masking, policy, clients=size, overlap=True)
    ends = []
    for overlap in (False, True):
        exchange = Counting(numbered(clients(of, tmp_path / str(overlap))))
        run, opened = trained(of, exchange, tmp_path / str(overlap) / "run", overlap)
        ends.append((run, [each.finished for each in opened], exchange))
        assert [entry.lost for entry in run.history] == [{}] * 4
        assert not exchange.refusals
    (plain, plain_clients, one_by_one), (run, finished, exchange) = ends
    assert (run.rows == plain.rows).all()
    assert (run.dense == plain.dense).all()
    assert np.abs(run.rows).max() > 0
    assert finished == plain_clients
    assert len(set(map(tuple, finished))) == (1 if size == CLIENTS else 2)
    assert len(one_by_one.waves) == 4 * len({phase for phase, in one_by_one.waves})
    assert len(exchange.waves) == exchanges


def nobody(number):
    raise FederatedError("too few are connected")


@pytest.mark.parametrize("there_now", [nobody, lambda number: [3]])
def test_where_too_few_are_there_in_the_middle_of_a_round_nothing_is_prepared_and_the_model_is_the_same(
    tmp_path, there_now
):
    of, ends = plan("union", "cpp5", clients=5, overlap=True), []
    for overlap in (False, True):
        exchange = Counting(numbered(clients(of, tmp_path / str(overlap))))
        run, opened = trained(of, exchange, tmp_path / str(overlap) / "run", overlap, 2,
                              available=lambda number: list(range(CLIENTS)), there_now=there_now)
        ends.append((run, [each.finished for each in opened]))
        assert exchange.waves == [(phase,) for phase in PHASES] * 2
        assert [entry.waited for entry in run.history] == [0, 0]
    (plain, plain_clients), (run, finished) = ends
    assert (run.rows == plain.rows).all()
    assert (run.dense == plain.dense).all()
    assert finished == plain_clients


def test_over_flower_the_model_and_what_each_phase_weighs_are_the_same(tmp_path):
    """To a phase is counted its payload, and of a message's framing its arrays' share."""
    of, ends = plan("union", "cpp5", overlap=True), []
    for overlap in (False, True):
        made, counted = clients(of, tmp_path / str(overlap)), ByteCount()
        grid = InProcessGrid(app_of(made), {node: node for node in range(CLIENTS)}, {})
        exchange = FlowerExchange(grid, list(range(CLIENTS)), None, counted)
        run, _ = trained(of, exchange, tmp_path / str(overlap) / "run", overlap, 3)
        ends.append((run, counted.per_phase()))
    (plain, apart), (run, together) = ends
    assert (run.rows == plain.rows).all()
    assert (run.dense == plain.dense).all()
    assert list(together) == list(apart) == list(PHASES)
    for phase in PHASES:
        assert together[phase].up == pytest.approx(apart[phase].up, abs=MESSAGE_FRAMING)
        assert together[phase].down == pytest.approx(apart[phase].down, abs=MESSAGE_FRAMING)
    assert both_ways(together) < both_ways(apart)  # less framing


def test_phases_travel_together_as_the_picture_says(tmp_path):
    of = plan("union", "cpp5", overlap=True)
    exchange = Counting(numbered(clients(of, tmp_path)))
    trained(of, exchange, tmp_path / "run", True, 2)
    alone = [(phase,) for phase in PHASES]
    assert exchange.waves == [*alone[:5], *BESIDE.items(), *alone[4:]]


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("since", [5, 10])
def test_who_says_nothing_or_nonsense_in_one_phase_is_lost_in_that_round_alone(tmp_path, phase, since):
    """The two halves of a message are taken by themselves: what is wrong with one costs nothing in the other."""
    of = plan("union", "cpp5", overlap=True)
    exchange = Counting(numbered(clients(of, tmp_path)), 3, phase, lambda reply: {"odd": np.zeros(3)}, since)
    run, opened = trained(of, exchange, tmp_path / "run", True, 3)
    first = (since == 10) + 1
    assert [entry.lost.get(phase, 0) for entry in run.history] == [int(entry.round >= first) for entry in run.history]
    assert [sum(entry.lost.values()) for entry in run.history] == [int(entry.round >= first) for entry in run.history]
    uploaded = phase in ("agree_update", "open_update")
    for entry, each in zip(run.history, opened, strict=True):
        assert (3 in each.finished) == (entry.round < first or uploaded)
        assert each.samples == 7 * len(each.finished)


@pytest.mark.slow
@pytest.mark.parametrize("phase", PHASES)
def test_who_dies_in_a_phase_is_missed_in_both_rounds_and_sums_stay_exact(tmp_path, phase):
    of = plan("union", "cpp5", overlap=True)

    class Dying(Counting):
        def replies(self, own, messages):
            self.dead |= {3} if any(phase in parted_phases(own, message) for message in messages.values()) else set()
            return super().replies(own, messages)

    exchange = Dying(numbered(clients(of, tmp_path)))
    run, opened = trained(of, exchange, tmp_path / "run", True, 3)
    assert [entry.abandoned for entry in run.history] == [0] * 3
    assert all(each.samples == 7 * len(each.finished) for each in opened)
    assert opened[-1].finished == [n for n in range(CLIENTS) if n != 3]


def test_an_attempt_that_is_abandoned_takes_with_it_what_was_prepared(tmp_path):
    """A liar is sought and found while rounds go on; nobody is prepared for while there are suspects, and no number
    comes twice."""
    of, liar = plan("union", "cpp5", overlap=True), 4
    exchange = Counting(numbered(clients(of, tmp_path)), liar, "train",
                        lambda reply: {"words": reply["words"] ^ np.uint32(0x5A5A5A5A)})
    run, opened = trained(of, exchange, tmp_path / "run", True, 7)
    assert run.suspicion.found == {liar}
    assert run.history[0].abandoned
    assert opened[-1].finished == [n for n in range(CLIENTS) if n != liar]
    asked = Counter((client, phase, int(part["round"]))
                    for own, client, message, _ in exchange.sent for phase, part in parted_phases(own, message).items())
    assert set(asked.values()) == {1}
    assert not [refusal for refusal in exchange.refusals if "this client has done it" in refusal]
    assert ("choose", "keys") in exchange.waves
    assert ("choose",) in exchange.waves


def test_what_is_wrong_with_the_prepared_round_comes_out_in_its_turn(tmp_path):
    """False boxes open nothing: the union of the round that is prepared fails, the one that trains is done."""
    of = plan("union", "cpp5", overlap=True)
    exchange = Counting(numbered(clients(of, tmp_path)), 4, "shares", lambda reply: {"boxes": reply["boxes"] ^ 1}, 10)
    run, opened = trained(of, exchange, tmp_path / "run", True, 3)
    assert [entry.abandoned for entry in run.history] == [0, 1, 0]
    assert run.accused == {4}
    assert [len(each.finished) for each in opened] == [CLIENTS, CLIENTS - 1, CLIENTS - 1]


def test_after_an_abandoned_attempt_of_a_round_nothing_is_prepared_beside_it(tmp_path):
    """Nobody is suspected: most were away for a moment."""
    of = plan("union", "cpp5", overlap=True)

    class Away(Counting):
        def replies(self, own, messages):
            away = own == "train" and sum("train" in wave for wave in self.waves) == 1
            replies = super().replies(own, messages)
            return {client: reply for client, reply in replies.items() if not away or client < 2}

    exchange = Away(numbered(clients(of, tmp_path)))
    run, _ = trained(of, exchange, tmp_path / "run", True, 4)
    assert [entry.abandoned for entry in run.history] == [0, 1, 0, 0]
    alone, later = [(phase,) for phase in PHASES], [*BESIDE.items()]
    assert exchange.waves == [
        *alone[:5], *later,  # the first round
        ("open_union",), *later[:2],  # the second, and its abandoned attempt
        *alone,  # another
        *alone[:5], *later, *alone[4:]]


def test_a_round_that_is_abandoned_forgets_the_one_beside_it(tmp_path):
    of = plan("union", "cpp5", overlap=True)
    exchange = Counting(numbered(clients(of, tmp_path)))
    everybody = list(range(CLIENTS))

    def attempt(number):
        return Attempt(RoundServer(of, number, exchange, np.zeros((SPACE, WIDTH), np.float32),
                                   np.zeros(DENSE, np.float32), run=bytes(32)), everybody)

    exchange.deaths = {"agree_update": set(everybody)}
    with pytest.raises(RoundAbandoned):
        carried_through(exchange, attempt(5), lambda: attempt(10))
    exchange.deaths, exchange.dead = {}, set()
    opened, ahead = carried_through(exchange, attempt(11), lambda: None)
    assert ahead is None
    assert opened.samples == 7 * CLIENTS

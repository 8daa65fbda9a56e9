"""The protocol over Flower's messages: the same sums, bytes as the formulas say, errors and silence both lose a
client."""

from __future__ import annotations

import numpy as np
import pytest
from flwr.app import Message, RecordDict

from contracts.errors import ProtocolError
from federated.flower.array_records import from_records, to_records
from federated.flower.flower_exchange import FlowerExchange
from federated.flower.in_process_grid import InProcessGrid
from federated.protocol.messages import ROUND
from federated.protocol.round_server import RoundServer
from federated.rounds.byte_count import ByteCount, predicted
from tests.federated.flower_clients import app_of
from tests.federated.local_exchange import LocalExchange
from tests.federated.small_rounds import CLIENTS, DENSE, SPACE, WIDTH, clients, plan, run

TABLES = np.random.default_rng(0).normal(size=(SPACE, WIDTH)).astype(np.float32)


class LateGrid(InProcessGrid):
    """Delivers one node's answer of one phase with the next phase's answers, in place of the one it gives then."""

    phase, node, kept = "", 0, None

    def pull_messages(self, message_ids):
        found = list(super().pull_messages(message_ids))
        of_node = [reply for reply in found if reply.metadata.src_node_id == self.node]
        others = [reply for reply in found if reply.metadata.src_node_id != self.node]
        if of_node and of_node[0].metadata.message_type.endswith(f".{self.phase}"):
            self.kept = of_node[0]
            return others
        if self.kept is not None:
            late, self.kept = self.kept, None
            return [*others, late]
        return found


def flower_round(of, made, lose=lambda phase, node: False, grid_of=InProcessGrid, note=lambda text: None):
    grid = grid_of(app_of(made), {node + 5000: node for node in range(CLIENTS)}, {}, lose)
    counted = ByteCount()
    exchange = FlowerExchange(grid, sorted(grid.get_node_ids()), None, counted, note)
    server = RoundServer(of, 1, exchange, TABLES, np.zeros(DENSE, dtype=np.float32))
    return server.run(range(CLIENTS)), counted


@pytest.mark.slow
@pytest.mark.parametrize(("masking", "policy"), [("per_row", "cpp1"), ("union", "cpp5"), ("none", "all")])
def test_flower_carries_the_round_unchanged(tmp_path, masking, policy):
    of = plan(masking, policy)
    found, _ = flower_round(of, clients(of, tmp_path / "one"))
    expected = run(of, LocalExchange(clients(of, tmp_path / "other")))
    assert (found.rows == expected.rows).all()
    assert (found.dense == expected.dense).all()


def test_silence_and_errors_lose_a_client(tmp_path, monkeypatch):
    of = plan("union", "cpp5")
    made = clients(of, tmp_path)
    monkeypatch.setattr(made[103].trainer, "train", lambda *arguments: 1 / 0)
    found, _ = flower_round(of, made, lambda phase, node: phase == "train" and node == 5007)
    assert found.lost["train"] == [3, 7]


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["union", "choose", "train"])
def test_an_answer_that_comes_late_loses_the_client_and_is_never_taken_for_another(tmp_path, phase):
    of = plan("union", "cpp5")
    notes: list[str] = []

    class Late(LateGrid):
        pass

    Late.phase, Late.node = phase, 5004
    found, _ = flower_round(of, clients(of, tmp_path / "one"), grid_of=Late, note=notes.append)
    expected = run(of, LocalExchange(clients(of, tmp_path / "other"), {phase: {104}}))
    assert found.lost[phase] == [4]
    assert (found.rows == expected.rows).all()
    assert (found.dense == expected.dense).all()
    assert len(found.finished) == CLIENTS - 1


class TwiceGrid(InProcessGrid):
    """Delivers every answer twice, the second time another one."""

    def pull_messages(self, message_ids):
        found = list(super().pull_messages(message_ids))
        return [*found, *map(self.other, found)]

    def other(self, reply):
        content = {name: np.zeros_like(value) for name, value in from_records(reply.content).items()}
        asked = Message(RecordDict(), reply.metadata.src_node_id, reply.metadata.message_type,
                        group_id=reply.metadata.group_id)
        return Message(to_records(content), reply_to=asked)


def test_of_two_answers_the_first_counts(tmp_path):
    of = plan("union", "cpp5")
    found, _ = flower_round(of, clients(of, tmp_path / "one"), grid_of=TwiceGrid)
    expected = run(of, LocalExchange(clients(of, tmp_path / "other")))
    assert (found.rows == expected.rows).all()
    assert (found.dense == expected.dense).all()
    assert len(found.finished) == CLIENTS


class ImpostorGrid(InProcessGrid):
    """Before its own answer, node 5003 sends one in node 5004's name."""

    def pull_messages(self, message_ids):
        found = list(super().pull_messages(message_ids))
        own = [reply for reply in found if reply.metadata.src_node_id == 5003]
        return [*map(self.posing, own), *found]

    def posing(self, reply):
        asked = Message(RecordDict(), 5004, reply.metadata.message_type, group_id=reply.metadata.group_id)
        content = {name: np.zeros_like(value) for name, value in from_records(reply.content).items()}
        return Message(to_records(content), reply_to=asked)


def test_an_answer_in_anothers_name_is_its_senders(tmp_path):
    of, notes = plan("union", "cpp5"), list[str]()
    found, _ = flower_round(of, clients(of, tmp_path), grid_of=ImpostorGrid, note=notes.append)
    assert 4 in found.finished
    assert 3 not in found.finished


def test_a_late_answer_in_place_of_the_one_asked_for_is_noted_and_left_out(tmp_path, monkeypatch):
    of = plan("union", "cpp5")
    notes: list[str] = []
    made = clients(of, tmp_path)
    grid = InProcessGrid(app_of(made), {node + 5000: node for node in range(CLIENTS)}, {})
    nodes = sorted(grid.get_node_ids())
    exchange = FlowerExchange(grid, nodes, None, ByteCount(), notes.append)
    keys: dict[str, np.ndarray] = {"round": np.array(1, np.int64), "clients": np.array(CLIENTS, np.int32),
                                   "run": np.zeros(32, np.uint8)}
    assert list(dict(exchange("keys", {0: keys}))) == [0]
    late = Message(to_records({"a": np.zeros(1)}), nodes[0], "query.keys", group_id="1 ab")
    monkeypatch.setattr(grid, "pull_messages", lambda names: [Message(to_records({"a": np.zeros(1)}), reply_to=late)])
    assert not list(exchange("shares", {0: {"round": np.array(1, np.int64)}}))
    assert "too late" in notes[0]


@pytest.mark.parametrize(("masking", "policy"), [("per_row", "cpp1"), ("union", "cpp5"), ("union", "all"),
                                                 ("none", "cpp1"), ("none", "all")])
def test_payloads_are_what_the_formulas_say(tmp_path, masking, policy):
    """Phase by phase and client by client: a byte more or less would show."""
    of = plan(masking, policy)
    exchange = LocalExchange(clients(of, tmp_path))
    found = run(of, exchange)
    for phase, number, asked, answered in exchange.sent:
        formula = predicted(
            code=of.code.size, private=len(of.private_places), union=len(found.union), rows=len(found.places[number]),
            dense=DENSE, width=WIDTH, neighbours=8, clients=CLIENTS, per_row=masking == "per_row", masked=of.masked,
            choose=not of.policy.public_rows,
        )[phase]
        up, down = (sum(array.nbytes for name, array in side.items() if name != ROUND) for side in (answered, asked))
        assert (phase, up, down) == (phase, *formula)


def test_the_wire_adds_framing_alone(tmp_path):
    of = plan("per_row", "cpp1")
    found, counted = flower_round(of, clients(of, tmp_path))
    rows = float(np.mean([len(mine) for mine in found.places.values()]))
    formula = predicted(
        code=of.code.size, private=len(of.private_places), union=len(found.union), rows=rows, dense=DENSE, width=WIDTH,
        neighbours=8, clients=CLIENTS, per_row=True,
    )
    for phase, wire in counted.per_phase().items():
        for sent, payload in zip((wire.up, wire.down), formula[phase], strict=True):
            assert payload < sent < payload + 320 + 7 * 260


def test_unaccounted_bytes_are_noticed():
    with pytest.raises(ProtocolError, match="payload of 4"):
        ByteCount().add("train", "up", {"a": np.zeros(1, np.float32)}, 5000)

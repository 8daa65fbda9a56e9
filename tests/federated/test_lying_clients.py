"""A client that sends anything at all, in any phase, over Flower's messages: the round goes on without it or is
abandoned, the server never fails, and what is opened is the sum of the uploads that it took."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, RecordDict

from contracts.errors import ProtocolError, RoundAbandoned
from federated.flower.array_records import ARRAYS, from_records
from federated.flower.flower_exchange import FlowerExchange
from federated.flower.in_process_grid import InProcessGrid
from federated.protocol.byte_count import ByteCount
from federated.protocol.local_update import update_words
from federated.protocol.messages import PHASES
from federated.protocol.plan import TAIL
from federated.protocol.round_server import RoundServer
from tests.federated.flower_clients import app_of
from tests.federated.small_rounds import DENSE, SPACE, WIDTH, clients, plan

CLIENTS, LIAR = 6, 2
Change = Callable[[dict[str, bytes], np.random.Generator], RecordDict]


def records(files: dict[str, bytes]) -> RecordDict:
    return RecordDict({ARRAYS: ArrayRecord({name: Array("", (), "numpy.ndarray", data)
                                            for name, data in files.items()})})


def of_one(change: Callable[[bytes, np.random.Generator], bytes]) -> Change:
    """Changes one array's bytes."""
    def changed(files, drawn):
        name = sorted(files)[drawn.integers(len(files))]
        return records(files | {name: change(files[name], drawn)})

    return changed


def flipped(data, drawn):
    changed = bytearray(data)
    for _ in range(drawn.integers(1, 9)):
        changed[drawn.integers(len(changed))] ^= 1 << drawn.integers(8)
    return bytes(changed)


def body_flipped(data, drawn):
    """The header stays: an array of the right type and shape that says another thing."""
    changed, start = bytearray(data), 10 + int.from_bytes(data[8:10], "little")
    for _ in range(drawn.integers(1, 9) if len(data) > start else 0):
        changed[drawn.integers(start, len(changed))] ^= 1 << drawn.integers(8)
    return bytes(changed)


def claimed(data, drawn):
    """Declares up to 2^62 words."""
    return data.replace(b"'shape': (", b"'shape': (%d, " % 2 ** drawn.integers(10, 62), 1)


CHANGES: dict[str, Change] = {
    "flipped": of_one(flipped),
    "body": of_one(body_flipped),
    "claimed": of_one(claimed),
    "cut": of_one(lambda data, drawn: data[: drawn.integers(len(data))]),
    "longer": of_one(lambda data, drawn: data + bytes(int(drawn.integers(1, 99)))),
    "archive": of_one(lambda data, drawn: b"PK\x03\x04" + data),
    "without": lambda files, drawn: records(dict(sorted(files.items())[1:])),
    "nothing": lambda files, drawn: RecordDict(),
    "swapped": lambda files, drawn: records(dict(zip(files, reversed(files.values()), strict=True))),
    "more": lambda files, drawn: records(files | {"x" * int(drawn.integers(1, 3000)): b""}),
    "padded": lambda files, drawn: RecordDict(
        {**records(files), "more": ConfigRecord({"text": "x" * int(drawn.integers(1, 4000))})}),
}


class LyingGrid(InProcessGrid):
    """What one node sends in one phase is changed on its way."""

    phase, changes, drawn = "", [CHANGES["nothing"]], np.random.default_rng(0)
    said: np.ndarray | None = None

    def pull_messages(self, message_ids):
        return [self._lied(reply) if reply.metadata.src_node_id == LIAR and reply.has_content()
                and reply.metadata.message_type.endswith(f".{self.phase}") else reply
                for reply in super().pull_messages(message_ids)]

    def _lied(self, reply):
        files = {name: array.data for name, array in reply.content.array_records[ARRAYS].items()}
        content = self.changes[0](files, self.drawn)
        if self.phase == "train":
            self.said = self._difference(from_records(reply.content)["words"], content)
        asked = Message(RecordDict(), LIAR, reply.metadata.message_type, group_id=reply.metadata.group_id)
        return Message(content, reply_to=asked)

    @staticmethod
    def _difference(words, content):
        try:
            return from_records(content)["words"] - words
        except (ProtocolError, KeyError, ValueError):
            return None


def expected(of, made, grid, finished):
    """Words that the sums must have: of those whose upload was taken, as they sent it."""
    rows, common = np.zeros((SPACE, WIDTH + 1), dtype=np.uint32), np.zeros(DENSE + TAIL, dtype=np.uint32)
    for number in finished:
        client = made[number + 100]
        places = client.places(from_records(grid.contexts[number].state, "round"))
        succinct = np.isin(places, np.concatenate([of.public_places, client.trainer.held()]))
        words = update_words(of, of.update_layout(places), succinct, client.trainer.last)
        if number == LIAR and grid.said is not None:
            words = words + grid.said
        common += words[: DENSE + TAIL]
        rows[places] += words[DENSE + TAIL :].reshape(-1, WIDTH + 1)
    return of.fixed.decode(rows[:, :-1]), of.fixed.decode(common[:DENSE])


def rounds_with_a_liar(folder, count, masking, policy):
    """Returns how many rounds were finished, of `count` in which a phase, a way to lie and its place are drawn."""
    of = plan(masking, policy, clients=CLIENTS, neighbours=4, min_clients=3)
    drawn, done, accused = np.random.default_rng(3), 0, set()
    made = clients(of, folder, CLIENTS)
    for number in range(count):
        phase, (_, change) = PHASES[number % len(PHASES)], sorted(CHANGES.items())[number // 9 % len(CHANGES)]
        grid = LyingGrid(app_of(made), {node: node for node in range(CLIENTS)}, {})
        grid.phase, grid.changes, grid.drawn = phase, [change], drawn
        exchange = FlowerExchange(grid, list(range(CLIENTS)), None, ByteCount())
        tables = np.random.default_rng(0).normal(size=(SPACE, WIDTH)).astype(np.float32)
        try:
            found = RoundServer(of, number + 1, exchange, tables, np.zeros(DENSE, np.float32)).run(range(CLIENTS))
        except RoundAbandoned as error:
            accused |= set(error.accused)
            continue
        assert set(found.finished) | {LIAR} == set(range(CLIENTS))
        done += 1
        if phase == "choose" and LIAR in found.finished:
            continue  # it named other rows than it masked, as many: its own upload is what it spoils
        rows, dense = expected(of, made, grid, found.finished)
        assert (found.rows == rows).all()
        assert (found.dense == dense).all()
    assert accused == {LIAR}
    return done


@pytest.mark.parametrize(("masking", "policy"), [("union", "cpp5"), ("per_row", "cpp2")])
def test_every_lie_in_every_phase_costs_the_liar_or_the_attempt_and_nothing_else(tmp_path, masking, policy):
    count = len(PHASES) * len(CHANGES)
    assert rounds_with_a_liar(tmp_path, count, masking, policy) > count / 2


@pytest.mark.slow
def test_a_thousand_lies(tmp_path):
    assert rounds_with_a_liar(tmp_path, 1_000, "union", "cpp5") > 500

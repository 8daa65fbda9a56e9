"""A client that sends anything at all, in any phase, over Flower's messages: the round goes on without it or is
abandoned, the server never fails, and what is opened is the sum of the uploads that it took."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, RecordDict
from flwr.clientapp import ClientApp

from contracts.errors import ProtocolError, RoundAbandoned
from federated.flower.array_records import (
    ARRAYS,
    PACKED,
    files_in,
    from_records,
    packed_in,
    record_of,
    records_of,
    to_records,
)
from federated.flower.flower_exchange import FlowerExchange
from federated.flower.in_process_grid import InProcessGrid
from federated.protocol.local_update import update_words
from federated.protocol.messages import PHASES, ROUND
from federated.protocol.plan import TAIL
from federated.protocol.round_server import RoundServer
from federated.rounds.byte_count import ByteCount
from tests.federated.flower_clients import app_of
from tests.federated.small_rounds import DENSE, SPACE, WIDTH, clients, plan

CLIENTS, LIAR, LIES = 6, 2, 5_000
Change = Callable[[dict[str, bytes], np.random.Generator], RecordDict]


def packed(change: Callable[[bytes, np.random.Generator], bytes]) -> Change:
    """Changes the bytes of the message as it is sent."""
    def changed(files, drawn):
        data = change(packed_in(records_of(files)), drawn)
        as_array = ArrayRecord({PACKED: Array("", (), "numpy.ndarray", data)})
        return RecordDict({ARRAYS: record_of(data) if drawn.integers(2) else as_array})

    return changed


def of_one(change: Callable[[bytes, np.random.Generator], bytes]) -> Change:
    """Changes one array's bytes."""
    def changed(files, drawn):
        name = sorted(files)[drawn.integers(len(files))]
        return records_of(files | {name: change(files[name], drawn)})

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
    "anywhere": packed(flipped),
    "ends early": packed(lambda data, drawn: data[: drawn.integers(len(data))]),
    "without": lambda files, drawn: records_of(dict(sorted(files.items())[1:])),
    "nothing": lambda files, drawn: RecordDict(),
    "swapped": lambda files, drawn: records_of(dict(zip(files, reversed(files.values()), strict=True))),
    "more": lambda files, drawn: records_of(files | {"x" * int(drawn.integers(1, 3000)): b""}),
    "padded": lambda files, drawn: RecordDict(
        {**records_of(files), "more": ConfigRecord({"text": "x" * int(drawn.integers(1, 4000))})}),
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
        content = self.changes[0](files_in(reply.content), self.drawn)
        if self.phase == "train":
            self.said = difference(from_records(reply.content), content)
        asked = Message(RecordDict(), LIAR, reply.metadata.message_type, group_id=reply.metadata.group_id)
        return Message(content, reply_to=asked)


def difference(said, content):
    """Words of a changed upload less those of the true one; None where there are none to take."""
    try:
        return from_records(content)["words"] - said["words"]
    except (ProtocolError, KeyError, ValueError):
        return None


def expected(of, made, memories, finished, said, named):
    """Words that the sums must have: of those whose upload was taken, as they sent it, at the rows that they `named`.
    """
    rows, common = np.zeros((SPACE, WIDTH + 1), dtype=np.uint32), np.zeros(DENSE + TAIL, dtype=np.uint32)
    for number in finished:
        client = made[number + 100]
        places = client.places(memories[number])
        succinct = np.isin(places, np.concatenate([of.public_places, client.trainer.held()]))
        words = update_words(of, of.update_layout(places), succinct, client.trainer.last)
        if number == LIAR and said is not None:
            words = words + said
        common += words[: DENSE + TAIL]
        rows[named[number]] += words[DENSE + TAIL :].reshape(-1, WIDTH + 1)
    return of.fixed.decode(rows[:, :-1]), of.fixed.decode(common[:DENSE])


def round_with_a_liar(of, made, exchange, memories, number=1):
    """Who is accused where the round is abandoned; None where it is finished and its sums are the right ones: those of
    the uploads that are in them."""
    tables = np.random.default_rng(0).normal(size=(SPACE, WIDTH)).astype(np.float32)
    try:
        found = RoundServer(of, number, exchange, tables, np.zeros(DENSE, np.float32), run=bytes(32)).run(
            range(CLIENTS))
    except RoundAbandoned as error:
        return set(error.accused)
    assert set(found.finished) | {LIAR} == set(range(CLIENTS))
    kept, said = memories()
    rows, dense = expected(of, made, kept, found.finished, said, found.places)
    assert (found.rows == rows).all()
    assert (found.dense == dense).all()
    return None


def the_plan(masking, policy):
    return plan(masking, policy, clients=CLIENTS, neighbours=4, min_clients=3)


@pytest.mark.slow
def test_a_lie_in_every_phase_costs_the_liar_or_the_attempt_and_nothing_else(tmp_path):
    """Whole rounds over Flower's messages."""
    of = the_plan("union", "cpp5")
    drawn, made, done = np.random.default_rng(3), clients(of, tmp_path, CLIENTS), 0
    for number in range(4 * len(PHASES)):
        grid = LyingGrid(app_of(made), {node: node for node in range(CLIENTS)}, {})
        grid.phase, grid.drawn = PHASES[number % len(PHASES)], drawn
        grid.changes = [CHANGES[sorted(CHANGES)[number % len(CHANGES)]]]
        exchange = FlowerExchange(grid, list(range(CLIENTS)), None, ByteCount())

        def memories(grid=grid):
            kept = {node: from_records(context.state, "round") for node, context in grid.contexts.items()
                    if "round" in context.state}
            return kept, grid.said

        accused = round_with_a_liar(of, made, exchange, memories, number + 1)
        done += accused is None
        assert not accused or accused == {LIAR}
    assert done > 2 * len(PHASES)


def digest(message):
    parts = [f"{name} {message[name].dtype.str} {message[name].shape}".encode() + message[name].tobytes()
             for name in sorted(message)]
    return hashlib.sha256(b"|".join(parts)).digest()


class Rehearsed:
    """An exchange whose clients say the same again when they are asked the same again from the start, so that rounds
    which differ by one lie cost what the lie changes. `lie`: what the liar says in `phase`, None: nothing."""

    def __init__(self, made):
        self.made, self.known = made, {}
        self.begin("", None)

    def begin(self, phase, lie):
        self.phase, self.lie = phase, lie
        self.states = dict.fromkeys(range(CLIENTS), b"")
        self.memories: dict[int, dict[str, np.ndarray]] = {number: {} for number in range(CLIENTS)}
        self.said: dict[str, dict[str, np.ndarray]] = {}

    def __call__(self, phase, messages):
        replies = {number: reply for number, message in messages.items()
                   if (reply := self._reply(phase, number, message)) is not None}
        if LIAR in replies:
            self.said[phase] = replies[LIAR]
        if phase == self.phase:
            replies.pop(LIAR, None)
            replies |= {} if self.lie is None or LIAR not in messages else {LIAR: self.lie}
        return replies.items()

    def _reply(self, phase, number, message):
        key = number, phase, self.states[number], digest(message)
        if key not in self.known:
            self.known[key] = self._handled(phase, number, message)
        reply, memory, last = self.known[key]
        if reply is not None:
            self.memories[number], self.states[number] = memory, hashlib.sha256(repr(key).encode()).digest()
            if last is not None:
                self.made[number + 100].trainer.last = last
        return reply

    def _handled(self, phase, number, message):
        client = self.made[number + 100]
        try:
            reply, memory = client.handle(phase, message, self.memories[number])
        except ProtocolError:
            return None, None, None
        return reply, memory, client.trainer.last if phase == "train" else None


class TellingGrid(InProcessGrid):
    """Its one node replies with whatever was put into `content`."""

    content = RecordDict()

    def push_messages(self, messages):
        self.asked = list(messages)
        return ["it"]

    def pull_messages(self, message_ids):
        return [Message(self.content, reply_to=asked) for asked in self.asked]


@pytest.mark.slow
@pytest.mark.parametrize(("masking", "policy"), [("union", "cpp5"), ("per_row", "cpp2")])
def test_ten_thousand_lies(tmp_path, masking, policy):
    """Every phase's message changed in every way: what Flower's exchange makes of each is nothing, or a message with
    which the round is played to its end. Lies that come to the same are played once."""
    of, drawn = the_plan(masking, policy), np.random.default_rng(3)
    accused, played = set[int](), dict[tuple[str, bytes | None], set[int] | None]()
    made = clients(of, tmp_path, CLIENTS)
    rounds = Rehearsed(made)
    assert round_with_a_liar(of, made, rounds, lambda: (rounds.memories, None)) is None
    honest = dict(rounds.said)
    grid = TellingGrid(ClientApp(), {LIAR: LIAR}, {})
    exchange = FlowerExchange(grid, [LIAR], None, ByteCount())
    for number in range(LIES):
        phase, change = PHASES[number % len(PHASES)], sorted(CHANGES)[number // len(PHASES) % len(CHANGES)]
        grid.content = CHANGES[change](files_in(to_records(honest[phase])), drawn)
        lie = dict(exchange(phase, {0: {ROUND: np.array(1)}})).get(0)
        known = phase, None if lie is None else digest(lie)
        if known in played:
            continue
        rounds.begin(phase, lie)
        words = difference(honest[phase], grid.content) if phase == "train" else None
        played[known] = round_with_a_liar(of, made, rounds, lambda words=words: (rounds.memories, words))
        accused |= played[known] or set()
    assert accused == {LIAR}
    assert sum(found is None for found in played.values()) > len(played) / 2 > LIES / 20

"""Phases over a Flower grid: one message to each node, the replies within the time limit as they come, bytes counted.

Our messages lie in Flower's as one ArrayRecord of named arrays. A node that does not reply, replies late (to another
phase or round), with an error or with something unreadable is absent from what is returned. Whose a reply is follows
from a number that no other node was told: the node id in a reply is the node's own word.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from flwr.app import Message as FlowerMessage
from flwr.common.serde import message_to_proto
from flwr.serverapp import Grid

from contracts.errors import ProtocolError
from federated.flower.array_records import from_records, to_records
from federated.flower.seats import Seats
from federated.flower.stragglers import Closing, at_once, gathered
from federated.protocol.messages import ROUND, Message, Phase, parted_phases, text
from federated.rounds.byte_count import ByteCount

TRAIN, QUERY, SETTING = "train", "query", "setting"
SECRET_BYTES = 8
Note = Callable[[str], None]
Kind = tuple[Phase, ...]  # what a client is asked in a message: two phases where rounds overlap


def message_type(phase: Phase) -> str:
    """Flower's name of a phase, which decides the handler that a ClientApp calls."""
    return f"{TRAIN if phase == 'train' else QUERY}.{phase}"


def wire_bytes(message: FlowerMessage) -> int:
    """Of the whole message as gRPC carries it: payload, array headers, metadata."""
    return message_to_proto(message).ByteSize()


class FlowerExchange:
    """`nodes`: a client's number -> the id of its node. `setting`: what messages are about, where it is not the run's
    setting; `closing`: when a phase ends without the last (None: nodes of this process, which reply at once)."""

    def __init__(
        self, grid: Grid, nodes: Sequence[int] | Seats, timeout: float | None, counted: ByteCount,
        note: Note = lambda text: None, setting: str = "", closing: Closing | None = None,
    ) -> None:
        self._closing = closing
        self._named = {SETTING: text(setting.encode())} if setting else {}
        self.grid, self.nodes, self.timeout, self.counted, self.note = grid, nodes, timeout, counted, note

    def __call__(self, phase: Phase, messages: Mapping[int, Message]) -> Iterator[tuple[int, Message]]:
        asked, taken = dict[str, tuple[int, Kind]](), set[int]()
        for reply in self._replies(self._packed(phase, messages, asked), lambda group: asked[group][1]):
            client = self._asked(phase, asked, reply)
            if client is None or client in taken:
                continue
            message = self._read(phase, client, reply)
            if message is not None:
                taken.add(client)
                yield client, message

    def _packed(
        self, phase: Phase, messages: Mapping[int, Message], asked: dict[str, tuple[int, Kind]]
    ) -> Iterator[FlowerMessage]:
        """Each as it is sent; `asked` says whose a reply to it is, and about which phases."""
        for number, phase_message in messages.items():
            parts, message = parted_phases(phase, phase_message), {**phase_message, **self._named}
            group = f"{next(iter(parts.values()))[ROUND]} {secrets.token_hex(SECRET_BYTES)}"
            asked[group] = number, tuple(parts)
            flower = FlowerMessage(
                content=to_records(message), message_type=message_type(phase), dst_node_id=self.nodes[number],
                group_id=group,
            )
            self.counted.add(phase, "down", message, wire_bytes(flower))
            yield flower

    def _replies(self, sent: Iterable[FlowerMessage], kind: Callable[[str], Kind]) -> Iterator[FlowerMessage]:
        if self._closing is None:
            return at_once(self.grid, sent)
        return gathered(self.grid, sent, self.timeout, self._closing, lambda message: kind(message.metadata.group_id))

    def _asked(self, phase: Phase, asked: Mapping[str, tuple[int, Kind]], reply: FlowerMessage) -> int | None:
        received, of = reply.metadata.message_type, reply.metadata.group_id
        if of in asked and received == message_type(phase):
            return asked[of][0]
        self.note(f"{phase}: node {reply.metadata.src_node_id} replies to {received} of round {of.split(' ')[0]}, too "
                  "late or to another's message; left out")
        return None

    def _read(self, phase: Phase, number: int, reply: FlowerMessage) -> Message | None:
        """Nothing that a client sends raises: what cannot be read, or holds more than its arrays, is an absent one."""
        if reply.has_error():
            self.note(f"{phase}: client {number} replies with an error: {reply.error.reason}")
            return None
        try:
            message = from_records(reply.content)
            self.counted.add(phase, "up", message, wire_bytes(reply))
        except (ProtocolError, ValueError) as error:  # ValueError: neither content nor error
            self.note(f"{phase}: client {number}: {error}")
            return None
        return message

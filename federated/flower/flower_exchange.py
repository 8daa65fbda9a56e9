"""Phases over a Flower grid: one message to each node, the replies that come within the time limit, every byte counted.

Our messages lie in Flower's as one ArrayRecord of named arrays. A node that does not reply, replies late (to another
phase or round), with an error or with something unreadable is absent from what is returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from flwr.app import Message as FlowerMessage
from flwr.common.serde import message_to_proto
from flwr.serverapp import Grid

from contracts.errors import ProtocolError
from federated.flower.array_records import from_records, to_records
from federated.flower.stragglers import Closing, gathered
from federated.protocol.byte_count import ByteCount
from federated.protocol.messages import ROUND, Message, Phase, text

TRAIN, QUERY, SETTING = "train", "query", "setting"
Note = Callable[[str], None]


def message_type(phase: Phase) -> str:
    """Flower's name of a phase, which decides the handler that a ClientApp calls."""
    return f"{TRAIN if phase == 'train' else QUERY}.{phase}"


def wire_bytes(message: FlowerMessage) -> int:
    """Of the whole message as gRPC carries it: payload, array headers, metadata."""
    return message_to_proto(message).ByteSize()


class FlowerExchange:
    """Clients are Flower's node ids; the protocol numbers them from 0 in the order of `nodes`. `setting`: what messages
    are about, where it is not the run's setting; `closing`: when a phase ends without the last (None: never)."""

    def __init__(
        self, grid: Grid, nodes: list[int], timeout: float | None, counted: ByteCount, note: Note = lambda text: None,
        setting: str = "", closing: Closing | None = None,
    ) -> None:
        self._closing = closing
        self._named = {SETTING: text(setting.encode())} if setting else {}
        self.grid, self.nodes, self.timeout, self.counted, self.note = grid, nodes, timeout, counted, note
        self._number = {node: number for number, node in enumerate(nodes)}

    def __call__(self, phase: Phase, messages: Mapping[int, Message]) -> dict[int, Message]:
        sent = []
        for number, phase_message in messages.items():
            message = {**phase_message, **self._named}
            flower = FlowerMessage(
                content=to_records(message), message_type=message_type(phase), dst_node_id=self.nodes[number],
                group_id=str(message[ROUND]),
            )
            self.counted.add(phase, "down", message, wire_bytes(flower))
            sent.append(flower)
        replies: dict[int, Message] = {}
        for reply in self._replies(sent):
            number = self._number.get(reply.metadata.src_node_id, -1)
            if number in messages and number not in replies and self._in_time(phase, number, messages[number], reply):
                self._take(phase, number, reply, replies)
        return replies

    def _replies(self, sent: list[FlowerMessage]) -> Iterable[FlowerMessage]:
        if self._closing is None:
            return self.grid.send_and_receive(sent, timeout=self.timeout)
        return gathered(self.grid, sent, self.timeout, self._closing)

    def _in_time(self, phase: Phase, number: int, message: Message, reply: FlowerMessage) -> bool:
        expected = (message_type(phase), str(message[ROUND]))
        received = (reply.metadata.message_type, reply.metadata.group_id)
        if received != expected:
            self.note(f"{phase}: client {number} replies to {received[0]} of round {received[1]}, too late; left out")
        return received == expected

    def _take(self, phase: Phase, number: int, reply: FlowerMessage, replies: dict[int, Message]) -> None:
        """Nothing that a client sends raises: what cannot be read, or holds more than its arrays, is an absent one."""
        if reply.has_error():
            self.note(f"{phase}: client {number} replies with an error: {reply.error.reason}")
            return
        try:
            message = from_records(reply.content)
            self.counted.add(phase, "up", message, wire_bytes(reply))
        except (ProtocolError, ValueError) as error:  # ValueError: neither content nor error
            self.note(f"{phase}: client {number}: {error}")
            return
        replies[number] = message

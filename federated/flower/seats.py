"""Which node speaks for which client: every node that appears is asked, and its answer is signed.

The protocol numbers clients as the published list of keys does. A node's id may be another after each start; what a
client answered, sent and was counted as stays with its key, so nodes may be started anew, join and leave between
rounds. A node signs the challenge that it was sent: none takes another's seat. Nodes that were never asked before are
waited for once, `Closing.grace` seconds; a later answer is taken whenever it comes. A client that has left keeps its
last node: a question that was made for it before is sent there, gets no answer, and the client is lost in it.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from flwr.app import Message as FlowerMessage
from flwr.serverapp import Grid

from contracts.errors import ProtocolError
from federated.flower.array_records import from_records, to_records
from federated.flower.stragglers import Closing
from federated.protocol.messages import Message, get, numbers, text
from federated.secure_aggregation.identity import SIGNATURE_BYTES, Identity, require_signed

SEAT, SIGNED = "seat", b"seat"
CHALLENGE, CHALLENGE_BYTES = "challenge", 32
SECONDS, TRIES = 30.0, 3  # after which a silent node is asked again, and how often


def seat_reply(received: Message, identity: Identity) -> Message:
    """A node's answer: its client's number, and the challenge signed."""
    challenge = get(received, CHALLENGE, np.uint8, (CHALLENGE_BYTES,))
    return {"signer": numbers(identity.number), "signature": text(identity.sign(SIGNED, challenge.tobytes(), b""))}


@dataclass(frozen=True)
class Question:
    """To a `node`, in `message`, with its `challenge`; an answer counts until `end`, by the monotonic clock."""

    node: int
    message: str
    challenge: bytes
    end: float


class Seats:
    """`published`: public keys of all clients by number. Indexed by a client's number it is the id of its node."""

    def __init__(
        self, grid: Grid, published: Sequence[bytes], closing: Closing, note: Callable[[str], None] = lambda text: None
    ) -> None:
        self.grid, self.published, self.closing, self.note = grid, published, closing, note
        self._nodes_of: dict[int, list[int]] = {}
        self._last: dict[int, int] = {}  # of clients, as they were before somebody was looked for
        self._asked: Counter[int] = Counter()
        self._open: dict[str, Question] = {}  # by its group, which no other node was told

    def __getitem__(self, client: int) -> int:
        return self._nodes_of[client][-1] if client in self._nodes_of else self._last[client]

    def there(self) -> list[int]:
        """Sorted numbers of the clients whose nodes are connected now; the latest of several nodes of one client."""
        connected = set(self.grid.get_node_ids())
        self._forget_all_but(connected)
        self._take_answers()
        settled = {node for nodes in self._nodes_of.values() for node in nodes}
        settled |= {question.node for question in self._open.values()}
        wanted = sorted(node for node in connected - settled if self._asked[node] < TRIES)
        first = {node for node in wanted if not self._asked[node]}
        self._ask(wanted)
        end = time.monotonic() + self.closing.grace
        while first & {question.node for question in self._open.values()}:
            self._take_answers()
            if time.monotonic() > end:
                break
            time.sleep(self.closing.poll)
        return sorted(self._nodes_of)

    def _forget_all_but(self, connected: set[int]) -> None:
        """A node that comes back is asked again, and a client whose latest node has left is that of its earlier one."""
        for node in self._asked.keys() - connected:
            del self._asked[node]
        self._last |= {client: nodes[-1] for client, nodes in self._nodes_of.items()}
        still = {client: [node for node in nodes if node in connected] for client, nodes in self._nodes_of.items()}
        self._nodes_of = {client: nodes for client, nodes in still.items() if nodes}
        now = time.monotonic()
        self._open = {group: question for group, question in self._open.items()
                      if question.node in connected and question.end > now}

    def _ask(self, nodes: list[int]) -> None:
        self._asked.update(nodes)
        end, challenges = time.monotonic() + SECONDS, [secrets.token_bytes(CHALLENGE_BYTES) for _ in nodes]
        groups = [f"0 {secrets.token_hex(8)}" for _ in nodes]
        messages = self.grid.push_messages([
            FlowerMessage(content=to_records({CHALLENGE: text(challenge)}), message_type=f"query.{SEAT}",
                          dst_node_id=node, group_id=group)
            for node, group, challenge in zip(nodes, groups, challenges, strict=True)])
        for node, group, message, challenge in zip(nodes, groups, messages, challenges, strict=True):
            if message:
                self._open[group] = Question(node, message, challenge, end)

    def _take_answers(self) -> None:
        asked = [question.message for question in self._open.values()]
        for reply in self.grid.pull_messages(asked) if asked else ():
            question = self._open.pop(reply.metadata.group_id, None)
            if question is None:
                self._drop(reply)
                continue
            try:
                self._nodes_of.setdefault(self._client(reply, question.challenge), []).append(question.node)
            except (ProtocolError, ValueError) as error:
                self.note(f"node {question.node} has no seat: {error}")

    def _drop(self, reply: FlowerMessage) -> None:
        """Of no group that was told, as what Flower itself says of a message that it holds no more, which it would say
        at every look: the question is asked anew."""
        told = reply.error.reason if reply.has_error() else "not what it was asked"
        lost = {group for group, question in self._open.items()
                if question.message == reply.metadata.reply_to_message_id}
        nodes = [self._open.pop(group).node for group in lost] or [reply.metadata.src_node_id]
        self.note(f"node {nodes[0]} has no seat: it replies {told}")

    def _client(self, reply: FlowerMessage, challenge: bytes) -> int:
        if reply.has_error():
            raise ProtocolError(f"it replies {reply.error.reason}")
        message = from_records(reply.content)
        signer = int(get(message, "signer", np.int32, ())[()])
        signature = get(message, "signature", np.uint8, (SIGNATURE_BYTES,)).tobytes()
        require_signed(self.published, signer, SIGNED, challenge, signature, b"")
        return signer

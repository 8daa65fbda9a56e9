"""Which node speaks for which client: every node that appears is asked, and its answer is signed.

The protocol numbers clients as the published list of keys does. A node's id may be another after each start; what a
client answered, sent and was counted as stays with its key, so nodes may be started anew, join and leave between
rounds. A node signs the challenge that it was sent: none takes another's seat.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from flwr.app import Message as FlowerMessage
from flwr.serverapp import Grid

from contracts.errors import ProtocolError
from federated.flower.array_records import from_records, to_records
from federated.flower.stragglers import Closing, gathered
from federated.protocol.messages import Message, get, numbers, text
from federated.secure_aggregation.identity import SIGNATURE_BYTES, Identity, require_signed

SEAT, SIGNED = "seat", b"seat"
CHALLENGE, CHALLENGE_BYTES = "challenge", 32
SECONDS, TRIES = 30.0, 3  # that a new node is waited for, and how often it is asked


def seat_reply(received: Message, identity: Identity) -> Message:
    """A node's answer: its client's number, and the challenge signed."""
    challenge = get(received, CHALLENGE, np.uint8, (CHALLENGE_BYTES,))
    return {"signer": numbers(identity.number), "signature": text(identity.sign(SIGNED, challenge.tobytes(), b""))}


class Seats:
    """`published`: public keys of all clients by number. Indexed by a client's number it is the id of its node."""

    def __init__(
        self, grid: Grid, published: Sequence[bytes], closing: Closing, note: Callable[[str], None] = lambda text: None
    ) -> None:
        self.grid, self.published, self.closing, self.note = grid, published, closing, note
        self._nodes_of: dict[int, list[int]] = {}
        self._asked: Counter[int] = Counter()

    def __getitem__(self, client: int) -> int:
        return self._nodes_of[client][-1]

    def there(self) -> list[int]:
        """Sorted numbers of the clients whose nodes are connected now; the latest of several nodes of one client."""
        connected = set(self.grid.get_node_ids())
        self._forget_all_but(connected)
        seated = {node for nodes in self._nodes_of.values() for node in nodes}
        new = sorted(node for node in connected - seated if self._asked[node] < TRIES)
        if new:
            self._ask(new)
        return sorted(self._nodes_of)

    def _forget_all_but(self, connected: set[int]) -> None:
        """A node that comes back is asked again, and a client whose latest node has left is that of its earlier one."""
        for node in self._asked.keys() - connected:
            del self._asked[node]
        still = {client: [node for node in nodes if node in connected] for client, nodes in self._nodes_of.items()}
        self._nodes_of = {client: nodes for client, nodes in still.items() if nodes}

    def _ask(self, nodes: list[int]) -> None:
        self._asked.update(nodes)
        challenges = {f"0 {secrets.token_hex(8)}": (node, secrets.token_bytes(CHALLENGE_BYTES)) for node in nodes}
        sent = [FlowerMessage(content=to_records({CHALLENGE: text(challenge)}), message_type=f"query.{SEAT}",
                              dst_node_id=node, group_id=group)
                for group, (node, challenge) in challenges.items()]
        for reply in gathered(self.grid, sent, SECONDS, self.closing):
            node, challenge = challenges.get(reply.metadata.group_id, (0, b""))
            try:
                self._nodes_of.setdefault(self._client(reply, challenge), []).append(node)
            except (ProtocolError, ValueError) as error:
                self.note(f"node {node} has no seat: {error}")

    def _client(self, reply: FlowerMessage, challenge: bytes) -> int:
        if not challenge or reply.has_error():
            raise ProtocolError(f"it replies {reply.error.reason if reply.has_error() else 'to nothing it was asked'}")
        message = from_records(reply.content)
        signer = int(get(message, "signer", np.int32, ())[()])
        signature = get(message, "signature", np.uint8, (SIGNATURE_BYTES,)).tobytes()
        require_signed(self.published, signer, SIGNED, challenge, signature, b"")
        return signer

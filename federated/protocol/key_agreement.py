"""The server's half of `keys` and `shares`: it relays what clients announce, and the boxes that it cannot open.

Neighbours follow from the roster and all that it announced (federated/secure_aggregation/roster_consistency.py), which
every key after the announcements is bound to. `run` [32] tells runs and their starts apart.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contracts.errors import ProtocolError
from federated.protocol.client_masks import SIGNED_AT, require_announced, round_context
from federated.protocol.messages import RUN, MadeWhenSent, Message, Phase, get, numbers, scalar, text
from federated.protocol.plan import Plan
from federated.protocol.questions import Steps
from federated.protocol.round_phases import RoundPhases
from federated.secure_aggregation.identity import SIGNATURE_BYTES
from federated.secure_aggregation.neighbour_graph import graph_seed, ring
from federated.secure_aggregation.roster_consistency import HASH_BYTES, announcement_hash, roster_context
from federated.secure_aggregation.round_secrets import ANNOUNCEMENT_BYTES, Announcement
from federated.secure_aggregation.share_exchange import BOX_BYTES


class Signed(NamedTuple):
    """Who announced something (its number in the published list) and when, and its signature, uint8 [64]."""

    signer: int
    at: int
    signature: np.ndarray


class KeyAgreement:
    """Who announced what in a round, and whose shares lie with whom. Without masks all of it is empty.

    `announced`: client -> its announcement; `signed`: client -> who signed it; `roster` int32 [n]: sorted numbers of
    the published list; `dealt`: client -> its neighbours, in the order in which shares were cut; `context`: what keys
    of the round are bound to.
    """

    def __init__(self, plan: Plan, phases: RoundPhases, run: bytes) -> None:
        self.plan, self.phases, self.run = plan, phases, run
        self.context = round_context(phases.number, run)
        self.announced: dict[int, Announcement] = {}
        self.signed: dict[int, Signed] = {}
        self.roster = np.empty(0, dtype=np.int32)
        self.dealt: dict[int, list[int]] = {}
        self._hashes = np.empty((0, HASH_BYTES), dtype=np.uint8)
        self._boxes: dict[tuple[int, int], np.ndarray] = {}
        self._given_in: dict[int, Phase] = {}

    def share_keys(self, clients: list[int]) -> Steps[list[int]]:
        """Both phases; returns the clients that dealt their shares. Raises RoundAbandoned below the least."""
        greeting = {"clients": scalar(len(clients), np.int32), RUN: text(self.run)}
        self.announced = yield from self.phases.ask(
            "keys", dict.fromkeys(clients, greeting), self._checked_announcement)
        self.phases.require(len(self.announced), "keys")
        self._set_roster()
        graph = self._neighbours()
        self.dealt = graph
        dealt = yield from self.phases.ask(
            "shares", MadeWhenSent(graph, lambda client: self._introduction(client, graph[client])), self._take_boxes)
        self.phases.require(len(dealt), "shares")
        return sorted(dealt)

    def shares_for(self, client: int, phase: Phase) -> Message:
        """The boxes for a client, in the phase of its first upload of the round; nothing after that."""
        if not self.plan.masked or self._given_in.setdefault(client, phase) != phase:
            return {}
        senders = [peer for peer in self.dealt[client] if (peer, client) in self._boxes]
        boxes = [self._boxes[peer, client] for peer in senders]
        return {"senders": numbers(senders), "boxes": np.array(boxes, dtype=np.uint8).reshape(-1, BOX_BYTES)}

    def _take_boxes(self, client: int, reply: Message) -> None:
        peers = self.dealt[client]
        boxes = get(reply, "boxes", np.uint8, (len(peers), BOX_BYTES))
        self._boxes |= {(client, peer): box for peer, box in zip(peers, boxes, strict=True)}

    def _checked_announcement(self, client: int, reply: Message) -> Announcement:
        """Raises ProtocolError when it is not signed, or signed by a client that is in the round already, or its keys
        are none: its neighbours would refuse the round."""
        raw = get(reply, "announcement", np.uint8, (ANNOUNCEMENT_BYTES,)).tobytes()
        signer = int(get(reply, "signer", np.int32, ())[()])
        signature = get(reply, "signature", np.uint8, (SIGNATURE_BYTES,))
        signed_at = int(get(reply, SIGNED_AT, np.int64, ())[()])
        require_announced(self.plan, self.context, signer, raw, signed_at, signature.tobytes())
        if signer in (known.signer for known in self.signed.values()):
            raise ProtocolError(f"client {signer} of the list is in this round already; its second self is lost")
        announcement = Announcement(raw)
        announcement.require_usable()
        self.signed[client] = Signed(signer, signed_at, signature)
        return announcement

    def _set_roster(self) -> None:
        raw_of = {signed.signer: self.announced[client].raw for client, signed in self.signed.items()}
        self.roster = np.array(sorted(raw_of), dtype=np.int32)
        hashes = b"".join(announcement_hash(raw_of[signer]) for signer in self.roster.tolist())
        self._hashes = np.frombuffer(hashes, dtype=np.uint8).reshape(-1, HASH_BYTES)
        self.context = roster_context(self.context, self.plan.fingerprint, self.roster, self._hashes)

    def _neighbours(self) -> dict[int, list[int]]:
        """Client -> its neighbours, which follow from the roster."""
        client_of = {signed.signer: client for client, signed in self.signed.items()}
        return {client_of[signer]: sorted(client_of[peer] for peer in peers)
                for signer, peers in ring(self.roster.tolist(), self.plan.neighbours, graph_seed(self.context)).items()}

    def _introduction(self, client: int, peers: list[int]) -> Message:
        announcements = np.stack([text(self.announced[peer].raw) for peer in peers])
        return {"me": scalar(client, np.int32), "peers": numbers(peers), "announcements": announcements,
                "signers": numbers([self.signed[peer].signer for peer in peers]),
                SIGNED_AT: np.array([self.signed[peer].at for peer in peers], dtype=np.int64),
                "signatures": np.stack([self.signed[peer].signature for peer in peers]), "roster": self.roster,
                "announced": self._hashes}

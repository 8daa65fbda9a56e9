"""One client's keys, shares and masks in a round, and what it reveals so that a sum can be opened.

Like all of a client's half of a round it works on what is remembered of it (federated/protocol/round_client.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import numpy as np

from contracts.errors import ProtocolError
from federated.protocol.messages import ROUND, RUN, RUN_BYTES, Message, get, numbers, scalar, text
from federated.protocol.plan import Plan
from federated.secure_aggregation.identity import ANNOUNCEMENT, SIGNATURE_BYTES, Identity, require_signed
from federated.secure_aggregation.masking import Layout, PairMask, masked
from federated.secure_aggregation.neighbour_graph import threshold
from federated.secure_aggregation.roster_consistency import (
    HASH_BYTES,
    among,
    announcement_hash,
    require_agreed,
    require_roster,
    roster_context,
    sign_finished,
)
from federated.secure_aggregation.round_secrets import (
    ANNOUNCEMENT_BYTES,
    Announcement,
    Instance,
    RoundSecrets,
    self_key,
)
from federated.secure_aggregation.share_exchange import BOX_BYTES, SHARES_BYTES, deal, receive
from federated.secure_aggregation.unmasking import pair_key, parted, reveal, sign

SIGNED_AT, FRESH = "signed_at", 86_400


class ClientMasks:
    """`identity` signs what the client says to the others."""

    def __init__(self, plan: Plan, identity: Identity | None) -> None:
        self.plan, self.identity = plan, identity
        if plan.masked and identity is None:
            raise ProtocolError("clients of a masked run sign what they say, and this one has no identity to sign with")

    def announce(self, message: Message, memory: Message) -> Message:
        """Fresh keys for a round, signed."""
        count = int(get(message, "clients", np.int32, ())[()])
        if count < self.plan.min_clients:
            raise ProtocolError(f"a round of {count} clients, {self.plan.min_clients} are the least; refused")
        memory[RUN] = get(message, RUN, np.uint8, (RUN_BYTES,))
        secrets, now = RoundSecrets.draw(), int(time.time())
        memory |= {"seeds": text(secrets.seeds), SIGNED_AT: scalar(now, np.int64)}
        announcement, identity = secrets.announcement(), self._signing()
        signature = identity.sign(ANNOUNCEMENT, announcement, announced_context(self.plan, _round_context(memory), now))
        return {"announcement": text(announcement), "signer": scalar(identity.number, np.int32),
                "signature": text(signature), SIGNED_AT: memory[SIGNED_AT]}

    def deal(self, message: Message, memory: Message) -> Message:
        """Shares of the secrets, sealed for each neighbour. Refuses a roster or neighbours that are not what they
        should be, announcements that somebody else made or another day, and a roster that took so long that it may have
        been sought: its neighbours follow from what is in it."""
        peers = get(message, "peers", np.int32, (None,))
        announced = get(message, "announcements", np.uint8, (len(peers), ANNOUNCEMENT_BYTES))
        roster, signers = get(message, "roster", np.int32, (None,)), get(message, "signers", np.int32, (len(peers),))
        hashes = get(message, "announced", np.uint8, (len(roster), HASH_BYTES))
        memory |= {"me": get(message, "me", np.int32, ()), "peers": peers, "announcements": announced,
                   "roster": roster, "announced": hashes, "signers": signers}
        me = int(memory["me"][()])
        if len(roster) < self.plan.min_clients or me in peers.tolist() or len(set(peers.tolist())) < len(peers):
            raise ProtocolError(f"neighbours {peers.tolist()} of client {me} in a round of {len(roster)}: too few or "
                                "not distinct; refused")
        waited, number = int(time.time()) - int(memory[SIGNED_AT][()]), self._signing().number
        if waited > 2 * self.plan.timeout:
            raise ProtocolError(f"the roster comes {waited} s after this client announced its keys, "
                                f"{2 * self.plan.timeout:.0f} s are the most; refused")
        known = {number: _secrets(memory).announcement()}
        known |= {signer: raw.tobytes() for signer, raw in zip(signers.tolist(), announced, strict=True)}
        named = dict(zip(roster.tolist(), hashes, strict=True))
        if any(signer not in named or named[signer].tobytes() != announcement_hash(raw)
               for signer, raw in known.items()):
            raise ProtocolError("the roster names other announcements than this client's and its neighbours'; refused")
        require_roster(
            roster, len(self.plan.identities), number, signers.tolist(), self.plan.neighbours, self._context(memory))
        signatures = get(message, "signatures", np.uint8, (len(peers), SIGNATURE_BYTES))
        dates = get(message, SIGNED_AT, np.int64, (len(peers),)).tolist()
        for signer, raw, date, signature in zip(signers.tolist(), announced, dates, signatures, strict=True):
            require_announced(self.plan, _round_context(memory), signer, raw.tobytes(), date, signature.tobytes())
        peer_keys = _announcements(memory)
        boxes = deal(_secrets(memory), me, peer_keys, threshold(len(peer_keys)), self._context(memory))
        return {"boxes": np.stack([text(boxes[peer]) for peer in sorted(boxes)])}

    def _signing(self) -> Identity:
        if self.identity is None:
            raise ProtocolError("a run without masks signs nothing; refused")
        return self.identity

    def take_shares(self, message: Message, memory: Message) -> None:
        """Opens the boxes that came with this message."""
        if not self.plan.masked or "shares" in memory:
            return
        if "peers" not in memory:
            raise ProtocolError("an upload is asked for before shares were exchanged; refused")
        senders = get(message, "senders", np.int32, (None,))
        boxes = get(message, "boxes", np.uint8, (len(senders), BOX_BYTES))
        if len(set(senders.tolist())) < len(senders) or not set(senders.tolist()) <= set(memory["peers"].tolist()):
            raise ProtocolError(f"shares come from {senders.tolist()}, who are not each another neighbour; refused")
        opened = receive(
            _secrets(memory), int(memory["me"][()]), _announcements(memory),
            {int(s): box.tobytes() for s, box in zip(senders, boxes, strict=True)}, self._context(memory),
        )
        memory["senders"] = senders
        memory["shares"] = np.array([text(s) for s in opened.values()], dtype=np.uint8).reshape(-1, SHARES_BYTES)

    def upload(
        self, instance: Instance, layout: Layout, values: np.ndarray, memory: Message,
        rows_with: Mapping[int, np.ndarray], told: Callable[[np.ndarray], bytes] = lambda both: b"",
    ) -> np.ndarray:
        """The upload; with masks, those of all peers that shares came from (for the update: that it names). `told`:
        what came with the rows that a pair masks together."""
        if not self.plan.masked:
            return masked(layout, values, None, ())
        peers = memory["senders"].tolist() if instance == "union" else sorted(rows_with)
        strangers = set(peers) - set(memory["senders"].tolist())
        if strangers or len(peers) < threshold(len(memory["peers"])):
            raise ProtocolError(
                f"{len(peers)} of {len(memory['peers'])} neighbours are left to mask with, "
                f"{threshold(len(memory['peers']))} are the least, {len(strangers)} are unknown; refused"
            )
        memory[f"masked {instance}"] = numbers(peers)
        secrets, known, context = _secrets(memory), _announcements(memory), self._context(memory)
        key = secrets.mask_key(instance)
        nothing = np.empty(0, dtype=np.int64)
        pairs = (
            PairMask(
                pair_key(key, known[peer].mask(instance), context, instance, layout.places[both], told(both)),
                sign(int(memory["me"][()]), peer), both,
            )
            for peer, both in ((peer, rows_with.get(peer, nothing)) for peer in peers)
        )
        return masked(layout, values, self_key(secrets.shared(instance, "self"), context, instance), pairs)

    def agree(self, instance: Instance, message: Message, memory: Message) -> Message:
        """Signs for the uploads that the server says are in the sum; once per instance, so that no client signs two
        stories."""
        if f"masked {instance}" not in memory:
            raise ProtocolError(f"this client masked nothing in the {instance}; refused")
        bits = get(message, "finished", np.uint8, (-(-len(memory["roster"]) // 8),))
        finished = among(memory["roster"], bits)
        if self._signing().number not in finished or len(finished) < self.plan.min_clients:
            raise ProtocolError(f"the sum of the {instance} is said to be of {len(finished)} clients, or to lack this "
                                f"client's upload; {self.plan.min_clients} are the least; refused")
        self._parted(instance, bits, memory)
        memory[f"finished {instance}"] = bits
        return {"signature": text(sign_finished(self._signing(), instance, bits, self._context(memory)))}

    def open(self, instance: Instance, message: Message, memory: Message) -> Message:
        """Shares for the server, when enough others have signed for the same uploads."""
        if f"finished {instance}" not in memory:
            raise ProtocolError(f"this client signed for no sum of the {instance}; refused")
        bits = memory[f"finished {instance}"]
        signers = get(message, "signers", np.int32, (None,)).tolist()
        signatures = get(message, "signatures", np.uint8, (len(signers), SIGNATURE_BYTES))
        require_agreed(
            self.plan.identities, instance, bits, self._context(memory), memory["roster"], signers, signatures)
        held = dict(zip(memory["senders"].tolist(), (row.tobytes() for row in memory["shares"]), strict=True))
        shares = reveal(instance, *self._parted(instance, bits, memory), held)
        return {"shares": np.stack([text(share) for share in shares])}

    def _parted(self, instance: Instance, bits: np.ndarray, memory: Message) -> tuple[list[int], list[int]]:
        """The neighbours of the upload that are in the sum, and those that are not."""
        finished = among(memory["roster"], bits)
        number_of = dict(zip(memory["signers"].tolist(), memory["peers"].tolist(), strict=True))
        there = {peer for signer, peer in number_of.items() if signer in finished}
        apart = there - set(memory[f"masked {instance}"].tolist())
        if apart:
            raise ProtocolError(f"neighbours {sorted(apart)} are said to be in the sum of the {instance}, and nothing "
                                "was masked with them; refused")
        return parted(memory[f"masked {instance}"].tolist(), there, len(memory["peers"]))

    def _context(self, memory: Message) -> bytes:
        """Of all keys after the announcements."""
        return roster_context(
            _round_context(memory), self.plan.fingerprint, memory["roster"], memory["announced"])


def round_context(number: int, run: bytes) -> bytes:
    """What is bound to a round of a run before there is a roster. `run` [32]."""
    return b"round %d of " % number + run


def announced_context(plan: Plan, context: bytes, signed_at: int) -> bytes:
    """What a signed announcement is bound to: the round, the plan, and the second since 1970 at which it was made."""
    return context + plan.fingerprint + b" at %d" % signed_at


def require_announced(plan: Plan, context: bytes, signer: int, raw: bytes, signed_at: int, signature: bytes) -> None:
    """Raises ProtocolError unless this client made this announcement for this round, within FRESH seconds of now."""
    if abs(time.time() - signed_at) > FRESH:
        raise ProtocolError(f"client {signer} announced its keys at {signed_at}, {FRESH} s or more from now; refused")
    require_signed(plan.identities, signer, ANNOUNCEMENT, raw, signature, announced_context(plan, context, signed_at))


def _round_context(memory: Message) -> bytes:
    if RUN not in memory:
        raise ProtocolError("keys of this round were never asked for; refused")
    return round_context(round_number(memory), memory[RUN].tobytes())


def round_number(memory: Message) -> int:
    """Of the round that a client remembers."""
    return int(memory[ROUND][()])


def _secrets(memory: Message) -> RoundSecrets:
    if "seeds" not in memory:
        raise ProtocolError("keys of this round were never asked for; refused")
    return RoundSecrets(memory["seeds"].tobytes())


def _announcements(memory: Message) -> dict[int, Announcement]:
    return {int(peer): Announcement(raw.tobytes())
            for peer, raw in zip(memory["peers"], memory["announcements"], strict=True)}

"""One client's half of a round, as a function of (phase, message, what it remembers of the round).

What it remembers is itself a message, so that a client may be a new process at every phase. It refuses a stale round, a
round of too few clients, a message out of order, and every request that would uncover it or a neighbour.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np

from contracts.errors import ProtocolError
from federated import agreement
from federated.averaging import BY_CLIENTS
from federated.gradient_store import GradientStore
from federated.identity import ANNOUNCEMENT, SIGNATURE_BYTES, Identity, require_signed
from federated.local_update import LocalUpdate, shortened, update_words
from federated.masking import Layout, PairMask, masked
from federated.messages import ACCEPTED, MEAN_SAMPLES, ROUND, Message, Phase, get, numbers, scalar, text
from federated.neighbour_graph import threshold
from federated.plan import Plan
from federated.private_set_union import WORD, DirectCode, membership, to_digits
from federated.randomized_response import FirstAnswers, round_answers
from federated.round_secrets import ANNOUNCEMENT_BYTES, Announcement, Instance, RoundSecrets, self_key
from federated.share_exchange import BOX_BYTES, SHARES_BYTES, deal, receive
from federated.skellam import noise_words
from federated.unmasking import pair_key, parted, reveal, sign


class Trainer(Protocol):
    def held(self) -> np.ndarray:
        """Sorted places of the private rows that the client's samples use."""

    def samples(self) -> int:
        """How many the client has."""

    def train(
        self, round_number: int, places: np.ndarray, rows: np.ndarray, dense: np.ndarray, scale: float = 1.0
    ) -> LocalUpdate:
        """From the rows at these places and the dense part, on the loss times `scale`."""


class RoundClient:
    """`gradients` is the client's memory of what it sent, where the averaging is "latest"; `identity` signs what it
    says to the others, where there are masks."""

    def __init__(
        self, plan: Plan, trainer: Trainer, answers: FirstAnswers | None, gradients: GradientStore | None = None,
        identity: Identity | None = None,
    ) -> None:
        self.plan, self.trainer, self.answers, self.gradients = plan, trainer, answers, gradients
        self.identity = identity
        if plan.rule == "latest" and gradients is None:
            raise ProtocolError("averaging 'latest' needs a place for the client's last gradient")
        if plan.masked and identity is None:
            raise ProtocolError("clients of a masked run sign what they say, and this one has no identity to sign with")
        self._handlers: dict[Phase, Callable[[Message, Message], Message]] = {
            "keys": self._keys, "shares": self._shares, "union": self._union, "agree_union": self._agree_union,
            "open_union": self._open_union, "choose": self._choose, "train": self._train,
            "agree_update": self._agree_update, "open_update": self._open_update,
        }

    def handle(self, phase: Phase, message: Message, memory: Message) -> tuple[Message, Message]:
        """The reply and what to remember. Raises ProtocolError on a refusal; then the memory stays as it was."""
        number = int(get(message, ROUND, np.int64, ())[()])
        last = _number(memory) if ROUND in memory else -1
        kept = dict(memory)
        if number > last:
            kept = {ROUND: message[ROUND]}
        elif number < last or f"done {phase}" in memory:
            raise ProtocolError(
                f"{phase} of round {number}: this client has done it, its last round is {last}; refused"
            )
        reply = self._handlers[phase](message, kept)
        kept[f"done {phase}"] = np.ones(1, dtype=np.uint8)
        return reply, kept

    # ---- key agreement and shares ----
    def _keys(self, message: Message, memory: Message) -> Message:
        count = int(get(message, "clients", np.int32, ())[()])
        if count < self.plan.least_clients:
            raise ProtocolError(f"a round of {count} clients, {self.plan.least_clients} are the least; refused")
        secrets = RoundSecrets.draw()
        memory["seeds"] = text(secrets.seeds)
        announcement, identity = secrets.announcement(), self._signing()
        signature = identity.sign(ANNOUNCEMENT, announcement, round_context(_number(memory)))
        return {"announcement": text(announcement), "signer": scalar(identity.number, np.int32),
                "signature": text(signature)}

    def _shares(self, message: Message, memory: Message) -> Message:
        peers = get(message, "peers", np.int32, (None,))
        announced = get(message, "announcements", np.uint8, (len(peers), ANNOUNCEMENT_BYTES))
        roster, signers = get(message, "roster", np.int32, (None,)), get(message, "signers", np.int32, (len(peers),))
        memory |= {"me": get(message, "me", np.int32, ()), "peers": peers, "announcements": announced,
                   "roster": roster, "signers": signers}
        me = int(memory["me"][()])
        if len(roster) < self.plan.least_clients or me in peers.tolist() or len(set(peers.tolist())) < len(peers):
            raise ProtocolError(f"neighbours {peers.tolist()} of client {me} in a round of {len(roster)}: too few or "
                                "not distinct; refused")
        agreement.require_roster(
            roster, self._signing().number, signers.tolist(), self.plan.neighbours, _number(memory))
        signatures = get(message, "signatures", np.uint8, (len(peers), SIGNATURE_BYTES))
        for signer, raw, signature in zip(signers.tolist(), announced, signatures, strict=True):
            require_signed(self.plan.identities, signer, ANNOUNCEMENT, raw.tobytes(), signature.tobytes(),
                           round_context(_number(memory)))
        known = _announcements(memory)
        boxes = deal(_secrets(memory), me, known, threshold(len(known)), self._context(memory))
        return {"boxes": np.stack([text(boxes[peer]) for peer in sorted(boxes)])}

    def _signing(self) -> Identity:
        if self.identity is None:
            raise ProtocolError("a run without masks signs nothing; refused")
        return self.identity

    def _take_shares(self, message: Message, memory: Message) -> None:
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

    # ---- the union ----
    def _union(self, message: Message, memory: Message) -> Message:
        self._take_shares(message, memory)
        held = np.searchsorted(self.plan.private_places, self._held())
        counted = bool(get(message, "counted", np.uint8, ())[()])
        if counted and self.plan.contributors <= 1 and self.plan.rule not in BY_CLIENTS:
            raise ProtocolError("the server asks how many hold a row, which this run agreed not to tell; refused")
        code = DirectCode(len(self.plan.private_places)) if counted else self.plan.code
        values = membership(code, held, counted)
        if counted and self.plan.counted_digits:
            values = np.concatenate([values, to_digits(self.trainer.samples())])
        layout = Layout(WORD, len(values))
        return {"words": self._masked("union", layout, values, memory, {})}

    def _agree_union(self, message: Message, memory: Message) -> Message:
        return self._agree("union", message, memory)

    def _open_union(self, message: Message, memory: Message) -> Message:
        return self._open("union", message, memory)

    def _choose(self, message: Message, memory: Message) -> Message:
        private = self.plan.private_places
        bits = get(message, "union", np.uint8, (-(-len(private) // 8),))
        asked = np.flatnonzero(np.unpackbits(bits, count=len(private)))
        chosen = self._answers(asked)
        memory["chosen"] = asked[chosen].astype(np.int32)
        return {"chosen": np.packbits(chosen)}

    def _answers(self, asked: np.ndarray) -> np.ndarray:
        policy = self.plan.policy
        if policy.whole_scope:
            return np.ones(len(asked), dtype=bool)
        if self.answers is None:
            raise ProtocolError(f"policy {policy.name!r} needs a place for the client's first answers")
        held = np.zeros(len(self.plan.private_places), dtype=bool)
        held[np.searchsorted(self.plan.private_places, self._held())] = True
        return round_answers(self.answers.answers(asked, held, policy), policy)

    # ---- the update ----
    def _train(self, message: Message, memory: Message) -> Message:
        self._take_shares(message, memory)
        places = self._places(memory)
        rows = get(message, "rows", np.float32, (len(places), self.plan.width))
        dense = get(message, "dense", np.float32, (self.plan.dense,))
        succinct = np.isin(places, np.concatenate([self.plan.public_places, self._held()]))
        layout, number = self.plan.update_layout(places), _number(memory)
        if self.gradients is None:
            update = self.trainer.train(number, places[succinct], rows[succinct], dense)
        else:
            mean = float(get(message, MEAN_SAMPLES, np.float64, ())[()])
            scale = self.trainer.samples() / max(mean, 1.0)
            update = self.trainer.train(number, places[succinct], rows[succinct], dense, scale)
            accepted = int(get(message, ACCEPTED, np.int64, ())[()])
            update = self.gradients.difference(self.plan, number, accepted, places, succinct, update)
        values = update_words(self.plan, layout, succinct, update)
        if self.plan.noise:
            values = shortened(values, self.plan.noise_norm) + noise_words(self.plan.noise, values.size)
        return {"words": self._masked("update", layout, values, memory, self._rows_with(message, memory, places))}

    def _held(self) -> np.ndarray:
        """Private places that the client's samples use, or that what it sent before lies on."""
        held = self.trainer.held()
        if self.gradients is None:
            return held
        return np.union1d(held, np.intersect1d(self.gradients.places(), self.plan.private_places))

    def _places(self, memory: Message) -> np.ndarray:
        if self.plan.policy.public_rows:
            return self.plan.public_scope(_number(memory))
        if "chosen" not in memory:
            raise ProtocolError("training is asked for before rows were chosen; refused")
        chosen = self.plan.private_places[memory["chosen"]]
        return np.union1d(self.plan.public_places, chosen)

    def _rows_with(self, message: Message, memory: Message, places: np.ndarray) -> dict[int, np.ndarray]:
        """Peer of the update -> indices of the places that it chose too."""
        if not self.plan.masked:
            return {}
        peers = get(message, "peers", np.int32, (None,)).tolist()
        if len(set(peers)) < len(peers):
            raise ProtocolError(f"peers {peers} of the update are not distinct; refused")
        everywhere = np.arange(len(places))
        if self.plan.masking == "union":
            return dict.fromkeys(peers, everywhere)
        both = get(message, "both", np.uint8, (len(peers), -(-len(places) // 8)))
        return {
            peer: np.flatnonzero(np.unpackbits(bits, count=len(places)))
            for peer, bits in zip(peers, both, strict=True)
        }

    def _agree_update(self, message: Message, memory: Message) -> Message:
        return self._agree("update", message, memory)

    def _open_update(self, message: Message, memory: Message) -> Message:
        return self._open("update", message, memory)

    # ---- masks ----
    def _masked(
        self, instance: Instance, layout: Layout, values: np.ndarray, memory: Message,
        rows_with: Mapping[int, np.ndarray],
    ) -> np.ndarray:
        """The upload; with masks, those of all peers that shares came from (for the update: that it names)."""
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
                pair_key(key, known[peer].mask(instance), context, instance, layout.places[both]),
                sign(int(memory["me"][()]), peer), both,
            )
            for peer, both in ((peer, rows_with.get(peer, nothing)) for peer in peers)
        )
        return masked(layout, values, self_key(secrets.shared(instance, "self"), context, instance), pairs)

    def _agree(self, instance: Instance, message: Message, memory: Message) -> Message:
        """Signs for the uploads that the server says are in the sum; once per instance, so that no client signs two
        stories."""
        if f"masked {instance}" not in memory:
            raise ProtocolError(f"this client masked nothing in the {instance}; refused")
        bits = get(message, "finished", np.uint8, (-(-len(memory["roster"]) // 8),))
        if self._signing().number not in agreement.among(memory["roster"], bits):
            raise ProtocolError(f"the sum of the {instance} is said to lack this client's upload; refused")
        self._parted(instance, bits, memory)
        memory[f"finished {instance}"] = bits
        return {"signature": text(agreement.sign_finished(self._signing(), instance, bits, self._context(memory)))}

    def _open(self, instance: Instance, message: Message, memory: Message) -> Message:
        """Shares for the server, when enough others have signed for the same uploads."""
        if f"finished {instance}" not in memory:
            raise ProtocolError(f"this client signed for no sum of the {instance}; refused")
        bits = memory[f"finished {instance}"]
        signers = get(message, "signers", np.int32, (None,)).tolist()
        signatures = get(message, "signatures", np.uint8, (len(signers), SIGNATURE_BYTES))
        agreement.require_agreed(
            self.plan.identities, instance, bits, self._context(memory), memory["roster"], signers, signatures)
        held = dict(zip(memory["senders"].tolist(), (row.tobytes() for row in memory["shares"]), strict=True))
        shares = reveal(instance, *self._parted(instance, bits, memory), held)
        return {"shares": np.stack([text(share) for share in shares])}

    def _parted(self, instance: Instance, bits: np.ndarray, memory: Message) -> tuple[list[int], list[int]]:
        """The neighbours of the upload that are in the sum, and those that are not."""
        finished = agreement.among(memory["roster"], bits)
        number_of = dict(zip(memory["signers"].tolist(), memory["peers"].tolist(), strict=True))
        there = {peer for signer, peer in number_of.items() if signer in finished}
        return parted(memory[f"masked {instance}"].tolist(), there, len(memory["peers"]))

    def _context(self, memory: Message) -> bytes:
        """Of all keys after the announcements."""
        return agreement.roster_context(round_context(_number(memory)), memory["roster"])


def round_context(number: int) -> bytes:
    return b"round %d" % number


def _number(memory: Message) -> int:
    return int(memory[ROUND][()])


def _secrets(memory: Message) -> RoundSecrets:
    if "seeds" not in memory:
        raise ProtocolError("keys of this round were never asked for; refused")
    return RoundSecrets(memory["seeds"].tobytes())


def _announcements(memory: Message) -> dict[int, Announcement]:
    return {int(peer): Announcement(raw.tobytes())
            for peer, raw in zip(memory["peers"], memory["announcements"], strict=True)}

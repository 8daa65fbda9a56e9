"""One client's half of a round, as a function of (phase, message, what it remembers of the round).

What it remembers is itself a message (federated/protocol/client_memory.py). It refuses a stale round, a round of too
few clients, a message out of order, and every request that would uncover it or a neighbour.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache, partial
from typing import Protocol

import numpy as np

from contracts.errors import ProtocolError
from federated.privacy import skellam
from federated.privacy.private_set_union import WORD, DirectCode, membership, to_digits
from federated.privacy.randomized_response import FirstAnswers, round_answers
from federated.privacy.skellam import noise_words
from federated.protocol.client_masks import ClientMasks, round_number
from federated.protocol.client_memory import after, begun, number_of, remembered_of, rounds_of
from federated.protocol.gradient_store import NO_RUN, GradientStore
from federated.protocol.local_update import LocalUpdate, shortened, update_words
from federated.protocol.messages import (
    ACCEPTED,
    MEAN_SAMPLES,
    ROUND,
    RUN,
    RUN_BYTES,
    VOIDED,
    Message,
    Phase,
    get,
    joined,
    parted_phases,
)
from federated.protocol.plan import Plan
from federated.secure_aggregation.identity import Identity
from federated.secure_aggregation.masking import Layout
from federated.secure_aggregation.roster_consistency import among, quorum
from federated.secure_aggregation.unmasking import model_hash

LOG = logging.getLogger(__name__)
Eligible = Callable[[], bool]
SPENT: dict[Phase, tuple[str, ...]] = {  # what no later phase needs is forgotten: a stolen context tells less
    "train": ("seeds", "announcements"),
    "open_update": ("shares", "senders", "masked union", "masked update", "finished union", "finished update"),
}


class Trainer(Protocol):
    """What a client has and does beside the protocol: its samples, and training on them."""

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
        if plan.rule == "latest" and gradients is None:
            raise ProtocolError("averaging 'latest' needs a place for the client's last gradient")
        self.masks = ClientMasks(plan, identity)
        self._handlers: dict[Phase, Callable[[Message, Message], Message]] = {
            "keys": self.masks.announce, "shares": self.masks.deal, "union": self._union,
            "agree_union": partial(self.masks.agree, "union"), "open_union": partial(self.masks.open, "union"),
            "choose": self._choose, "train": self._train,
            "agree_update": partial(self.masks.agree, "update"), "open_update": self._open_update,
        }

    def handle(
        self, phase: Phase, message: Message, memory: Message, eligible: Eligible = lambda: True
    ) -> tuple[Message, Message]:
        """The reply and what to remember. Of two phases in one message each is replied to by itself, and one that is
        refused lacks in the reply. `eligible`: asked before a round is begun. Raises ProtocolError where all is
        refused; then the memory stays as it was."""
        parts, replies = parted_phases(phase, message) or {phase: message}, dict[Phase, Message]()
        for each, part in parts.items():
            try:
                replies[each], memory = self._handled(each, part, memory, eligible)
            except Exception as error:
                if each == list(parts)[-1] and not replies:
                    raise
                LOG.warning("%s, asked together with another phase: %s: %s", each, type(error).__name__, error)
        return joined(phase, replies), memory

    def _handled(
        self, phase: Phase, message: Message, memory: Message, eligible: Eligible
    ) -> tuple[Message, Message]:
        number = int(get(message, ROUND, np.int64, ())[()])
        newest, before = rounds_of(memory)
        if number > number_of(newest):
            if not eligible():
                raise ProtocolError("this client takes part in no round now, as its owner's check says; refused")
            newest, before = begun(message[ROUND], newest, self.plan.overlap)
        kept = remembered_of(number, phase, newest, before)
        reply = self._handlers[phase](message, kept)
        kept[f"done {phase}"] = np.ones(1, dtype=np.uint8)
        spent = SPENT.get(phase, ())
        kept = {name: value for name, value in kept.items() if name not in spent}
        return reply, after(phase, kept, newest, before)

    # ---- the union ----
    def _union(self, message: Message, memory: Message) -> Message:
        self.masks.take_shares(message, memory)
        held = np.searchsorted(self.plan.private_places, self._held(memory))
        counted = self.plan.counts_holders(round_number(memory))
        code = DirectCode(len(self.plan.private_places)) if counted else self.plan.code
        values = membership(code, held, counted)
        if counted and self.plan.counted_digits:
            values = np.concatenate([values, to_digits(self.trainer.samples())])
        layout = Layout(WORD, len(values))
        return {"words": self.masks.upload("union", layout, values, memory, {})}

    def _choose(self, message: Message, memory: Message) -> Message:
        private = self.plan.private_places
        bits = get(message, "union", np.uint8, (-(-len(private) // 8),))
        union = np.flatnonzero(np.unpackbits(bits, count=len(private)))
        chosen = self._answers(union, memory)
        memory["chosen"] = union[chosen].astype(np.int32)
        return {"chosen": np.packbits(chosen)}

    def _answers(self, union: np.ndarray, memory: Message) -> np.ndarray:
        """bool per row of the union: whether this client names it."""
        policy = self.plan.policy
        if policy.whole_scope:
            return np.ones(len(union), dtype=bool)
        if self.answers is None:
            raise ProtocolError(f"policy {policy.name!r} needs a place for the client's first answers")
        held = np.zeros(len(self.plan.private_places), dtype=bool)
        held[np.searchsorted(self.plan.private_places, self._held(memory))] = True
        return round_answers(self.answers.answers(union, held, policy), policy)

    # ---- the update ----
    def _train(self, message: Message, memory: Message) -> Message:
        self.masks.take_shares(message, memory)
        places = self.places(memory)
        rows = get(message, "rows", np.float32, (len(places), self.plan.width))
        dense = get(message, "dense", np.float32, (self.plan.dense,))
        succinct = np.isin(places, np.concatenate([self.plan.public_places, self._held(memory)]))
        layout, number = self.plan.update_layout(places), round_number(memory)
        if self.gradients is None:
            update = self.trainer.train(number, places[succinct], rows[succinct], dense)
        else:
            mean = float(get(message, MEAN_SAMPLES, np.float64, ())[()])
            scale = self.trainer.samples() / max(mean, 1.0)
            update = self.trainer.train(number, places[succinct], rows[succinct], dense, scale)
            accepted = int(get(message, ACCEPTED, np.int64, ())[()])
            update = self.gradients.difference(
                self.plan, number, accepted, places, succinct, update, _run(memory), _voided(message),
                memory["roster"].tolist() if self.plan.masked else ())
        values = update_words(self.plan, layout, succinct, update)
        if self.plan.noise:
            values = shortened(values, self.plan.noise_norm) + noise_words(self.plan.noise, values.size)
            self._note_cost(values.size, memory)
        told = self._told(rows, dense, message)
        return {"words": self.masks.upload(
            "update", layout, values, memory, self._rows_with(message, memory, places), told)}

    def _note_cost(self, words: int, memory: Message) -> None:
        """No sum is opened without the uploads, and the noise, of more than two thirds of the roster."""
        others = max(quorum(len(memory["roster"])), self.plan.min_clients) - 1
        if self.answers is not None:
            self.answers.ledger.note_sum(
                skellam.renyi(others * self.plan.noise, *skellam.sensitivities(self.plan.noise_norm, words)))

    def _told(self, rows: np.ndarray, dense: np.ndarray, message: Message) -> Callable[[np.ndarray], bytes]:
        """Hash of the model on the rows that a pair shares; on all of them it is computed once."""
        mean = (float(message[MEAN_SAMPLES][()]), *_voided(message)) if MEAN_SAMPLES in message else (0.0,)
        whole = cache(lambda: model_hash(dense, rows, mean))
        return lambda both: whole() if len(both) == len(rows) else model_hash(dense, rows[both], mean)

    def _open_update(self, message: Message, memory: Message) -> Message:
        reply = self.masks.open("update", message, memory)
        if self.gradients is not None:
            self.gradients.note_opened(
                round_number(memory), _run(memory), among(memory["roster"], memory["finished update"]))
        return reply

    def _held(self, memory: Message) -> np.ndarray:
        """Private places that the client's samples use, or that what it sent before lies on."""
        held = self.trainer.held()
        if self.gradients is None:
            return held
        return np.union1d(held, np.intersect1d(self.gradients.places(_run(memory)), self.plan.private_places))

    def places(self, memory: Message) -> np.ndarray:
        """Sorted places that it trains in the round that it remembers. Raises ProtocolError before it has chosen."""
        if self.plan.policy.public_rows:
            return self.plan.public_scope(round_number(memory))
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


def _voided(message: Message) -> tuple[int, ...]:
    """Attempts that all clients of the round are told were never summed."""
    return tuple(get(message, VOIDED, np.int64, (None,)).tolist())


def _run(memory: Message) -> bytes:
    """The run that a remembered round is of, whatever start of it."""
    return memory[RUN][: RUN_BYTES // 2].tobytes() if RUN in memory else NO_RUN

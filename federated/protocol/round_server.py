"""The server's half of a round: seven exchanges at most, from the model's rows to opened sums.

A client that does not answer, answers late or twice, or answers something of another shape than it declared is lost
from that phase on. Where too few are left to open a sum the round is abandoned: RoundAbandoned, and nothing changes.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from contracts.errors import FederatedError, ProtocolError, RoundAbandoned
from federated.privacy.private_set_union import MOST_ADDED, MOST_COUNTED, WORD, Code, DirectCode, from_digits
from federated.protocol.client_masks import round_context
from federated.protocol.messages import (
    MEAN_SAMPLES,
    PHASES,
    ROUND,
    Exchange,
    Message,
    Phase,
    get,
    numbers,
    scalar,
    text,
)
from federated.protocol.plan import LOSS_SCALE, TAIL, Plan
from federated.secure_aggregation import roster_consistency as agreement
from federated.secure_aggregation.fixed_point import signed
from federated.secure_aggregation.identity import ANNOUNCEMENT, SIGNATURE_BYTES, require_signed
from federated.secure_aggregation.masking import NO_ROWS, Layout, Total
from federated.secure_aggregation.neighbour_graph import ring
from federated.secure_aggregation.round_secrets import ANNOUNCEMENT_BYTES, Announcement, Instance
from federated.secure_aggregation.share_exchange import BOX_BYTES
from federated.secure_aggregation.unmasking import SecureSum, model_hash


@dataclass
class OpenedRound:
    """`rows` [space, width] and `dense` [D]: sums of weighted updates; `row_weights` [space]: sums of weights.

    With noise every update has weight 1, and samples and loss are 0: nothing but updates is sent.

    `union` are the private places in scope, `declared` how many rows each client named; `lost` per phase, `seconds`
    per phase, `finished` are the clients whose uploads are in the sums.
    """

    rows: np.ndarray
    row_weights: np.ndarray
    dense: np.ndarray
    dense_weight: float
    samples: int
    samples_held: int
    loss: float
    finished: list[int]
    union: np.ndarray
    declared: dict[int, int]
    lost: dict[str, list[int]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)


class RoundServer:
    """One round. `tables` [space, width] and `dense` [D] are the model as it stands."""

    def __init__(
        self, plan: Plan, number: int, exchange: Exchange, tables: np.ndarray, dense: np.ndarray,
        further: Mapping[int, Message] | None = None,
    ) -> None:
        """`further`: what a client is told beside the model."""
        self.plan, self.number, self.tables, self.dense = plan, number, tables, dense
        self._further = further or {}
        self._exchange = exchange
        self._context = round_context(number)
        self.lost: dict[str, list[int]] = {phase: [] for phase in PHASES}
        self.seconds: dict[str, float] = dict.fromkeys(PHASES, 0.0)
        self._announced: dict[int, Announcement] = {}
        self._signed: dict[int, tuple[int, np.ndarray]] = {}  # who announced it, and the signature
        self._roster, self._hashes = np.empty(0, dtype=np.int32), np.empty((0, agreement.HASH_BYTES), dtype=np.uint8)
        self._dealt: dict[int, list[int]] = {}
        self._boxes: dict[tuple[int, int], np.ndarray] = {}
        self._box_given: set[int] = set()
        self._told_last: tuple[np.ndarray, bytes] | None = None

    def run(self, clients: Iterable[int]) -> OpenedRound:
        """Raises RoundAbandoned when the round cannot be finished."""
        alive = sorted(clients)
        if self.plan.masked:
            alive = self._share_keys(alive)
        union = np.empty(0, dtype=np.int64)
        if self.plan.policy.public_rows:
            places = dict.fromkeys(alive, self.plan.public_scope(self.number))
        else:
            union, alive = self._union(alive)
            places = self._choices(alive, union)
        total, finished = self._update(places)
        return self._opened(total, union, places, finished)

    def holders(self, clients: Iterable[int]) -> tuple[np.ndarray, float]:
        """How many of these clients hold each private row, and the mean of their samples (0 where the rule needs none),
        securely counted. Raises RoundAbandoned."""
        alive = sorted(clients)
        most = MOST_ADDED if self.plan.counted_digits else MOST_COUNTED
        if len(alive) > most:
            raise FederatedError(f"holders of {len(alive)} clients do not fit in words of 16 bits, {most} do; lower "
                                 "federated.population, or take an averaging that counts no holders")
        secure, code = self._memberships(self._share_keys(alive) if self.plan.masked else alive)
        counts = self._open(secure, {})[0].common.astype(np.int64)
        return counts[: code.size], from_digits(counts[code.size :]) / max(len(secure.layouts), 1)

    # ---- key agreement and shares ----
    def _share_keys(self, clients: list[int]) -> list[int]:
        asked = {client: {"clients": scalar(len(clients), np.int32)} for client in clients}
        self._announced = replies = self._ask("keys", asked, self._announcement)
        self._require(len(replies), "keys")
        self._roster = np.array(sorted(signer for signer, _ in self._signed.values()), dtype=np.int32)
        of = {signer: self._announced[client].raw for client, (signer, _) in self._signed.items()}
        hashes = b"".join(agreement.announcement_hash(of[signer]) for signer in self._roster.tolist())
        self._hashes = np.frombuffer(hashes, dtype=np.uint8).reshape(-1, agreement.HASH_BYTES)
        self._context = agreement.roster_context(
            round_context(self.number), self.plan.fingerprint, self._roster, self._hashes)
        graph = self._neighbours()
        dealt = self._ask("shares", {client: self._introduction(client, peers) for client, peers in graph.items()},
                          lambda client, reply: get(reply, "boxes", np.uint8, (len(graph[client]), BOX_BYTES)))
        self._dealt = graph
        self._boxes = {(client, peer): box for client, boxes in dealt.items()
                       for peer, box in zip(graph[client], boxes, strict=True)}
        self._require(len(dealt), "shares")
        return sorted(dealt)

    def _neighbours(self) -> dict[int, list[int]]:
        """Client -> its neighbours, which follow from the roster."""
        client_of = {signer: client for client, (signer, _) in self._signed.items()}
        return {client_of[signer]: sorted(client_of[peer] for peer in peers)
                for signer, peers in ring(self._roster.tolist(), self.plan.neighbours, self.number).items()}

    def _announcement(self, client: int, reply: Message) -> Announcement:
        """Raises ProtocolError when it is not signed, or signed by a client that is in the round already: its
        neighbours would refuse the round."""
        raw = get(reply, "announcement", np.uint8, (ANNOUNCEMENT_BYTES,)).tobytes()
        signer = int(get(reply, "signer", np.int32, ())[()])
        signature = get(reply, "signature", np.uint8, (SIGNATURE_BYTES,))
        require_signed(self.plan.identities, signer, ANNOUNCEMENT, raw, signature.tobytes(), self._context)
        if signer in (known for known, _ in self._signed.values()):
            raise ProtocolError(f"client {signer} of the list is in this round already; its second self is lost")
        self._signed[client] = signer, signature
        return Announcement(raw)

    def _introduction(self, client: int, peers: list[int]) -> Message:
        announcements = np.stack([text(self._announced[peer].raw) for peer in peers])
        return {"me": scalar(client, np.int32), "peers": numbers(peers), "announcements": announcements,
                "signers": numbers([self._signed[peer][0] for peer in peers]),
                "signatures": np.stack([self._signed[peer][1] for peer in peers]), "roster": self._roster,
                "announced": self._hashes}

    def _shares_for(self, client: int) -> Message:
        """The boxes for a client, with its first upload of the round."""
        if not self.plan.masked or client in self._box_given:
            return {}
        self._box_given.add(client)
        senders = [peer for peer in self._dealt[client] if (peer, client) in self._boxes]
        boxes = [self._boxes[peer, client] for peer in senders]
        return {"senders": numbers(senders), "boxes": np.array(boxes, dtype=np.uint8).reshape(-1, BOX_BYTES)}

    # ---- the union ----
    def _union(self, clients: list[int]) -> tuple[np.ndarray, list[int]]:
        """Private places in scope, and the clients still there."""
        secure, code = self._memberships(clients)
        total, alive = self._open(secure, {})
        return self.plan.private_places[code.decode(total.common[: code.size], self.plan.contributors)], alive

    def _memberships(self, clients: list[int]) -> tuple[SecureSum, Code]:
        counted = self.plan.counts_holders(self.number)
        code = self.plan.code if not counted else DirectCode(len(self.plan.private_places))
        layout = Layout(WORD, code.size + self.plan.counted_digits * counted)
        secure = self._secure_sum("union", layout, clients)
        replies = self._ask("union", {client: self._shares_for(client) for client in clients},
                            lambda client, reply: get(reply, "words", WORD, (layout.size,)))
        for client, words in replies.items():
            secure.accept(client, layout, words)
        self._require(len(replies), "union")
        return secure, code

    def _choices(self, clients: list[int], union: np.ndarray) -> dict[int, np.ndarray]:
        """Client -> sorted places that it will train: the public ones and those of the union that it names."""
        private = np.zeros(len(self.plan.private_places), dtype=bool)
        private[np.searchsorted(self.plan.private_places, union)] = True
        packed = np.packbits(private)
        replies = self._ask("choose", {client: {"union": packed} for client in clients},
                            lambda client, reply: get(reply, "chosen", np.uint8, (-(-len(union) // 8),)))
        self._require(len(replies), "choose")
        return {
            client: np.union1d(self.plan.public_places, union[np.unpackbits(bits, count=len(union)).astype(bool)])
            for client, bits in replies.items()
        }

    # ---- the update ----
    def _update(self, places: dict[int, np.ndarray]) -> tuple[Total, list[int]]:
        layouts = {client: self.plan.update_layout(mine) for client, mine in places.items()}
        secure = self._secure_sum("update", self.plan.update_layout(NO_ROWS), list(places))
        replies = self._ask(
            "train", {client: self._submodel(client, places, secure.graph) for client in places},
            lambda client, reply: get(reply, "words", layouts[client].dtype, (layouts[client].size,)))
        for client, words in replies.items():
            secure.accept(client, layouts[client], words)
        self._require(len(replies), "train")
        total, _ = self._open(secure, places)
        return total, sorted(replies)

    def _submodel(self, client: int, places: Mapping[int, np.ndarray], graph: Mapping[int, list[int]]) -> Message:
        mine = places[client]
        message = {"rows": self.tables[mine], "dense": self.dense, **self._shares_for(client)}
        message |= self._further.get(client, {})
        if self.plan.masked:
            message["peers"] = numbers(graph[client])
        if self.plan.masking == "per_row":
            both = [np.packbits(np.isin(mine, places[peer], assume_unique=True)) for peer in graph[client]]
            message["both"] = np.array(both, dtype=np.uint8).reshape(len(both), -(-len(mine) // 8))
        return message

    # ---- sums ----
    def _secure_sum(self, instance: Instance, layout: Layout, clients: list[int]) -> SecureSum:
        """Of these clients, each masking with those of its neighbours that are among them and dealt shares."""
        there = set(clients)
        graph = {client: [peer for peer in self._dealt.get(client, []) if peer in there] for client in clients}
        told = self._told if instance == "update" else lambda places: b""
        return SecureSum(instance, layout, self._context, self._announced, graph, self._dealt, told)

    def _told(self, places: np.ndarray) -> bytes:
        """Pairs that share all rows of a round follow each other: the last answer is kept."""
        if self._told_last is None or not np.array_equal(places, self._told_last[0]):
            mean = next((float(one[MEAN_SAMPLES][()]) for one in self._further.values() if MEAN_SAMPLES in one), 0.0)
            self._told_last = places, model_hash(self.dense, self.tables[places], mean)
        return self._told_last[1]

    def _open(self, secure: SecureSum, places: Mapping[int, np.ndarray]) -> tuple[Total, list[int]]:
        """The sum of the uploads, and the clients that answered last."""
        if not self.plan.masked:
            return secure.total, sorted(secure.layouts)
        questions, agreed = secure.questions(), self._agreed(secure)
        phase: Phase = "open_union" if secure.instance == "union" else "open_update"
        signed = sorted(agreed)[: agreement.quorum(len(self._roster))]
        signatures = {"signers": numbers([self._signed[client][0] for client in signed]),
                      "signatures": np.array([agreed[client] for client in signed], dtype=np.uint8).reshape(
                          -1, SIGNATURE_BYTES)}
        answers = self._ask(
            phase, dict.fromkeys(agreed, signatures),
            lambda client, reply: get(reply, "shares", np.uint8, (sum(map(len, questions[client])), 16)))
        started = time.perf_counter()
        total = secure.open(answers, places)
        self.seconds[phase] += time.perf_counter() - started
        return total, sorted(answers)

    def _agreed(self, secure: SecureSum) -> dict[int, np.ndarray]:
        """Client -> its signature for the uploads that are in the sum."""
        phase: Phase = "agree_union" if secure.instance == "union" else "agree_update"
        bits = agreement.finished_bits(self._roster, [self._signed[client][0] for client in secure.layouts])

        def checked(client: int, reply: Message) -> np.ndarray:
            signature = get(reply, "signature", np.uint8, (SIGNATURE_BYTES,))
            agreement.require_finished_signed(self.plan.identities, secure.instance, bits, self._context,
                                              self._signed[client][0], signature.tobytes())
            return signature

        agreed = self._ask(phase, {client: {"finished": bits} for client in secure.layouts}, checked)
        least = agreement.quorum(len(self._roster))
        if len(agreed) < least:
            raise RoundAbandoned(f"round {self.number}: {len(agreed)} of {len(self._roster)} clients are left in "
                                 f"{phase!r}, {least} are the least; it is abandoned and changes nothing")
        return agreed

    def _require(self, count: int, phase: Phase) -> None:
        if count < self.plan.min_clients:
            raise RoundAbandoned(
                f"round {self.number}: {count} clients are left after {phase!r}, {self.plan.min_clients} are the "
                "least; it is abandoned and changes nothing"
            )

    def _ask(self, phase: Phase, messages: Mapping[int, Message], check) -> dict:  # type: ignore[no-untyped-def]
        """Checked replies; who sends nothing, or something that does not check, is lost."""
        started = time.perf_counter()
        stamp = scalar(self.number, np.int64)
        raw = self._exchange(phase, {client: {ROUND: stamp, **message} for client, message in messages.items()})
        replies = {}
        for client in sorted(messages.keys() & raw.keys()):
            try:
                replies[client] = check(client, raw[client])
            except ProtocolError:
                continue
        self.lost[phase] += sorted(messages.keys() - replies.keys())
        self.seconds[phase] += time.perf_counter() - started
        return replies

    def _opened(
        self, total: Total, union: np.ndarray, places: Mapping[int, np.ndarray], clients: list[int]
    ) -> OpenedRound:
        fixed, dense = self.plan.fixed, self.plan.dense
        sent = signed(total.common[dense : dense + TAIL])
        tail = np.array([len(clients), 0, 0, 0]) if self.plan.noise else sent
        return OpenedRound(
            rows=fixed.decode(total.rows[:, :-1]), row_weights=signed(total.rows[:, -1]),
            dense=fixed.decode(total.common[:dense]), dense_weight=float(tail[0]), samples=int(tail[1]),
            samples_held=int(tail[2]), loss=float(tail[3]) / LOSS_SCALE / max(int(tail[1]), 1), finished=clients,
            union=union, declared={client: len(mine) for client, mine in places.items()}, lost=self.lost,
            seconds=self.seconds,
        )

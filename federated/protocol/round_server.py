"""The server's half of a round: seven exchanges at most, from the model's rows to opened sums.

    keys ▶ shares                      federated/protocol/key_agreement.py
    union ▶ agree ▶ open ▶ choose      federated/protocol/union_phases.py, sum_opening.py
    train ▶ agree ▶ open               federated/protocol/update_phase.py, sum_opening.py

Where too few are left to open a sum, or what is opened can be no sum of honest uploads, the round is abandoned:
RoundAbandoned, and nothing changes.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from federated.privacy.private_set_union import from_digits
from federated.protocol.key_agreement import KeyAgreement
from federated.protocol.messages import RUN_BYTES, Exchange, Message
from federated.protocol.plan import LOSS_SCALE, TAIL, Plan
from federated.protocol.plausible_sums import require_counts, require_plausible
from federated.protocol.questions import Steps, carried_out
from federated.protocol.round_phases import RoundPhases
from federated.protocol.sum_opening import open_sum
from federated.protocol.union_phases import choices, memberships, private_union
from federated.protocol.update_phase import UpdatePhase
from federated.secure_aggregation.fixed_point import signed
from federated.secure_aggregation.masking import Total


@dataclass(kw_only=True)
class OpenedRound:
    """`rows` [space, width] and `dense` [D]: sums of weighted updates; `row_weights` [space]: sums of weights.

    With noise every update has weight 1, and samples and loss are 0: nothing but updates is sent.

    `union` are the private places in scope and `in_union` the clients whose words it was made of; `places`: client ->
    the rows that it named; `lost` per phase, `seconds` per phase, `finished` are the clients whose uploads are in the
    sums.
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
    in_union: list[int]
    places: Mapping[int, np.ndarray]
    lost: dict[str, list[int]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)


class Holders(NamedTuple):
    """`of_row` int64 per private row: how many of `clients` hold it; `samples` of all of them (0 where the rule needs
    none)."""

    of_row: np.ndarray
    samples: int
    clients: int


class Prepared(NamedTuple):
    """What a round has before it has a model: the rows that each client names, and what `OpenedRound` says of the
    union."""

    places: Mapping[int, np.ndarray]
    union: np.ndarray
    in_union: list[int]


class RoundServer:
    """One round. `tables` [space, width] and `dense` [D] are the model as it stands, looked at when rows are chosen;
    `further`: what a client is told beside it."""

    def __init__(
        self, plan: Plan, number: int, exchange: Exchange, tables: np.ndarray, dense: np.ndarray,
        further: Mapping[int, Message] | None = None, run: bytes | None = None,
    ) -> None:
        """`run` [32]: of which run, and of which start of it, the round is (None: of one of its own)."""
        self.plan, self.number, self.exchange = plan, number, exchange
        self.tables, self.dense, self.further = tables, dense, further or {}
        self.phases = RoundPhases(number, plan.min_clients)
        self._keys = KeyAgreement(plan, self.phases, run or secrets.token_bytes(RUN_BYTES))

    def run(self, clients: Iterable[int]) -> OpenedRound:
        """Raises RoundAbandoned when the round cannot be finished."""
        return self.finished(carried_out(self.exchange, self.prepare(clients)))

    def finished(self, prepared: Prepared) -> OpenedRound:
        """The rest of a round, each phase by itself."""
        return carried_out(self.exchange, self.finish(prepared))

    def prepare(self, clients: Iterable[int]) -> Steps[Prepared]:
        """All phases before `train`: none of them needs the model."""
        alive = yield from self._with_keys(clients)
        union, in_union = np.empty(0, dtype=np.int64), list[int]()
        if self.plan.policy.public_rows:
            return Prepared(dict.fromkeys(alive, self.plan.public_scope(self.number)), union, in_union)
        union, in_union, alive = yield from private_union(self._keys, alive)
        places = yield from choices(self._keys, alive, union)
        return Prepared(places, union, in_union)

    def finish(self, prepared: Prepared) -> Steps[OpenedRound]:
        """Training and what opens its sum."""
        update = UpdatePhase(self._keys, self.tables, self.dense, self.further)
        total, finished = yield from update.run(prepared.places)
        require_plausible(self.plan, self.number, total, prepared.places, finished)
        return self._opened(total, prepared, finished)

    def holders(self, clients: Iterable[int]) -> Holders:
        """Who of these clients holds each private row, securely counted. Raises RoundAbandoned."""
        return carried_out(self.exchange, self._counted(clients))

    def _counted(self, clients: Iterable[int]) -> Steps[Holders]:
        alive = yield from self._with_keys(clients)
        secure, code = yield from memberships(self._keys, alive)
        total, _ = yield from open_sum(self._keys, secure, {})
        counts = total.common.astype(np.int64)
        require_counts(self.number, counts, code.size, sorted(secure.layouts))
        return Holders(counts[: code.size], from_digits(counts[code.size :]), len(secure.layouts))

    def _with_keys(self, clients: Iterable[int]) -> Steps[list[int]]:
        """The clients that are there once keys and shares are exchanged; all where there are no masks."""
        alive = sorted(clients)
        if self.plan.masked:
            alive = yield from self._keys.share_keys(alive)
        return alive

    def _opened(self, total: Total, prepared: Prepared, clients: list[int]) -> OpenedRound:
        fixed, dense = self.plan.fixed, self.plan.dense
        sent = signed(total.common[dense : dense + TAIL])
        tail = np.array([len(clients), 0, 0, 0]) if self.plan.noise else sent
        return OpenedRound(
            rows=fixed.decode(total.rows[:, :-1]), row_weights=signed(total.rows[:, -1]),
            dense=fixed.decode(total.common[:dense]), dense_weight=float(tail[0]), samples=int(tail[1]),
            samples_held=int(tail[2]), loss=float(tail[3]) / LOSS_SCALE / max(int(tail[1]), 1), finished=clients,
            union=prepared.union, in_union=prepared.in_union, places=prepared.places, lost=self.phases.lost,
            seconds=self.phases.seconds,
        )

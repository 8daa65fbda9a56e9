"""Rounds one after another: choose clients, run a round, move the model, keep what a restart needs.

Files: federated/rounds/run_folder.py. A round that is abandoned changes nothing and is drawn anew; a server started
again goes on after the last completed one. Where rounds overlap, the next one is prepared meanwhile
(federated/rounds/overlap.py), in peace alone: not while somebody is suspected, nor in a round of which an attempt was
abandoned.
"""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from contracts.errors import FederatedError, RoundAbandoned
from contracts.summaries.federated import RoundFigures
from federated.averaging.averaging import BY_CLIENTS, row_steps
from federated.averaging.fedlaavg import LatestAverage
from federated.averaging.server_optimizer import ServerOptimizer
from federated.clients.availability import Availability
from federated.protocol.messages import (
    ACCEPTED,
    MEAN_SAMPLES,
    PHASES,
    RUN_BYTES,
    VOIDED,
    Exchange,
    Message,
    scalar,
)
from federated.protocol.plan import ATTEMPTS, Plan
from federated.protocol.round_server import OpenedRound, RoundServer
from federated.rounds import run_folder
from federated.rounds.byte_count import ByteCount
from federated.rounds.cohorts import Cohorts, of_rounds
from federated.rounds.holder_counts import HolderCount
from federated.rounds.overlap import Attempt, carried_through
from federated.rounds.suspicion import Suspicion
from federated.rounds.voids import Voids

LONGEST_WAIT = 1000  # rounds
UP_TO_UPLOAD = PHASES[: PHASES.index("train") + 1]
Evaluate = Callable[[np.ndarray, np.ndarray], Mapping[str, float]]
"""Rows and dense part of a model -> AUCs, as RoundFigures names them."""
OnRound = Callable[[RoundFigures], None]


@dataclass(kw_only=True)
class FederatedRun:
    """One setting's model as it moves: `rows` [space, width] and `dense` [D]. `exchange` numbers its clients 0 ..
    population - 1; `available` None: all are there; `there_now`: the same without waiting for nodes, in the middle of a
    round (None: `available`). `counted` is what the exchange counts into. `accused` dealt shares that do not open and
    are asked no more; with `cohorts` a round takes a whole group of clients, always the same ones
    (federated/rounds/cohorts.py); with `overlap` the next round is prepared while one ends."""

    plan: Plan
    exchange: Exchange
    population: int
    folder: Path
    seed: int
    rows: np.ndarray
    dense: np.ndarray
    largest_heat: float = 1.0
    heat: np.ndarray | None = None
    available: Availability | None = None
    there_now: Availability | None = None
    counted: ByteCount = field(default_factory=ByteCount)
    history: list[RoundFigures] = field(default_factory=list)
    latest: LatestAverage | None = None
    optimizer: ServerOptimizer = field(default_factory=ServerOptimizer)
    cohorts: bool = False
    overlap: bool = False
    on_opened: Callable[[OpenedRound], None] = lambda opened: None
    mean_samples: float = 0.0
    waited: int = 0
    accused: set[int] = field(default_factory=set)
    voids: Voids = field(default_factory=Voids)
    suspicion: Suspicion = field(init=False)
    _abandoned: list[int] = field(default_factory=list)
    _last: int = 0
    _ahead: Attempt | None = None

    def __post_init__(self) -> None:
        self.suspicion = Suspicion(self.plan.min_clients)

    @cached_property
    def _run(self) -> bytes:
        """What the clients' memories of the model and the signatures of this start are bound to."""
        return run_folder.name_of(self.folder) + secrets.token_bytes(RUN_BYTES // 2)

    def count_population(self, clients: Sequence[int] | None = None) -> None:
        """Who holds what, where the averaging needs it, of these clients (None: of all)."""
        if self.plan.rule not in BY_CLIENTS:
            return
        count = HolderCount(self.plan, self._server, self.seed, self.suspicion, self.accused)
        found = count.of(self.folder, range(self.population) if clients is None else clients)
        self.mean_samples, self.heat = found.mean_samples, found.clients / found.of_row
        if self.plan.rule == "latest":
            self.latest = LatestAverage(self.dense.astype(np.float64), self.rows.astype(np.float64), self.population,
                                        1.0, found.of_row, found.clients)

    def _server(self, number: int, further: Mapping[int, Message] | None = None) -> RoundServer:
        return RoundServer(self.plan, number, self.exchange, self.rows, self.dense, further, self._run)

    def resume(self) -> int:
        """Takes up the model of the last completed round, and what was void after it; returns how many are done."""
        found = run_folder.saved(self.folder, self.rows, self.dense)
        if found is None:
            return 0
        stored, self.history = found
        self.rows, self.dense = stored["rows"], stored["dense"]
        if self.latest is not None:
            self.latest.restore(stored)
            self.latest.rows, self.latest.dense = self.rows.astype(np.float64), self.dense.astype(np.float64)
            self.voids.restore(stored)
            self._last = max(self._last, *self.voids.uploads, 0)
        self.optimizer.restore(stored)
        self.waited = self.history[-1].waited if self.history else self.waited
        return len(self.history)

    def run(self, rounds: int, evaluate: Evaluate, evaluate_every: int, on_round: OnRound) -> None:
        """Raises RoundAbandoned when several rounds in a row cannot be finished."""
        first = self.resume() + 1
        self.counted.take()
        for number in range(first, rounds + 1):
            started, self._abandoned = time.perf_counter(), []
            opened, attempt, failed = self._complete(number, number < rounds)
            self._move(opened, attempt.server.number)
            self.on_opened(opened)
            seconds = time.perf_counter() - started
            evaluated = number % evaluate_every == 0 or number == rounds
            entry = RoundFigures(
                round=number, clients=len(opened.finished), loss=opened.loss if opened.samples else None,
                kept=opened.samples / opened.samples_held if opened.samples_held else None, union=len(opened.union),
                declared=float(np.mean([len(mine) for mine in opened.places.values()])),
                lost={phase: len(lost) for phase, lost in opened.lost.items() if lost},
                seconds_per_phase=opened.seconds, abandoned=failed,
                abandoned_uploads=tuple(self._abandoned), bytes=self.counted.take(),
                left_out=self.suspicion.not_asked, waited=attempt.waited, seconds=seconds,
                **(evaluate(self.rows, self.dense) if evaluated else {}),
            )
            self.history.append(entry)
            self._save(number, self.best() is entry)
            on_round(entry)

    def _complete(self, number: int, more: bool) -> tuple[OpenedRound, Attempt, int]:
        """Draws clients until a round is finished; returns it, its attempt, and how many were abandoned before. After
        ATTEMPTS of which nothing was learned it is given up; `more` rounds come after it."""
        self.suspicion.begin_round()
        failed = in_vain = 0
        while in_vain < ATTEMPTS:
            attempt, suspects = self._attempt(number), len(self.suspicion.suspects)
            try:
                opened, self._ahead = carried_through(
                    self.exchange, attempt, partial(self._next, number + 1, more and not failed))
                self.suspicion.fine(opened.finished)
                self.voids.heard(opened.finished)
                return opened, attempt, failed
            except RoundAbandoned as error:
                reason = error
                self._note_abandoned(attempt, error)
                failed, in_vain = failed + 1, in_vain + (len(self.suspicion.suspects) >= suspects)
        raise RoundAbandoned(f"{failed} rounds in a row were abandoned; the last because: {reason}")

    def _attempt(self, number: int) -> Attempt:
        """What was prepared, from the model as it is now, else a new one."""
        if self._ahead is not None:
            attempt, self._ahead = self._ahead, None
            attempt.server.tables, attempt.server.dense = self.rows, self.dense
            return attempt
        return self._of(number, self._there(number, self.available, LONGEST_WAIT))

    def _of(self, number: int, there: list[int]) -> Attempt:
        """A new one. Numbers of the protocol only rise."""
        unique = self._last = max(number * ATTEMPTS, self._last + 1)
        chosen = self._choose(unique, there)
        return Attempt(self._server(unique, self._further(chosen)), chosen, self.waited)

    def _next(self, number: int, peace: bool) -> Attempt | None:
        """To be prepared beside this round, in peace and while nobody is suspected; where too few are there now,
        nothing is: this round's clients wait meanwhile."""
        if not (self.overlap and peace) or self.suspicion.suspects:
            return None
        try:
            return self._of(number, self._there(number, self.there_now or self.available, 1))
        except FederatedError:
            return None

    def _note_abandoned(self, attempt: Attempt, error: RoundAbandoned) -> None:
        self.accused |= set(error.accused)
        if error.suspects:
            self.suspicion.spoilt(error.suspects)
        phases = attempt.server.phases
        uploads = frozenset(attempt.clients) - {client for phase in UP_TO_UPLOAD for client in phases.lost[phase]}
        if phases.seconds["train"]:
            self._abandoned.append(len(uploads))
        if phases.seconds["open_update"] and self.latest is not None:
            self.voids.note(attempt.server.number, uploads)
            self._save(len(self.history), best=False)

    def _there(self, number: int, available: Availability | None, looks: int) -> list[int]:
        """Who can be reached; the round waits while too few can. Raises RoundAbandoned when they never come in so many
        `looks`."""
        if available is None:
            return [client for client in range(self.population) if client not in self.accused]
        for waited in range(self.waited, self.waited + looks):
            there = [client for client in available(number + waited) if client not in self.accused]
            if len(there) >= self.plan.min_clients:
                self.waited = waited
                return there
        raise RoundAbandoned(
            f"round {number}: {looks} times in a row fewer than {self.plan.min_clients} clients could be "
            "reached; raise federated.availability_share or lower federated.min_clients"
        )

    def _choose(self, unique: int, there: list[int]) -> list[int]:
        drawn = random.Random(self.seed * 1_000_003 + unique)
        if self.latest is not None:
            longest, most = self._longest_unseen(self.latest, there)
            chosen = self.suspicion.without(longest, drawn, most)
            self.latest.note_seen(unique, chosen)
            return chosen
        if self.cohorts:
            groups = self._cohorts.there(there)
            chosen = drawn.sample(groups, len(groups))[0]
        else:
            chosen = sorted(drawn.sample(there, min(self.plan.clients, len(there))))
        return self.suspicion.without(chosen, drawn)

    def _longest_unseen(self, latest: LatestAverage, there: list[int]) -> tuple[list[int], int | None]:
        """Who is asked, and how many of them may be left out (None: a third, where nobody has to hear of anything):
        first those who have to hear together that an attempt is void, by themselves while one of them is sought."""
        together = self.voids.together([client for client in there if client not in self.suspicion.found])
        others = [client for client in there if client not in self.voids.owed and client not in together]
        room = 0 if together and self.suspicion.suspects else max(self.plan.clients - len(together), 0)
        return sorted(together + latest.choose(others, room)), self.voids.spare(together) if together else None

    @cached_property
    def _cohorts(self) -> Cohorts:
        plan = self.plan
        most = max(plan.clients, plan.fixed.most_clients(plan.max_samples))
        return of_rounds(self.population, plan.clients, plan.policy, self.seed, most, plan.min_clients)

    def _further(self, chosen: list[int]) -> Mapping[int, Message]:
        if self.latest is None:
            return {}
        to_all = {MEAN_SAMPLES: np.array(self.mean_samples), VOIDED: np.array(self.voids.told(chosen), dtype=np.int64)}
        return {client: {ACCEPTED: scalar(int(self.latest.accepted[client]), np.int64), **to_all} for client in chosen}

    def _move(self, opened: OpenedRound, unique: int) -> None:
        if self.latest is not None:
            self.latest.apply(unique, opened.finished, opened.dense, opened.rows)
            self.rows, self.dense = self.latest.rows.astype(np.float32), self.latest.dense.astype(np.float32)
            self.latest.rows, self.latest.dense = self.rows.astype(np.float64), self.dense.astype(np.float64)
            return
        steps = row_steps(
            self.plan.rule, opened.rows, opened.row_weights, opened.dense_weight, self.heat, self.largest_heat
        )
        rows = self.optimizer.step("rows", steps, self._trained(opened))
        dense = self.optimizer.step("dense", opened.dense / max(opened.dense_weight, 1.0))
        self.rows, self.dense = self.rows + rows.astype(np.float32), self.dense + dense.astype(np.float32)

    def _trained(self, opened: OpenedRound) -> np.ndarray:
        """bool per row: under noise, which hides who used which, all that the round named."""
        if self.plan.noise:
            return np.isin(np.arange(self.plan.space), opened.places[opened.finished[0]], assume_unique=True)
        return opened.row_weights > 0

    def best(self) -> RoundFigures:
        """The round that is served: the one with the best validation AUC, else the last."""
        evaluated = [(entry.auc_validation, entry) for entry in self.history if entry.auc_validation is not None]
        return max(evaluated, key=lambda pair: pair[0])[1] if evaluated else self.history[-1]

    def _save(self, number: int, best: bool) -> None:
        model = {"rows": self.rows, "dense": self.dense, "round": np.array([number])}
        latest = self.latest.state() | self.voids.state() if self.latest is not None else {}
        run_folder.save(self.folder, self.history, model | latest | dict(self.optimizer.state()), best)

"""Rounds one after another: choose clients, run a round, move the model, keep what a restart needs.

    FOLDER/runs/SETTING/model.safetensors   rows, dense and the last completed round, replaced by rename after each
    FOLDER/runs/SETTING/best.safetensors    the same of the round with the best validation AUC
    FOLDER/runs/SETTING/history.json        the figures of each round, with its bytes
    FOLDER/runs/SETTING/run.name            16 random bytes: in another folder all clients begin anew

A round that is abandoned changes nothing and is drawn anew; a server started again goes on after the last completed
one.
"""

from __future__ import annotations

import json
import random
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from contracts.atomic_write import aside, durable, write_json
from contracts.bundle.bundle import load_weights, save_weights
from contracts.errors import FederatedError, RoundAbandoned
from contracts.summaries.federated import RoundFigures
from federated.averaging.averaging import BY_CLIENTS, row_steps
from federated.averaging.fedlaavg import LatestAverage
from federated.averaging.server_optimizer import ServerOptimizer
from federated.clients.availability import Availability
from federated.protocol.byte_count import ByteCount
from federated.protocol.messages import ACCEPTED, MEAN_SAMPLES, PHASES, RUN_BYTES, VOIDED, Exchange, Message, scalar
from federated.protocol.plan import ATTEMPTS, TOGETHER, Plan
from federated.protocol.round_server import Holders, OpenedRound, RoundServer
from federated.rounds.cohorts import Cohorts, of_rounds
from federated.rounds.suspicion import Suspicion
from federated.secure_aggregation.roster_consistency import quorum

MODEL, BEST, HISTORY = "model.safetensors", "best.safetensors", "history.json"
POPULATION, RUN_NAME = "population.safetensors", "run.name"
LONGEST_WAIT = 1000  # rounds
UP_TO_UPLOAD = PHASES[: PHASES.index("train") + 1]
Evaluate = Callable[[np.ndarray, np.ndarray], Mapping[str, float]]
"""Rows and dense part of a model -> AUCs, as RoundFigures names them."""
OnRound = Callable[[RoundFigures], None]


class Voided(NamedTuple):
    """An attempt that clients helped to open and that was abandoned all the same, and whose uploads it had."""

    number: int = 0
    clients: frozenset[int] = frozenset()


@dataclass(kw_only=True)
class FederatedRun:
    """One setting's model as it moves: `rows` [space, width] and `dense` [D]. `exchange` numbers its clients 0 ..
    population - 1; `available` None: all are there. `counted` is what the exchange counts into. `accused` dealt shares
    that do not open and are asked no more; with `cohorts` a round takes a whole group of clients, always the same ones
    (federated/rounds/cohorts.py); `voided` clients hear together that an attempt was never summed."""

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
    counted: ByteCount = field(default_factory=ByteCount)
    history: list[RoundFigures] = field(default_factory=list)
    latest: LatestAverage | None = None
    optimizer: ServerOptimizer = field(default_factory=ServerOptimizer)
    cohorts: bool = False
    on_opened: Callable[[OpenedRound], None] = lambda opened: None
    mean_samples: float = 0.0
    waited: int = 0
    accused: set[int] = field(default_factory=set)
    voided: Voided = field(default_factory=Voided)
    _abandoned: list[int] = field(default_factory=list)
    suspicion: Suspicion = field(init=False)

    def __post_init__(self) -> None:
        self.suspicion = Suspicion(self.plan.min_clients)

    @cached_property
    def _run(self) -> bytes:
        """What the clients' memories of the model and the signatures of this start are bound to."""
        if not (self.folder / RUN_NAME).exists():
            with durable(self.folder / RUN_NAME) as draft:
                draft.write_bytes(secrets.token_bytes(RUN_BYTES // 2))
        return (self.folder / RUN_NAME).read_bytes() + secrets.token_bytes(RUN_BYTES // 2)

    def count_population(self, clients: Sequence[int] | None = None) -> None:
        """Who holds what, where the averaging needs it: securely counted unions of these clients (None: of all), in
        groups of at most TOGETHER. Counted once and kept: another count may lack other clients, and a running mean is
        divided by this one for ever."""
        if self.plan.rule not in BY_CLIENTS:
            return
        if not (self.folder / POPULATION).exists():
            self._count(range(self.population) if clients is None else clients)
        counted = load_weights(self.folder / POPULATION)
        self.mean_samples, there = float(counted["mean_samples"][0]), int(counted["clients"][0])
        of_row = np.full(self.plan.space, float(there))
        if self.plan.policy.name != "all" or self.plan.rule == "heat":
            of_row[self.plan.private_places] = np.maximum(counted["holders"], 1)
        self.heat = there / of_row
        if self.plan.rule == "latest":
            self.latest = LatestAverage(
                self.dense.astype(np.float64), self.rows.astype(np.float64), self.population, 1.0, of_row, there)

    def _count(self, clients: Sequence[int]) -> None:
        groups = np.array_split(np.asarray(clients), max(1, -(-len(clients) // TOGETHER)))
        counted = [self._group(group.tolist()) for group in groups]
        number = max(sum(each.clients for each in counted), 1)
        self.folder.mkdir(parents=True, exist_ok=True)
        _replace(self.folder / POPULATION, {
            "holders": np.sum([each.of_row for each in counted], axis=0), "clients": np.array([number]),
            "mean_samples": np.array([sum(each.samples for each in counted) / number])})

    def _group(self, clients: list[int]) -> Holders:
        """In the numbers before the first round's. Raises RoundAbandoned after as many attempts as a round has."""
        self.suspicion.begin_round()
        for number in range(ATTEMPTS):
            there = self.suspicion.without(
                [client for client in clients if client not in self.accused], random.Random(self.seed + number))
            try:
                server = RoundServer(self.plan, number, self.exchange, self.rows, self.dense, run=self._run)
                return server.holders(there)
            except RoundAbandoned as error:
                reason = error
                self._note(error)
        raise RoundAbandoned(f"holders were not counted in {ATTEMPTS} attempts; the last because: {reason}")

    def resume(self) -> int:
        """Takes up the model of the last completed round, if there is one; returns how many are done."""
        if not (self.folder / MODEL).exists():
            return 0
        stored = load_weights(self.folder / MODEL)
        if stored["rows"].shape != self.rows.shape or stored["dense"].shape != self.dense.shape:
            raise FederatedError(f"{self.folder} holds a model of another shape; give another output folder")
        self.rows, self.dense = np.array(stored["rows"]), np.array(stored["dense"])
        if self.latest is not None:
            self.latest.restore(stored)
            self.latest.rows, self.latest.dense = self.rows.astype(np.float64), self.dense.astype(np.float64)
        self.optimizer.restore(stored)
        done = int(stored["round"][0])
        entries = json.loads((self.folder / HISTORY).read_text(encoding="utf-8"))
        self.history = [RoundFigures.model_validate(entry) for entry in entries[:done]]
        self.waited = self.history[-1].waited
        return done

    def run(self, rounds: int, evaluate: Evaluate, evaluate_every: int, on_round: OnRound) -> None:
        """Raises RoundAbandoned when several rounds in a row cannot be finished."""
        first = self.resume() + 1
        self.counted.take()
        for number in range(first, rounds + 1):
            started, self._abandoned = time.perf_counter(), []
            opened, unique = self._complete(number)
            self._move(opened, unique)
            self.on_opened(opened)
            seconds = time.perf_counter() - started
            evaluated = number % evaluate_every == 0 or number == rounds
            entry = RoundFigures(
                round=number, clients=len(opened.finished), loss=opened.loss if opened.samples else None,
                kept=opened.samples / opened.samples_held if opened.samples_held else None, union=len(opened.union),
                declared=float(np.mean([len(mine) for mine in opened.places.values()])),
                lost={phase: len(lost) for phase, lost in opened.lost.items() if lost},
                seconds_per_phase=opened.seconds, abandoned=unique % ATTEMPTS,
                abandoned_uploads=tuple(self._abandoned), bytes=self.counted.take(),
                left_out=self.suspicion.not_asked, waited=self.waited, seconds=seconds,
                **(evaluate(self.rows, self.dense) if evaluated else {}),
            )
            self.history.append(entry)
            self._save(number)
            on_round(entry)

    def _complete(self, number: int) -> tuple[OpenedRound, int]:
        """Draws clients until a round is finished; returns it and its number in the protocol."""
        self.suspicion.begin_round()
        for unique in range(number * ATTEMPTS, (number + 1) * ATTEMPTS):
            chosen = self._choose(unique, self._there(number))
            further = self._further(chosen)
            server = RoundServer(self.plan, unique, self.exchange, self.rows, self.dense, further, self._run)
            try:
                opened = server.run(chosen)
                self.suspicion.fine(opened.finished)
                self.voided = Voided() if self._hear(chosen) else self.voided
                return opened, unique
            except RoundAbandoned as error:
                reason = error
                self._note(error)
                self._note_abandoned(unique, chosen, server)
        raise RoundAbandoned(f"{ATTEMPTS} rounds in a row were abandoned; the last because: {reason}")

    def _note(self, error: RoundAbandoned) -> None:
        self.accused |= set(error.accused)
        if error.suspects:
            self.suspicion.spoilt(error.suspects)

    def _note_abandoned(self, unique: int, chosen: list[int], server: RoundServer) -> None:
        uploads = frozenset(chosen) - {client for phase in UP_TO_UPLOAD for client in server.phases.lost[phase]}
        if server.phases.seconds["train"]:
            self._abandoned.append(len(uploads))
        if server.phases.seconds["open_update"]:
            self.voided = Voided(unique, uploads)

    def _hear(self, chosen: list[int]) -> bool:
        """Whether so many of the voided attempt are chosen that they believe it."""
        return bool(self.voided.number) and len(self.voided.clients & set(chosen)) >= quorum(len(self.voided.clients))

    def _there(self, number: int) -> list[int]:
        """Who can be reached; the round waits while too few can. Raises RoundAbandoned when they never come."""
        if self.available is None:
            return [client for client in range(self.population) if client not in self.accused]
        for waited in range(self.waited, self.waited + LONGEST_WAIT):
            there = [client for client in self.available(number + waited) if client not in self.accused]
            if len(there) >= self.plan.min_clients:
                self.waited = waited
                return there
        raise RoundAbandoned(
            f"round {number}: {LONGEST_WAIT} times in a row fewer than {self.plan.min_clients} clients could be "
            "reached; raise federated.availability_share or lower federated.min_clients"
        )

    def _choose(self, unique: int, there: list[int]) -> list[int]:
        if self.latest is not None:
            together = sorted(self.voided.clients & set(there))
            together = together if self._hear(together) else []
            others = [client for client in there if client not in self.voided.clients]
            chosen = sorted(together + self.latest.choose(others, self.plan.clients - len(together)))
            self.latest.note_seen(unique, chosen)
            return chosen
        drawn = random.Random(self.seed * 1_000_003 + unique)
        if self.cohorts:
            groups = self._cohorts.there(there)
            chosen = drawn.sample(groups, len(groups))[0]
        else:
            chosen = sorted(drawn.sample(there, min(self.plan.clients, len(there))))
        return self.suspicion.without(chosen, drawn)

    @cached_property
    def _cohorts(self) -> Cohorts:
        plan = self.plan
        most = max(plan.clients, plan.fixed.most_clients(plan.max_samples))
        return of_rounds(self.population, plan.clients, plan.policy, self.seed, most, plan.min_clients)

    def _further(self, chosen: list[int]) -> Mapping[int, Message]:
        if self.latest is None:
            return {}
        voided = self.voided.number if self._hear(chosen) else 0
        to_all = {MEAN_SAMPLES: np.array(self.mean_samples), VOIDED: scalar(voided, np.int64)}
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

    def _save(self, number: int) -> None:
        write_json(
            self.folder / HISTORY, [entry.model_dump(mode="json", exclude_none=True) for entry in self.history], None)
        model = {"rows": self.rows, "dense": self.dense, "round": np.array([number])}
        if self.best().round == number:
            _replace(self.folder / BEST, model)
        latest = self.latest.state() if self.latest is not None else {}
        _replace(self.folder / MODEL, model | latest | dict(self.optimizer.state()))


def _replace(path: Path, model: dict[str, np.ndarray]) -> None:
    with aside(path) as draft:
        save_weights(draft, model)

"""Rounds one after another: choose clients, run a round, move the model, keep what a restart needs.

    FOLDER/runs/SETTING/model.safetensors   rows, dense and the last completed round, replaced by rename after each
    FOLDER/runs/SETTING/history.json        one entry a round

A round that is abandoned changes nothing and is drawn anew; a server started again goes on after the last completed
one.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from contracts.bundle import load_weights, save_weights
from contracts.errors import FederatedError, RoundAbandoned
from federated.availability import Availability
from federated.averaging import row_steps
from federated.messages import Exchange
from federated.plan import Plan
from federated.round_server import OpenedRound, RoundServer

MODEL, HISTORY = "model.safetensors", "history.json"
ABANDONED_IN_A_ROW = 5
Evaluate = Callable[[np.ndarray, np.ndarray], dict[str, float]]
OnRound = Callable[[dict[str, Any]], None]


@dataclass
class FederatedRun:
    """One setting's model as it moves. `exchange` numbers its clients 0 .. population - 1; `available` None: all are
    there."""

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
    history: list[dict[str, Any]] = field(default_factory=list)

    def resume(self) -> int:
        """Takes up the model of the last completed round, if there is one; answers how many are done."""
        if not (self.folder / MODEL).exists():
            return 0
        stored = load_weights(self.folder / MODEL)
        if stored["rows"].shape != self.rows.shape or stored["dense"].shape != self.dense.shape:
            raise FederatedError(f"{self.folder} holds a model of another shape; give another output folder")
        self.rows, self.dense = np.array(stored["rows"]), np.array(stored["dense"])
        done = int(stored["round"][0])
        self.history = json.loads((self.folder / HISTORY).read_text(encoding="utf-8"))[:done]
        return done

    def run(self, rounds: int, evaluate: Evaluate, evaluate_every: int, on_round: OnRound) -> None:
        """Raises RoundAbandoned when several rounds in a row cannot be finished."""
        for number in range(self.resume() + 1, rounds + 1):
            started = time.perf_counter()
            opened, abandoned = self._complete(number)
            self._move(opened)
            entry: dict[str, Any] = {
                "round": number, "clients": opened.clients, "loss": opened.loss, "abandoned": abandoned,
                "kept": opened.samples / max(opened.samples_held, 1), "union": len(opened.union),
                "declared": float(np.mean(list(opened.declared.values()))),
                "lost": {phase: len(lost) for phase, lost in opened.lost.items() if lost},
                "seconds_per_phase": opened.seconds, "seconds": time.perf_counter() - started,
            }
            if number % evaluate_every == 0 or number == rounds:
                entry |= evaluate(self.rows, self.dense)
            self.history.append(entry)
            self._save(number)
            on_round(entry)

    def _complete(self, number: int) -> tuple[OpenedRound, int]:
        """Draws clients until a round is finished; protocol rounds are numbered so that no number comes twice."""
        for attempt in range(ABANDONED_IN_A_ROW):
            unique = number * ABANDONED_IN_A_ROW + attempt
            there = self.available(unique) if self.available else list(range(self.population))
            drawn = random.Random(self.seed * 1_000_003 + unique)
            chosen = drawn.sample(there, min(self.plan.clients, len(there)))
            try:
                return RoundServer(self.plan, unique, self.exchange, self.rows, self.dense).run(chosen), attempt
            except RoundAbandoned as error:
                reason = error
        raise RoundAbandoned(f"{ABANDONED_IN_A_ROW} rounds in a row were abandoned; the last because: {reason}")

    def _move(self, opened: OpenedRound) -> None:
        steps = row_steps(
            self.plan.rule, opened.rows, opened.row_weights, opened.dense_weight, self.heat, self.largest_heat
        )
        self.rows = self.rows + steps.astype(np.float32)
        self.dense = self.dense + (opened.dense / max(opened.dense_weight, 1.0)).astype(np.float32)

    def _save(self, number: int) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        history = self.folder / f".{HISTORY}"
        history.write_text(json.dumps(self.history), encoding="utf-8")
        history.replace(self.folder / HISTORY)
        aside = self.folder / f".{MODEL}"
        save_weights(aside, {"rows": self.rows, "dense": self.dense, "round": np.array([number])})
        aside.replace(self.folder / MODEL)

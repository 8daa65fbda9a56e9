"""Runs of one ranker on one set: the platform and its peer, each in a process of its own, in turns."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.peers.environment import run_module
from benchmarks.peers.plan import OUTCOME, Outcome, Plan
from contracts.artifacts import LABEL
from models.evaluation.metrics import auc
from models.examples.batches import ExampleSet

SIDES = ("sluice", "fuxictr")
LEAST = 1e-7  # nearer to 0 and 1 than this no float32 probability comes


class Side(NamedTuple):
    """Its interpreter and what it reads."""

    python: Path
    rows: Path


class Run(NamedTuple):
    """AUC of both windows, log loss of the test window; `test` [N] its probabilities."""

    plan: Plan
    outcome: Outcome
    validation_auc: float
    auc: float
    log_loss: float
    test: np.ndarray


class Match:
    """`labels`: window -> those of its rows. Every run's files go below `scratch`; `merge`: one that lies there and
    was told the same is taken as it is."""

    def __init__(
        self, sides: Mapping[str, Side], windows: Mapping[str, ExampleSet], scratch: Path, merge: bool = False
    ) -> None:
        self.sides, self.scratch, self.merge = sides, scratch, merge
        self.labels = {name: windows[name].column(LABEL).astype(np.float64) for name in ("validation", "test")}

    def tuned(self, plan: Plan, penalties: Sequence[float], precisions: Mapping[str, Sequence[str]], seeds: int) -> \
            dict[str, dict[str, list[Run]]]:
        """side -> precision -> a run of each seed, at the penalty that was the side's best on validation with the first
        seed."""
        first: dict[str, list[Run]] = {side: [] for side in SIDES}
        for l2 in penalties:
            for side in SIDES:
                first[side].append(self.run(side, replace(plan, l2=l2)))
        best = {side: max(runs, key=lambda run: run.validation_auc) for side, runs in first.items()}
        found: dict[str, dict[str, list[Run]]] = {
            side: {precision: [] for precision in precisions[side]} for side in SIDES}
        for number in range(seeds):
            for side in SIDES[::-1] if number % 2 else SIDES:
                for precision in precisions[side]:
                    known = best[side] if number == 0 and precision == "fp32" else None
                    wanted = replace(best[side].plan, seed=plan.seed + number, precision=precision)
                    found[side][precision].append(known or self.run(side, wanted))
        return found

    def run(self, side: str, plan: Plan) -> Run:
        """Raises SluiceError, with the end of what it said, where the process fails."""
        folder = self.scratch / f"{plan.model}-{side}-{plan.precision}-{plan.l2:g}-{plan.seed}"
        made = replace(plan, rows=str(self.sides[side].rows), out=str(folder))
        begin = time.perf_counter()
        if not (self.merge and _done(folder, made)):
            shutil.rmtree(folder, ignore_errors=True)
            run_module(self.sides[side].python, f"benchmarks.peers.{side}_ranker", made.write(folder / "plan.json"),
                       plan.threads)
        scores = {name: np.load(folder / f"{name}.npy").astype(np.float64).clip(LEAST, 1 - LEAST)
                  for name in self.labels}
        aucs = {name: auc(self.labels[name], scores[name]) for name in self.labels}
        run = Run(made, Outcome.read(folder), aucs["validation"], aucs["test"],
                  log_loss(self.labels["test"], scores["test"]), scores["test"])
        print(said(side, run, time.perf_counter() - begin), flush=True)
        return run


def _done(folder: Path, plan: Plan) -> bool:
    """Whether a run of that plan ended there, wherever its rows and files lay then."""
    if not (folder / OUTCOME).exists():
        return False
    return replace(Plan.read(folder / "plan.json"), rows=plan.rows, out=plan.out) == plan


def sides_of(out: Path, rows: Path, peer: Path) -> dict[str, Side]:
    """`rows`: where rows.py wrote them; `peer`: the Python of FuxiCTR's environment."""
    return {"sluice": Side(Path(sys.executable), out), "fuxictr": Side(peer, rows)}


def log_loss(labels: np.ndarray, probabilities: np.ndarray) -> float:
    """Mean over rows."""
    return float(-np.mean(np.where(labels > 0, np.log(probabilities), np.log1p(-probabilities))))


def said(side: str, run: Run, seconds: float) -> str:
    plan, outcome = run.plan, run.outcome
    return (f"{plan.model:12s} {side:8s} {plan.precision} seed {plan.seed} l2 {plan.l2:g}: validation AUC "
            f"{run.validation_auc:.4f}, test {run.auc:.4f}, log loss {run.log_loss:.4f}, "
            f"{outcome.rows_per_second:,.0f} rows/s, best epoch {outcome.best_epoch} of {outcome.epochs}, "
            f"{seconds:.0f} s")


def median(values: Iterable[float]) -> float:
    return float(np.median(list(values)))

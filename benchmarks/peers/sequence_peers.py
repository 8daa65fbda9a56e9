"""The sequence encoder beside RecTools' SASRec: same rows, length, width, blocks, heads, dropout, batch and epochs.

    sluice bench sequence_peers NAME=FILE [...] [--seeds 3] [--epochs 5] [--negatives 256] [--rates 0.005 0.001]
                                [--json] [--peer FOLDER] [--out FOLDER]

FILE is as `sluice bench retrieval` reads it. Leave-one-out: both sides train on all but each user's last action, for so
many epochs and without an earlier stop, in a process of their own, by turns, which side is first alternating with the
seed; then both recommend ten items of the whole catalogue that the user has not taken. A batch is of about --batch
predictions: users together with as many, where the peer counts users. Without --negatives both take the softmax over
all items; with it so many sampled ones, which the peer draws for each prediction and the platform for each batch.
Learning rates are each side's own default unless told. All else is what either does by default.

Speeds are predictions trained a second, evaluation apart: medians over seeds; the goal is twice the peer's. They count
where quality is level or better: Recall@10 and NDCG@10 behind by no more than the standard error of the difference
over users (of their means over seeds).

Prints a Markdown table; with --json the last line is one JSON object, `sequence_peers.SET.SIDE.FIGURE`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.models.retrieval import read
from benchmarks.peers.environment import peer_python, run_module
from benchmarks.peers.plan import Outcome
from benchmarks.peers.runs import median
from benchmarks.peers.sequence_plan import SequenceLog, SequencePlan
from models.interactions.interactions import Interactions
from models.interactions.splits import leave_one_out

PACKAGES = ("rectools[torch]==0.19.0",)
MODULES = ("pandas", "pytorch_lightning", "rectools")
PEER = Path(tempfile.gettempdir()) / "sluice-bench-rectools"
SIDES = ("sluice", "rectools")
RATES = (5e-3, 1e-3)  # what either side takes by default
METRICS = ("recall_at_10", "ndcg_at_10")


class SequenceRun(NamedTuple):
    """`recall_at_10` and `ndcg_at_10` [U]: of each user who is asked."""

    outcome: Outcome
    recall_at_10: np.ndarray
    ndcg_at_10: np.ndarray


def log_of(log: Interactions) -> SequenceLog:
    """Whoever has three actions is asked."""
    return SequenceLog(log.offsets, log.items, leave_one_out(log).test.asked, log.table)


def measure(name: str, log: SequenceLog, asked: argparse.Namespace, pythons: Mapping[str, Path], scratch: Path) -> \
        dict[str, Any]:
    """side -> figures, of one set."""
    rows, predictions = str(log.write(scratch / "log.npz")), log.predictions(asked.length)
    users = int((np.diff(log.offsets) > 1).sum())
    plan = SequencePlan(
        rows=rows, out="", seed=0, threads=asked.threads, batch=asked.batch,
        users=max(1, round(asked.batch * users / predictions)), negatives=asked.negatives, width=asked.width,
        learning_rate=0.0, length=asked.length, blocks=asked.blocks, heads=asked.heads, dropout=asked.dropout,
        epochs=asked.epochs)
    print(f"{name}: {len(log.offsets) - 1:,} users, {log.table - 2:,} items, {predictions:,} predictions an epoch, "
          f"batches of {plan.batch:,} or {plan.users} users, {len(log.asked):,} asked", flush=True)
    runs: dict[str, list[SequenceRun]] = {side: [] for side in SIDES}
    for seed in range(asked.seeds):
        for side in SIDES[::-1] if seed % 2 else SIDES:
            told = replace(plan, seed=seed, learning_rate=asked.rates[SIDES.index(side)],
                           out=str(scratch / f"{side}-{seed}"))
            runs[side].append(ran(side, told, log, pythons[side]))
            print(f"{name} {side} seed {seed}: {said(runs[side][-1])}", flush=True)
    return {side: figures(runs[side]) for side in SIDES} | {"compared": compared(runs)}


def ran(side: str, plan: SequencePlan, log: SequenceLog, python: Path) -> SequenceRun:
    """One process. Raises SluiceError where it fails."""
    Path(plan.out).mkdir(parents=True, exist_ok=True)
    run_module(python, f"benchmarks.peers.{side}_sequences", plan.write(Path(plan.out, "plan.json")), plan.threads)
    return SequenceRun(Outcome.read(plan.out), *hits(np.load(Path(plan.out, "test.npy")), log.targets))


def hits(lists: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Recall and NDCG [U] of lists [U, K] with one right answer each: 1 and 1 / log2(1 + rank) where it is there."""
    found = lists == targets[:, None]
    return found.any(1).astype(np.float64), (found / np.log2(np.arange(lists.shape[1]) + 2)).sum(1)


def figures(runs: Sequence[SequenceRun]) -> dict[str, float]:
    """Of one side: means over seeds, the speed a median."""
    rates = [run.outcome.rows_per_second for run in runs]
    return {**{metric: statistics.mean(float(getattr(run, metric).mean()) for run in runs) for metric in METRICS},
            "rows_per_second": median(rates), "rows_per_second_lowest": min(rates),
            "rows_per_second_highest": max(rates), "seconds": median(run.outcome.seconds_to_best for run in runs),
            "peak_mib": max(run.outcome.peak_mib for run in runs), "seeds": len(runs)}


def compared(runs: Mapping[str, Sequence[SequenceRun]]) -> dict[str, float | bool]:
    """What the platform gained, with its standard error over users; how many times as fast it is, and whether that
    counts."""
    found: dict[str, float | bool] = {"level": True}
    for metric in METRICS:
        ours, theirs = (np.mean([getattr(run, metric) for run in runs[side]], axis=0) for side in SIDES)
        gain = ours - theirs
        error = float(gain.std() / np.sqrt(len(gain)))
        found |= {f"{metric}_gain": float(gain.mean()), f"{metric}_error": error,
                  "level": bool(found["level"] and gain.mean() >= -error)}
    speeds = [median(run.outcome.rows_per_second for run in runs[side]) for side in SIDES]
    return found | {"times": speeds[0] / speeds[1]}


def table(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Markdown, two rows for each set."""
    lines = ["| set | | Recall@10 | NDCG@10 | rows/s | s | MiB | Recall@10 gained | NDCG@10 gained | speed, times |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    for name, of in found.items():
        for side in SIDES:
            f = of[side]
            cells = [*(f"{f[metric]:.4f}" for metric in METRICS),
                     f"{f['rows_per_second']:,.0f} ({f['rows_per_second_lowest']:,.0f} to "
                     f"{f['rows_per_second_highest']:,.0f})", f"{f['seconds']:.1f}", f"{f['peak_mib']:,.0f}",
                     *(_gained(of["compared"]) if side == SIDES[0] else ("", "", ""))]
            lines.append(f"| {name} | {side} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _gained(of: Mapping[str, Any]) -> tuple[str, str, str]:
    recall, ndcg = (f"{of[f'{metric}_gain']:+.4f} ± {of[f'{metric}_error']:.4f}" for metric in METRICS)
    return recall, ndcg, f"{of['times']:.1f}" if of["level"] else f"({of['times']:.1f}: quality behind)"


def said(run: SequenceRun) -> str:
    return (f"Recall@10 {run.recall_at_10.mean():.4f}, NDCG@10 {run.ndcg_at_10.mean():.4f}, "
            f"{run.outcome.rows_per_second:,.0f} rows/s, {run.outcome.seconds_to_best:.1f} s of training")


def options() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="NAME=FILE")
    parser.add_argument("--user", default="user_id")
    parser.add_argument("--item", default="item_id")
    parser.add_argument("--time", default="", help="a column of times; without it the order of the file counts")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=1024, help="predictions of an update")
    parser.add_argument("--negatives", type=int, help="of the sampled softmax; none given: all items")
    parser.add_argument("--rates", type=float, nargs=2, default=RATES, metavar=("OURS", "PEER"), help="of learning")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--length", type=int, default=50, help="latest actions that are read")
    parser.add_argument("--blocks", type=int, default=1)
    parser.add_argument("--heads", type=int, default=1)
    parser.add_argument("--dropout", type=float, default=0.3)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--peer", type=Path, default=PEER, help="environment with RecTools; made where missing")
    parser.add_argument("--out", type=Path, help="folder that keeps plans and recommendations")
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    parser.set_defaults(events=[])
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    parser = options()
    asked = parser.parse_args(argv)
    if not all("=" in text for text in asked.files):
        parser.error("a set is NAME=FILE")
    logs = {name: log_of(read(Path(path), asked)) for name, _, path in (text.partition("=") for text in asked.files)}
    peer = peer_python(asked.peer, MODULES, PACKAGES, on_top=True)
    pythons = {"sluice": Path(sys.executable), "rectools": peer}
    with tempfile.TemporaryDirectory() as scratch:
        found = {name: measure(name, log, asked, pythons, Path(asked.out or scratch, name))
                 for name, log in logs.items()}
    print(table(found))
    if asked.json:
        print(json.dumps({"sequence_peers": found}))


if __name__ == "__main__":
    main()
